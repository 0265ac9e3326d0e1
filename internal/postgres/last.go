package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	errLast    = errors.New("postgres: what goes with COMMIT was left already, nothing can follow it")
	errForeign = errors.New("postgres: only a transaction of InTx can send statements with its COMMIT")
)

// WithCommit leaves the last statements of a transaction, which are sent together with COMMIT: one round trip less, and
// locks are held for that much less. Nothing else can be sent through tx afterwards; when one of them fails nothing is
// committed. committed is called once the transaction is known to have been committed; nil means that nobody asks.
func WithCommit(tx pgx.Tx, b *pgx.Batch, committed func()) error {
	t, ok := tx.(*transaction)
	if !ok {
		return errForeign
	}
	if err := t.usable(); err != nil {
		return err
	}
	t.last, t.committed = b, committed
	return nil
}

// commitLast sends what was left, and COMMIT behind it. The server leaves COMMIT out when a statement before it fails.
//
// Where the line breaks after the statements were sent, COMMIT was sent too, so nobody knows. What the server reports
// of the transaction afterwards decides, not which statement the driver names.
func (t *transaction) commitLast(ctx context.Context) error {
	var tag pgconn.CommandTag
	batch := &pgx.Batch{}
	if !t.sent {
		batch.BeginTx(t.options)
	}
	batch.QueuedQueries = append(batch.QueuedQueries, t.last.QueuedQueries...)
	batch.Queue(t.commitSQL()).Exec(func(answer pgconn.CommandTag) error {
		tag = answer
		return nil
	})
	t.sent = true
	err := t.conn.SendBatch(ctx, batch).Close()
	switch {
	case err == nil && tag.String() == "ROLLBACK":
		t.closed = true
		return pgx.ErrTxCommitRollback
	case err == nil:
		t.closed = true
		if t.committed != nil {
			t.committed()
		}
		return nil
	case !t.conn.IsClosed() && t.conn.PgConn().TxStatus() != statusIdle:
		return fmt.Errorf("write and commit: %w", err) // it is still open, so it was not committed; abandon rolls it back
	}
	return t.commitFailed(err)
}
