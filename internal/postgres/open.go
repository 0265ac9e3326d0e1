package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Open connects to the database and makes sure that it answers. The caller closes the pool.
//
// An error names host, port and database, never the password.
func Open(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	poolCfg, err := cfg.poolConfig()
	if err != nil {
		return nil, err
	}

	pool, err := pgxpool.NewWithConfig(ctx, poolCfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: open the pool: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		conn := poolCfg.ConnConfig
		return nil, fmt.Errorf("postgres: database %q at %s, port %d, cannot be reached: %w",
			conn.Database, conn.Host, conn.Port, err)
	}
	return pool, nil
}
