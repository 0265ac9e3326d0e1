package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient"
	"daesa/reconcile"
)

// lackingList leaves rows out of one read of the list after another.
type lackingList struct {
	reconcile.Gateway
	lacks [][]string // transaction keys, of each read; nothing once they are over
}

func (g *lackingList) Transactions(ctx context.Context, from, to time.Time, after string, limit int) (pgclient.Page, error) {
	page, err := g.Gateway.Transactions(ctx, from, to, after, limit)
	if len(g.lacks) == 0 {
		return page, err
	}
	lacks := g.lacks[0]
	g.lacks = g.lacks[1:]
	page.Rows = slices.DeleteFunc(page.Rows, func(r pgclient.Transaction) bool { return slices.Contains(lacks, r.TransactionKey) })
	return page, err
}

// TestPoll_TwoReadsShortOfDifferentRows: only what two reads in a row lack is missing. A row that the first of them
// showed a moment ago is not.
func TestPoll_TwoReadsShortOfDifferentRows(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var captures []string
	for n := range 3 {
		key := s.paid(orderID(n), 1000)
		captures = append(captures, s.text(`SELECT transaction_key FROM captures WHERE payment_key = $1`, key))
	}
	s.clock.Advance(time.Minute)
	s.poll()
	s.clock.Advance(11 * time.Minute)
	a, b, both := captures[0], captures[1], captures[2]
	flickering := s.another(func(c *reconcile.Config) {
		c.Gateway = &lackingList{Gateway: s.client, lacks: [][]string{{a, both}, {b, both}}}
	})
	_, err := flickering.Mirror.Poll(t.Context())
	s.must(err)
	if got := s.text(`SELECT COALESCE(string_agg(transaction_key, ' '), '') FROM mirror WHERE missing_since IS NOT NULL`); got != both {
		t.Errorf("missing: got %q, want %q, which both reads lack", got, both)
	}
	if n := s.number(`SELECT missing FROM list_runs ORDER BY run_id DESC LIMIT 1`); n != 1 {
		t.Errorf("the run says %d missing, want 1", n)
	}
	if n := s.mismatches(ledger.KindHistoryChanged); n != 1 {
		t.Errorf("got %d mismatches, want one", n)
	}
	if st := s.agrees("after"); st.Line(reconcile.LineBreaks, ledger.KRW).Count != 1 {
		t.Errorf("got %s %+v", st.Verdict, st.Lines)
	}
}

