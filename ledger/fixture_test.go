package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// try runs fn in a transaction and returns what came of it.
func (b *books) try(fn func(pgx.Tx) error) error {
	return postgres.InTx(b.t.Context(), b.pool, fn)
}

// list reads one column as texts, in order, also when the test is over.
func (b *books) list(sql string) []string {
	b.t.Helper()
	rows, err := b.pool.Query(context.WithoutCancel(b.t.Context()), sql)
	if err != nil {
		b.t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// work lists the work there is: what is owed, and how it was closed.
func (b *books) work() []string {
	b.t.Helper()
	return b.list(`SELECT kind || ' ' || COALESCE(transaction_key, request_id, '-') || ' ' || COALESCE(closed_as, 'open') FROM work ORDER BY work_id`)
}

// mismatches lists the kinds of those that are open, and how often each was seen.
func (b *books) mismatches() []string {
	b.t.Helper()
	return b.list(`SELECT kind || ' ' || times_seen FROM mismatches WHERE status = 'open' ORDER BY mismatch_id`)
}

// trial lists what each account holds.
func (b *books) trial() []string {
	b.t.Helper()
	return b.list(`SELECT account || ' ' || sum(amount) FROM journal_entries GROUP BY account HAVING sum(amount) <> 0 ORDER BY account`)
}

// open makes work, as the handler of notices or the audit do.
func (b *books) open(w ledger.Work) {
	b.t.Helper()
	b.do(func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		w.DueAt, w.Deadline = b.now, b.now.Add(91*time.Hour)
		ledger.QueueWork(batch, w, b.now)
		return tx.SendBatch(b.t.Context(), batch).Close()
	})
}

// sold is an order with a payment that is done.
func (b *books) sold(key, order string, amount, credits int64) {
	b.t.Helper()
	b.order(order, amount, credits)
	b.intend(key, order, amount)
	if r := b.record(b.captured(key, order, amount)); r.After.Status != ledger.StatusDone {
		b.t.Fatalf("got %s, want done", r.After.Status)
	}
}

// outcome is what became of our call of an attempt.
func (b *books) outcome(key string, e ledger.Evidence, attempt int) ledger.Observation {
	return ledger.Observation{
		PaymentKey: key, Channel: ledger.ChannelConfirm, Evidence: e, Attempt: attempt, AskedAt: b.now, SeenAt: b.now, Word: string(e),
	}
}

// unpaid is the gateway's payment before the buyer has paid.
func (b *books) unpaid(key, order string, amount int64) ledger.Observation {
	return ledger.Observation{
		PaymentKey: key, OrderID: order, Channel: ledger.ChannelWebhook, Evidence: ledger.EvidenceOpen,
		AskedAt: b.now, SeenAt: b.now, Word: "IN_PROGRESS", Total: ledger.Won(amount), Balance: ledger.Won(amount),
	}
}

// underway is a cancel that the gateway has not finished.
func underway(key string, amount int64) ledger.ObservedCancel {
	c := done(key, amount)
	c.State = ledger.CancelInProgress
	return c
}

// aborted is a cancel that the gateway gave up.
func aborted(key string, amount int64) ledger.ObservedCancel {
	c := done(key, amount)
	c.State = ledger.CancelAborted
	return c
}

// together runs fn n times at once, with the number of each.
func together(t *testing.T, n int, fn func(i int) error) {
	t.Helper()
	var group errgroup.Group
	for i := range n {
		group.Go(func() error {
			if err := fn(i); err != nil {
				return fmt.Errorf("number %d: %w", i, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// errUndo rolls a transaction back that was only to be accepted.
var errUndo = errors.New("undo")

func undone(err error) bool { return errors.Is(err, errUndo) }
