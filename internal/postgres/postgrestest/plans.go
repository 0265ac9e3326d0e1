package postgrestest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Plans notes the statements that a pool sends, so that a test can look at how the server would run each.
type Plans struct {
	mu   sync.Mutex
	sent []statement
}

type statement struct {
	sql  string
	args []any
}

// NewExplained is New with a note of every statement sent.
func NewExplained(tb testing.TB) (*pgxpool.Pool, *Plans) {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(NewURL(tb))
	if err != nil {
		tb.Fatal(err)
	}
	plans := &Plans{}
	cfg.MaxConns, cfg.ConnConfig.Tracer = maxConns, plans
	pool, err := pgxpool.NewWithConfig(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool, plans
}

// Forget drops what was sent so far.
func (p *Plans) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = nil
}

// WholeTables lists the statements sent, each with the plan, that would read one of the tables from end to end: the table
// itself, or every entry of an index that covers all of it, unless the first few are enough.
func (p *Plans) WholeTables(ctx context.Context, pool *pgxpool.Pool, tables ...string) ([]string, error) {
	p.mu.Lock()
	sent := p.sent
	p.mu.Unlock()
	partial, err := partialIndexes(ctx, pool)
	if err != nil {
		return nil, err
	}
	var found []string
	seen := make(map[string]bool)
	for _, s := range sent {
		if seen[s.sql] {
			continue
		}
		seen[s.sql] = true
		plan, err := explain(ctx, pool, s)
		if err != nil {
			return found, err
		}
		if whole := plan.whole(tables, partial, false); len(whole) > 0 {
			found = append(found, strings.TrimSpace(s.sql)+"\n\n"+strings.Join(whole, "\n"))
		}
	}
	return found, nil
}

// partialIndexes are those that cover only some rows of their tables: read from end to end, they cost what is open.
func partialIndexes(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	rows, err := pool.Query(ctx, `SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indpred IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// node is a node of a plan, as EXPLAIN writes it.
type node struct {
	Type      string `json:"Node Type"`
	Relation  string `json:"Relation Name"`
	Index     string `json:"Index Name"`
	Condition string `json:"Index Cond"`
	Below     []node `json:"Plans"`
}

// whole says which tables the node and those below it would read from end to end. It is few where only the first rows are
// asked for.
func (n node) whole(tables, partial []string, few bool) (found []string) {
	of := slices.Contains(tables, n.Relation)
	switch n.Type {
	case "Seq Scan":
		if of {
			found = append(found, "all of "+n.Relation)
		}
	case "Index Scan", "Index Only Scan":
		if of && n.Condition == "" && !few && !slices.Contains(partial, n.Index) {
			found = append(found, "all of "+n.Index+", the index of "+n.Relation)
		}
	case "Limit":
		few = true
	case "Incremental Sort", "Nested Loop", "Result", "Subquery Scan", "LockRows", "Append", "Merge Append", "Unique", "ProjectSet": // hand rows on as they come
	default:
		few = false
	}
	for _, below := range n.Below {
		found = append(found, below.whole(tables, partial, few)...)
	}
	return found
}

// explain asks for the plan of a statement that has one.
func explain(ctx context.Context, pool *pgxpool.Pool, s statement) (node, error) {
	word, _, _ := strings.Cut(strings.TrimSpace(s.sql), " ")
	switch strings.ToUpper(strings.TrimSpace(word)) {
	case "SELECT", "WITH", "INSERT", "UPDATE", "DELETE":
	default:
		return node{}, nil
	}
	rows, err := pool.Query(ctx, "EXPLAIN (FORMAT JSON) "+s.sql, s.args...)
	if err != nil {
		return node{}, err
	}
	plans, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]struct {
		Plan node `json:"Plan"`
	}])
	if err != nil || len(plans) == 0 {
		return node{}, err
	}
	return plans[0].Plan, nil
}

func (p *Plans) note(sql string, args []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, statement{sql, args})
}

// TraceQueryStart notes a statement.
func (p *Plans) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	p.note(data.SQL, data.Args)
	return ctx
}

// TraceQueryEnd has nothing to note.
func (*Plans) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart has nothing to note.
func (*Plans) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery notes a statement of a batch.
func (p *Plans) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	p.note(data.SQL, data.Args)
}

// TraceBatchEnd has nothing to note.
func (*Plans) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
