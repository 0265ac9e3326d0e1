package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// attemptsMax bounds how often one transaction is tried when the server keeps choosing it as the victim.
	attemptsMax = 4
	// rollbackTimeout bounds the clean-up after the caller's own context has ended.
	rollbackTimeout = 5 * time.Second
)

// errAcquire marks a failure to get a connection from the pool, before any statement.
var errAcquire = errors.New("postgres: no connection could be had")

// InTx runs fn in a transaction of the default isolation level; see [InTxWith].
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return InTxWith(ctx, pool, pgx.TxOptions{}, fn)
}

// InTxWith runs fn in a transaction and commits it when fn returns nil. It is the only way to open a transaction.
//
// BEGIN travels with the first statement of fn, so a transaction costs its statements plus one round trip, and one in
// which fn sends nothing costs none. When fn fails or panics, everything is rolled back; when the transaction was
// chosen as the victim of a conflict (serialization failure or deadlock) it is run again, at most four times in all,
// so fn must not have effects outside the transaction that cannot be repeated.
//
// An error that wraps [ErrCommitUnknown] is the only one after which the transaction may have been committed.
func InTxWith(ctx context.Context, pool *pgxpool.Pool, options pgx.TxOptions, fn func(tx pgx.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := runOnce(ctx, pool, options, fn)
		if err == nil || attempt == attemptsMax || !isVictim(err) {
			return err
		}
		if waitErr := backOff(ctx, attempt); waitErr != nil {
			return errors.Join(err, waitErr)
		}
	}
}

// runOnce is one attempt. The deferred roll-back also covers a panic of fn, which goes on unharmed with its stack.
func runOnce(ctx context.Context, pool *pgxpool.Pool, options pgx.TxOptions, fn func(tx pgx.Tx) error) (err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errAcquire, err)
	}
	// Release destroys a connection that is closed, busy or still in a transaction.
	defer conn.Release()

	tx := &transaction{conn: conn.Conn(), options: options}
	defer func() {
		err = errors.Join(err, tx.abandon(ctx))
	}()

	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// isVictim reports whether the server gave this transaction up for the sake of another, which also proves that it was
// not committed.
func isVictim(err error) bool {
	if errors.Is(err, ErrCommitUnknown) {
		return false
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == codeSerializationFailure || refused.Code == codeDeadlockDetected)
}

// backOff waits a random time that doubles with each attempt, so that two victims do not meet again.
func backOff(ctx context.Context, attempt int) error {
	wait := rand.N(10 * time.Millisecond << attempt)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
