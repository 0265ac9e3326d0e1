package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// copied is what PostgreSQL alone takes to hand out rows: the yardstick for whoever must read them all.
type copied struct {
	rows int64
	took time.Duration
}

// counting throws away what it is given and counts it.
type counting int64

func (c *counting) Write(p []byte) (int, error) {
	*c += counting(len(p))
	return len(p), nil
}

// copyOut reads every row of the tables with COPY … TO, on one connection, and throws them away.
func copyOut(ctx context.Context, address string, tables []string) (c copied, err error) {
	pool, err := postgres.Open(ctx, postgres.Config{URL: address, MaxConns: 1, ApplicationName: "lab"})
	if err != nil {
		return c, err
	}
	defer pool.Close()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return c, fmt.Errorf("copy the books: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SET statement_timeout = 0`); err != nil {
		return c, fmt.Errorf("copy the books: %w", err)
	}
	began := time.Now()
	for _, table := range tables {
		var bytes counting
		tag, err := conn.Conn().PgConn().CopyTo(ctx, &bytes, `COPY `+pgx.Identifier{table}.Sanitize()+` TO STDOUT`)
		if err != nil {
			return c, fmt.Errorf("copy %s: %w", table, err)
		}
		if tag.RowsAffected() > 0 && bytes == 0 {
			return c, fmt.Errorf("copy %s: %d rows and not one byte", table, tag.RowsAffected())
		}
		c.rows += tag.RowsAffected()
	}
	c.took = time.Since(began)
	return c, nil
}
