package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

// TestArgs_MeanWhatTheDriversDo: the same text and the same values, the first time and from then on, and the same refusals.
func TestArgs_MeanWhatTheDriversDo(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	conn, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{
		`SELECT @a::int, @b::text, @a::int`,
		`SELECT '@a', @b::text /* @c */, "x@a"."y" @> @a -- @d`,
		`SELECT 1`,
		`SELECT @a`,
	} {
		for range 2 {
			for _, args := range []map[string]any{{"a": 1, "b": "two"}, {"a": 2, "b": nil}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 2}, {}} {
				wantSQL, wantValues, wantErr := pgx.StrictNamedArgs(args).RewriteQuery(t.Context(), conn.Conn(), sql, nil)
				gotSQL, gotValues, gotErr := postgres.Args(args).RewriteQuery(t.Context(), conn.Conn(), sql, nil)
				if gotSQL != wantSQL || !slices.Equal(gotValues, wantValues) || (gotErr == nil) != (wantErr == nil) {
					t.Errorf("%s with %v: got %q, %v, %v, want %q, %v, %v", sql, args, gotSQL, gotValues, gotErr, wantSQL, wantValues, wantErr)
				}
			}
		}
	}
}

// TestArgs_OfManyTexts: what is kept has a bound, and the answer is right beyond it.
func TestArgs_OfManyTexts(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	for n := range 600 {
		rows, err := db.Query(t.Context(), fmt.Sprintf(`SELECT @value::int + %d`, n), postgres.Args{"value": n}, pgx.QueryExecModeExec)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err != nil || got != 2*n {
			t.Fatalf("got %d and %v, want %d", got, err, 2*n)
		}
	}
}

func BenchmarkArgs(b *testing.B) {
	db := postgrestest.New(b)
	conn, err := db.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	const sql = `SELECT @first::text, @second::integer, @third::timestamptz FROM payments WHERE payment_key = @first`
	args := map[string]any{"first": "", "second": 1, "third": nil}
	for name, rewriter := range map[string]pgx.QueryRewriter{"ours": postgres.Args(args), "driver": pgx.StrictNamedArgs(args)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := rewriter.RewriteQuery(b.Context(), conn.Conn(), sql, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
