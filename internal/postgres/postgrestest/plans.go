package postgrestest

import (
	"context"
	"regexp"
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

// WholeTables lists the statements sent, each with the plan, that would read one of the tables from end to end.
func (p *Plans) WholeTables(ctx context.Context, pool *pgxpool.Pool, tables ...string) ([]string, error) {
	p.mu.Lock()
	sent := p.sent
	p.mu.Unlock()
	whole := regexp.MustCompile(`Seq Scan on (` + strings.Join(tables, "|") + `)\b`)
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
		if whole.MatchString(plan) {
			found = append(found, strings.TrimSpace(s.sql)+"\n\n"+plan)
		}
	}
	return found, nil
}

// explain asks for the plan of a statement that has one.
func explain(ctx context.Context, pool *pgxpool.Pool, s statement) (string, error) {
	word, _, _ := strings.Cut(strings.TrimSpace(s.sql), " ")
	switch strings.ToUpper(strings.TrimSpace(word)) {
	case "SELECT", "WITH", "INSERT", "UPDATE", "DELETE":
	default:
		return "", nil
	}
	rows, err := pool.Query(ctx, "EXPLAIN "+s.sql, s.args...)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
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
