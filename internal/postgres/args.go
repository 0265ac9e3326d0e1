package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Args are the named arguments of a statement that is run for every request. They mean what [pgx.StrictNamedArgs] mean: a
// name that the statement lacks is an error, and so is one that it has and they do not.
//
// The driver's own read the statement's text and write it anew for every call, which costs as much as all else that is done
// on our side for a statement of a page. These keep what became of a text with the connection that sends it.
type Args map[string]any

const (
	rewrittenKey = "daesa rewritten statements"
	// rewrittenMax bounds what is kept of texts that are put together as they are needed.
	rewrittenMax = 256
)

// rewritten is a statement with numbers in place of names.
type rewritten struct {
	sql   string
	names []string // the first is that of $1
}

// RewriteQuery puts numbers in place of names, for the driver.
func (a Args) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	known := rewrittenBy(conn)
	made, ok := known[sql]
	if !ok {
		var err error
		if made, err = a.rewrite(ctx, conn, sql, args); err != nil {
			return "", nil, err
		}
		if len(known) >= rewrittenMax {
			clear(known)
		}
		known[sql] = made
	}
	if len(a) != len(made.names) {
		return pgx.StrictNamedArgs(a).RewriteQuery(ctx, conn, sql, args) // which says what is wrong
	}
	values := make([]any, len(made.names))
	for i, name := range made.names {
		if values[i], ok = a[name]; !ok {
			return "", nil, fmt.Errorf("argument %s found in sql query but not present in Args", name)
		}
	}
	return made.sql, values, nil
}

// rewrite lets the driver do it, with each name as its own value: so its order is known.
func (a Args) rewrite(ctx context.Context, conn *pgx.Conn, sql string, args []any) (made rewritten, err error) {
	names := make(pgx.StrictNamedArgs, len(a))
	for name := range a {
		names[name] = name
	}
	var order []any
	if made.sql, order, err = names.RewriteQuery(ctx, conn, sql, args); err != nil {
		return made, err
	}
	for _, name := range order {
		made.names = append(made.names, name.(string)) //nolint:forcetypeassert // it is what we gave
	}
	return made, nil
}

// rewrittenBy is what a connection has kept. It serves one statement at a time, so nothing has to be locked.
func rewrittenBy(conn *pgx.Conn) map[string]rewritten {
	kept := conn.PgConn().CustomData()
	known, ok := kept[rewrittenKey].(map[string]rewritten)
	if !ok {
		known = make(map[string]rewritten)
		kept[rewrittenKey] = known
	}
	return known
}
