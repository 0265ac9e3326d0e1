package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// statusIdle is what the server reports after a statement when no transaction is open.
const statusIdle = 'I'

// transaction is a pgx.Tx whose BEGIN is sent together with its first statement.
//
// It begins in the state "not sent". The first statement makes it sent; when the server then reports that no
// transaction is open (the statement could not even be prepared, say), it is refused: every later statement fails and
// it cannot be committed, exactly as if BEGIN had gone ahead alone and the statement had failed inside.
type transaction struct {
	conn    *pgx.Conn
	options pgx.TxOptions

	sent    bool
	closed  bool
	refused error

	last      *pgx.Batch // goes with COMMIT
	committed func()
}

var _ pgx.Tx = (*transaction)(nil)

// Begin refuses: see [ErrNestedTransaction].
func (t *transaction) Begin(context.Context) (pgx.Tx, error) {
	return nil, ErrNestedTransaction
}

// Conn returns the connection. Statements are sent through the transaction, never through it: before the first
// statement they would run outside.
func (t *transaction) Conn() *pgx.Conn {
	return t.conn
}

// Commit ends the transaction and keeps what it did. It fails with pgx.ErrTxCommitRollback when a statement had failed
// and fn went on regardless.
func (t *transaction) Commit(ctx context.Context) error {
	if t.closed {
		return pgx.ErrTxClosed
	}
	if t.refused != nil {
		t.closed = true
		return errors.Join(pgx.ErrTxCommitRollback, t.refused)
	}
	if !t.sent && t.last == nil {
		t.closed = true
		return nil
	}

	if err := t.cannotSend(ctx); err != nil {
		return fmt.Errorf("commit was not sent: %w", err)
	}
	if t.last != nil {
		return t.commitLast(ctx)
	}
	tag, err := t.conn.Exec(ctx, t.commitSQL())
	if err != nil {
		return t.commitFailed(err)
	}
	t.closed = true
	if tag.String() == "ROLLBACK" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

func (t *transaction) commitSQL() string {
	if t.options.CommitQuery != "" {
		return t.options.CommitQuery
	}
	return "commit"
}

// cannotSend says why a statement could not leave this program.
//
// It is asked before a COMMIT, because afterwards the driver does not know: when a connection breaks while the answer is
// awaited, it may report "conn closed, safe to retry", as if nothing had been sent.
func (t *transaction) cannotSend(ctx context.Context) error {
	switch {
	case t.conn.IsClosed():
		return pgconn.ErrConnClosed
	case t.conn.PgConn().IsBusy():
		return errors.New("postgres: the rows of an earlier statement were not closed")
	default:
		return ctx.Err()
	}
}

// commitFailed tells a commit that the server refused from one whose outcome is not known. An error of severity ERROR
// is a refusal; FATAL may come after the commit is already durable; anything else is not an answer.
func (t *transaction) commitFailed(err error) error {
	t.closed = true
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.SeverityUnlocalized == "ERROR" {
		return fmt.Errorf("commit: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
}

// Rollback ends the transaction and undoes what it did.
func (t *transaction) Rollback(ctx context.Context) error {
	if t.closed {
		return pgx.ErrTxClosed
	}
	t.closed = true
	if !t.open() {
		return nil
	}
	if _, err := t.conn.Exec(ctx, "rollback"); err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// open reports whether the server has a transaction of ours open. One whose connection ended rolls back by itself.
func (t *transaction) open() bool {
	return t.sent && t.refused == nil && !t.conn.IsClosed()
}

// abandon rolls back what is still open, also when the caller's context has ended.
func (t *transaction) abandon(ctx context.Context) error {
	if t.closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	return t.Rollback(ctx)
}

// usable says whether another statement may be sent.
func (t *transaction) usable() error {
	if t.closed {
		return pgx.ErrTxClosed
	}
	if t.refused != nil {
		return fmt.Errorf("postgres: the first statement of the transaction failed: %w", t.refused)
	}
	if t.last != nil {
		return errLast
	}
	return nil
}

// opened is called once the answers to BEGIN and to the first statement have been read.
func (t *transaction) opened(err error) {
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == statusIdle {
		t.refused = err
		if err == nil {
			t.refused = errors.New("postgres: BEGIN did not open a transaction")
		}
	}
}

// LargeObjects refuses: they need a transaction of the driver's own kind, and nothing here stores any.
func (t *transaction) LargeObjects() pgx.LargeObjects {
	panic("postgres: large objects are not used in transactions of InTx")
}
