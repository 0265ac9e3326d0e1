package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// paged lets a test change, or break off, a page of the gateway's list, counted from 1.
type paged struct {
	reconcile.Gateway
	pages  int
	change func(number int, page *pgclient.Page) error
}

func (g *paged) Transactions(ctx context.Context, from, to time.Time, after string, limit int) (pgclient.Page, error) {
	page, err := g.Gateway.Transactions(ctx, from, to, after, limit)
	if err != nil {
		return page, err
	}
	g.pages++
	return page, g.change(g.pages, &page)
}

// onPages is an instance that sees changed pages, and the day after a busy one.
func (s *shop) onPages(change func(number int, page *pgclient.Page) error) (*reconcile.Reconciler, *paged) {
	s.t.Helper()
	pages := &paged{Gateway: s.client, change: change}
	s.clock.Set(monday.End().Add(20 * time.Minute))
	return s.another(func(c *reconcile.Config) { c.Gateway = pages }), pages
}

// busyDay is a day with a number of rows on a shared merchant id. The last two are a sale and a cancel of ours, which is
// booked.
func busyDay(t *testing.T, rows, pageSize int) (s *shop, transactionKey string) {
	t.Helper()
	s = setup(t, sharedID, func(c *reconcile.Config, _ *tosssim.Config) { c.PageSize = pageSize })
	words := []string{"DONE", "CANCELED", "WAITING_FOR_DEPOSIT"}
	for n := range rows - 2 {
		if n%100 == 0 {
			s.clock.Advance(time.Minute)
		}
		s.row(fmt.Sprintf("row-%05d", n), fmt.Sprintf("pay-%05d", n), "other", words[n%3], fmt.Sprint(1000+n%7))
	}
	s.clock.Advance(time.Minute)
	key := s.paid("order-1", 5000)
	s.clock.Advance(time.Second)
	transactionKey = s.canceled(key, 0)
	s.record(s.ask(ledger.ChannelWebhook, key))
	return s, transactionKey
}

// TestClose_TheLastPageCounts: what differs on the last of many pages is found, whatever the number of rows leaves on it,
// and the day says how much of either book it saw.
func TestClose_TheLastPageCounts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rows, pageSize, pages int }{
		{101, 100, 2}, {5000, 5000, 2}, {5001, 5000, 2}, {12_345, 5000, 3}, // 5,000 is the most the gateway gives
	} {
		t.Run(fmt.Sprint(test.rows), func(t *testing.T) {
			t.Parallel()
			s, transactionKey := busyDay(t, test.rows, test.pageSize)
			changed := 0
			r, pages := s.onPages(func(_ int, page *pgclient.Page) error {
				for i := range page.Rows {
					if page.Rows[i].TransactionKey == transactionKey {
						page.Rows[i].Amount = ledger.Won(4999)
						changed++
					}
				}
				return nil
			})
			if p, err := r.Mirror.Poll(t.Context()); err != nil || p.Rows != test.rows || pages.pages != test.pages || changed != 1 {
				t.Fatalf("got %+v on %d pages, %d changed, and %v", p, pages.pages, changed, err)
			}
			st := s.closeDay(monday)
			if st.Verdict != reconcile.VerdictBreaks || st.Line(reconcile.LineBreaks, ledger.KRW).Count != 1 || s.mismatches(ledger.KindAmountDiffers) != 1 {
				t.Errorf("got %s %+v, want one difference", st.Verdict, st.Lines)
			}
			if st.Looked.Rows != test.rows || st.Looked.ForeignRows != test.rows-2 || st.Looked.Cancels != 1 {
				t.Errorf("got %+v", st.Looked)
			}
			var text strings.Builder
			s.must(st.WriteText(&text))
			if says := fmt.Sprintf("%d rows (%d foreign), 1 cancels of ours", test.rows, test.rows-2); !strings.Contains(text.String(), says) {
				t.Errorf("the text does not say %q:\n%s", says, text.String())
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestClose_AReadThatStopsEarlyIsNotClean: a page that does not come leaves a failed read and a day that cannot be told;
// one that is too short, so that the read seems whole, is noticed by what our books have, and believed when the next read
// is as short: then our own cancel is without its counterpart.
func TestClose_AReadThatStopsEarlyIsNotClean(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		change  func(number int, page *pgclient.Page) error
		fails   bool
		verdict reconcile.Verdict
		failed  int
		missing int
	}{
		{"the last page fails", func(number int, page *pgclient.Page) error {
			if number < 3 {
				return nil
			}
			*page = pgclient.Page{}
			return &pgclient.Error{Reason: pgclient.ReasonTimeout, Detail: "no answer"}
		}, true, reconcile.VerdictIncomplete, 1, 0},
		{"the second page is short", func(number int, page *pgclient.Page) error {
			if number == 2 {
				page.Rows, page.Full = page.Rows[:10], false
			}
			return nil
		}, false, reconcile.VerdictReconciled, 1, 0},
		{"the second page is short, twice", func(number int, page *pgclient.Page) error {
			if number == 2 || number == 4 {
				page.Rows, page.Full = page.Rows[:10], false
			}
			return nil
		}, false, reconcile.VerdictBreaks, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, _ := busyDay(t, 205, 100)
			r, _ := s.onPages(test.change)
			if _, err := r.Mirror.Poll(t.Context()); (err != nil) != test.fails {
				t.Errorf("got %v", err)
			}
			if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'failed'`); n != test.failed {
				t.Errorf("got %d failed reads, want %d", n, test.failed)
			}
			st := s.closeDay(monday)
			if st.Verdict != test.verdict || s.mismatches(ledger.KindCancelMissingThere) != test.missing {
				t.Errorf("got %s and %d missing there, want %s and %d", st.Verdict, s.mismatches(ledger.KindCancelMissingThere), test.verdict, test.missing)
			}
			s.clock.Advance(time.Minute)
			s.reread()
			if st := s.closeDay(monday); st.Verdict != reconcile.VerdictReconciled || s.mismatches(ledger.KindCancelMissingThere) != 0 {
				t.Errorf("after a whole read: got %s %v", st.Verdict, st.Reasons)
			}
		})
	}
}
