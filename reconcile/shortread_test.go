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