// TestBackfill_WhereWindowsMeet: a row at the second at which one window ends and the next begins is missed when it is
// gone, and once.
func TestBackfill_WhereWindowsMeet(t *testing.T) {
	t.Parallel()
	s := setup(t)
	at := noon().Add(30 * time.Minute)
	s.clock.Set(at)
	capture := s.text(`SELECT transaction_key FROM captures WHERE payment_key = $1`, s.paid("order-1", 1000))
	s.clock.Set(noon().Add(2 * 24 * time.Hour))
	from := at.Add(-24 * time.Hour)
	read := func(lacks ...string) {
		r := s.another(func(c *reconcile.Config) {
			c.Gateway = &lackingList{Gateway: s.client, lacks: [][]string{lacks, lacks, lacks, lacks, lacks}}
		})
		_, err := r.Mirror.Backfill(t.Context(), from, at.Add(24*time.Hour))
		s.must(err)
	}
	read()
	if n := s.number(`SELECT count(*) FROM mirror WHERE at = $1`, at); n != 1 {
		t.Fatalf("%d rows where the windows meet", n)
	}
	read()
	if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'failed'`); n != 0 {
		t.Errorf("%d reads are taken for short", n)
	}
	read(capture)
	if n := s.number(`SELECT count(*) FROM mirror WHERE missing_since IS NOT NULL`); n != 1 || s.mismatches(ledger.KindHistoryChanged) != 1 {
		t.Errorf("%d rows are missing, with %d mismatches", n, s.mismatches(ledger.KindHistoryChanged))
	}
}

// TestPoll_BookedMoneyThatIsNotListed: a read that lacks money of our books is made once more, and no more often once
// that money is a mismatch, whether it is open or a person accepted it. What the list need not show makes no read short.
func TestPoll_BookedMoneyThatIsNotListed(t *testing.T) {
	t.Parallel()
	s := setup(t)
	hides := func(c *reconcile.Config) {
		c.Gateway = &paged{Gateway: s.client, change: func(_ int, page *pgclient.Page) error {
			page.Rows = slices.DeleteFunc(page.Rows, func(r pgclient.Transaction) bool { return r.OrderID == "order-hidden" || r.OrderID == "order-fell" })
			return nil
		}}
	}
	list := s.another(hides)
	reads := func(what string, poll func(context.Context) (reconcile.Polled, error), short int) {
		t.Helper()
		_, err := poll(t.Context())
		s.must(err)
		if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'failed'`); n != short {
			t.Errorf("%s: %d reads so far were taken for short, want %d", what, n, short)
		}
	}
	s.paid("order-shown", 1000)
	fell := s.paid("order-fell", 1000)
	s.exec(`UPDATE captures SET reversed_at = $1 WHERE payment_key = $2`, s.clock.Now(), fell)
	s.exec(`INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
		VALUES ('void', $1, 'order-fell', 'KRW', 0, $2, 'sweep', $2)`, fell, s.clock.Now())
	s.clock.Advance(10*time.Minute + time.Second)
	reads("a void, and a deposit that fell back", list.Mirror.Poll, 0)

	key := s.paid("order-hidden", 1000)
	s.canceled(key, 400)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.clock.Advance(10 * time.Minute)
	reads("as young as the list's lag", list.Mirror.Poll, 0)
	s.clock.Advance(time.Second)
	opened := s.another(func(c *reconcile.Config) { hides(c); c.OpeningAt = s.clock.Now().Add(-time.Minute) })
	reads("before the opening", opened.Mirror.Poll, 0)
	reads("older", list.Mirror.Poll, 1)
	s.audit(reconcile.ScopeRecent)
	if there, paid := s.mismatches(ledger.KindCancelMissingThere), s.mismatches(ledger.KindOrderWithoutPayment); there != 1 || paid != 1 {
		t.Errorf("two reads lack a sale and its cancel: got %d and %d mismatches", paid, there)
	}
	reads("known", list.Mirror.Poll, 1)
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = $1, resolved_as = 'accepted', note = 'agreed'`, s.clock.Now())
	reads("accepted", list.Mirror.Poll, 1)
	reads("accepted, at night", list.Mirror.Reread, 1)
	s.exec(`UPDATE mismatches SET resolved_as = 'fixed'`)
	reads("said to be mended", list.Mirror.Poll, 2)
	reads("listed at last", s.Mirror.Poll, 2)
	if n := s.number(`SELECT count(*) FROM mirror WHERE order_id = 'order-hidden'`); n != 2 {
		t.Errorf("%d rows were read", n)
	}
}

// TestPoll_AKnownRowThatBecomesUnreadable: the list has the row, so no read is short of it and nothing says that it is
// gone. What it says now is a mismatch, and one only.
func TestPoll_AKnownRowThatBecomesUnreadable(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.paid("order-1", 10_000)
	s.clock.Advance(time.Minute)
	s.poll()
	s.clock.Advance(11 * time.Minute)
	odd := s.another(func(c *reconcile.Config) {
		c.Gateway = &paged{Gateway: s.client, change: func(_ int, page *pgclient.Page) error {
			for _, r := range page.Rows {
				page.Quarantined = append(page.Quarantined, pgclient.QuarantinedRow{
					TransactionKey: r.TransactionKey, PaymentKey: r.PaymentKey, OrderID: r.OrderID, Word: r.Word, Amount: "10000.5",
					Currency: "KRW", At: r.At, Problem: "half a won",
				})
			}
			page.Rows = nil
			return nil
		}}
	})
	for _, before := range []string{"shown", "gone before"} {
		_, err := odd.Mirror.Poll(t.Context())
		s.must(err)
		unreadable, gone := s.mismatches(ledger.KindQuarantined), s.mismatches(ledger.KindHistoryChanged)
		if failed := s.number(`SELECT count(*) FROM list_runs WHERE result = 'failed'`); failed != 0 || unreadable != 1 || gone != 0 {
			t.Errorf("%s: %d reads are taken for short, %d mismatches unreadable and %d gone", before, failed, unreadable, gone)
		}
		if n := s.number(`SELECT count(*) FROM mirror WHERE missing_since IS NOT NULL`); n != 0 {
			t.Errorf("%s: %d rows are missing", before, n)
		}
		s.exec(`UPDATE mirror SET missing_since = $1`, s.clock.Now())
	}
}
