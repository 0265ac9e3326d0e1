package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestPoll_EveryPageIsRead: 101, exactly full and one more; a cancel on the last page is found.
func TestPoll_EveryPageIsRead(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{100, 101, 140} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			t.Parallel()
			s := setup(t, smallPages)
			key := s.paid("order-1", 1000)
			for n := range rows - 2 {
				s.clock.Advance(time.Second)
				s.row(fmt.Sprintf("foreign-%d", n), "pay-x", "x", "WAITING_FOR_DEPOSIT", "0")
			}
			s.clock.Advance(time.Second)
			transaction := s.canceled(key, 0)
			s.clock.Advance(time.Minute)
			p := s.poll()
			if p.Rows != rows || p.Fresh != rows || p.Pages != rows/7+1 {
				t.Errorf("got %+v, want %d rows on %d pages", p, rows, rows/7+1)
			}
			if n := s.number(`SELECT rows FROM list_runs WHERE result = 'complete'`); n != rows {
				t.Errorf("the run says %d rows", n)
			}
			s.sweep()
			if !s.payment(key).HasCancel(transaction) {
				t.Error("the cancel on the last page was not found")
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestPoll_ManyRows reads more than the gateway gives at once.
func TestPoll_ManyRows(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for n := range 5001 {
		s.row(fmt.Sprintf("row-%d", n), "pay-x", "x", "WAITING_FOR_DEPOSIT", "0")
	}
	s.clock.Advance(time.Minute)
	if p := s.poll(); p.Rows != 5001 || p.Pages != 6 {
		t.Errorf("got %+v", p)
	}
}

// TestPoll_FailedReadProvesNothing: whatever is not a whole list is a failed run, moves no cursor, and makes the audit
// say that it cannot tell.
func TestPoll_FailedReadProvesNothing(t *testing.T) {
	t.Parallel()
	faults := map[string]tosssim.Fault{
		"null":           {Kind: tosssim.Body, Body: "null"},
		"object":         {Kind: tosssim.Body, Body: "{}"},
		"html":           {Kind: tosssim.HTML, Code: 200},
		"cut off":        {Kind: tosssim.Garbage},
		"429":            {Kind: tosssim.TooMany},
		"401":            {Kind: tosssim.Status, Code: 401, Body: `{"code":"UNAUTHORIZED_KEY","message":"-"}`},
		"500":            {Kind: tosssim.Status, Code: 500},
		"reset":          {Kind: tosssim.Reset},
		"silence":        {Kind: tosssim.Hang},
		"cursor refused": {Kind: tosssim.Status, Code: 400, Body: `{"code":"INVALID_TRANSACTION_KEY","message":"-"}`},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 1000)
			s.clock.Advance(time.Minute)
			s.poll()
			s.canceled(key, 0)
			s.clock.Advance(time.Minute)
			fault.Op, fault.N = tosssim.List, -1
			s.sim.Fail(fault)
			if _, err := s.Mirror.Poll(t.Context()); err == nil {
				t.Fatal("no error")
			}
			if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'failed' AND error <> ''`); n != 1 {
				t.Errorf("got %d failed runs", n)
			}
			if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictIncomplete {
				t.Errorf("got %s, want incomplete", st.Verdict)
			}
			s.sim.Heal()
			s.clock.Advance(time.Hour)
			s.poll()
			s.sweep()
			if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled {
				t.Errorf("got %s %v, want reconciled after the next read", st.Verdict, st.Reasons)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestPoll_ShortReadIsReadAgain: a list that lacks what it had is not believed at once. The second time it is, and the
// audit breaks; when the rows are back, so is the peace.
func TestPoll_ShortReadIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, times := range []int{1, 2} {
		t.Run(fmt.Sprint(times, " times empty"), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			for n := range 30 {
				s.canceled(s.paid(orderID(n), 1000), 0)
			}
			s.clock.Advance(time.Minute)
			s.poll()
			s.sweep()
			s.clock.Advance(10 * time.Minute)
			s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.EmptyArray, N: times})
			s.poll()
			st := s.audit(reconcile.ScopeRecent)
			if times == 1 {
				if st.Verdict != reconcile.VerdictReconciled || s.number(`SELECT count(*) FROM list_runs WHERE result = 'failed'`) != 1 {
					t.Errorf("got %s, want the second read believed and the first kept as failed", st.Verdict)
				}
				return
			}
			if n := s.number(`SELECT missing FROM list_runs ORDER BY run_id DESC LIMIT 1`); n != 60 {
				t.Errorf("the run says %d missing, want 60", n)
			}
			if st.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindHistoryChanged) != 60 {
				t.Errorf("got %s and %d mismatches, want breaks and 60", st.Verdict, s.mismatches(ledger.KindHistoryChanged))
			}
			if n := s.number(`SELECT count(*) FROM payments WHERE status = 'canceled'`); n != 30 {
				t.Errorf("%d of 30 are still canceled: absence must undo nothing", n)
			}
			s.clock.Advance(time.Minute)
			s.poll()
			st = s.audit(reconcile.ScopeRecent)
			if st.Verdict != reconcile.VerdictReconciled || s.mismatches(ledger.KindHistoryChanged) != 0 {
				t.Errorf("back again: got %s and %d mismatches", st.Verdict, s.mismatches(ledger.KindHistoryChanged))
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// TestPoll_RowsFlickerWithinTheLag: what the list shows and hides again while it is young says nothing; when it is
// still hidden afterwards, it is gone.
func TestPoll_RowsFlickerWithinTheLag(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	s.poll()
	s.exec(`
		INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		VALUES ('flicker', $1, 'order-1', 'cancel', 'CANCELED', 'KRW', 1000, false, $2, '2026-11-30', $2, $2, 0)`, key, s.clock.Now().Add(-30*time.Second))
	s.clock.Advance(time.Minute)
	s.poll()
	if n := s.number(`SELECT count(*) FROM mirror WHERE missing_since IS NOT NULL`); n != 0 || s.mismatches(ledger.KindHistoryChanged) != 0 {
		t.Errorf("%d rows younger than the list's lag are taken for gone", n)
	}
	s.clock.Advance(11 * time.Minute)
	s.poll()
	if n := s.number(`SELECT count(*) FROM mirror WHERE missing_since IS NOT NULL`); n != 1 || s.mismatches(ledger.KindHistoryChanged) != 1 {
		t.Errorf("got %d rows marked as gone, want the one that did not come back", n)
	}
}

// TestPoll_EmptyWhereBooksHaveMoney: the very first read is empty although our books have cancels there.
func TestPoll_EmptyWhereBooksHaveMoney(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.canceled(key, 0)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.clock.Advance(30 * time.Minute)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.EmptyArray, N: -1})
	s.poll()
	if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'failed'`); n != 1 {
		t.Errorf("got %d failed runs, want the first read doubted", n)
	}
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictBreaks || s.mismatches(ledger.KindCancelMissingThere) != 1 {
		t.Errorf("got %s and %d mismatches", st.Verdict, s.mismatches(ledger.KindCancelMissingThere))
	}
	s.sim.Heal()
	_, err := s.Mirror.Reread(t.Context())
	s.must(err)
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled || s.mismatches(ledger.KindCancelMissingThere) != 0 {
		t.Errorf("got %s and %d mismatches after the list is back", st.Verdict, s.mismatches(ledger.KindCancelMissingThere))
	}
}

// TestPoll_NegativeCancelRows: the sign is not documented; the amount is the same either way.
func TestPoll_NegativeCancelRows(t *testing.T) {
	t.Parallel()
	s := setup(t, negativeRows)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Second)
	s.canceled(key, 400)
	s.clock.Advance(time.Minute)
	s.poll()
	s.sweep()
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled || st.Sums[0].Gateway.Amount != 400 {
		t.Errorf("got %s %+v", st.Verdict, st.Sums)
	}
	if n := s.number(`SELECT count(*) FROM mirror WHERE negative`); n != 1 {
		t.Errorf("got %d negative rows", n)
	}
}

// readBeforeShown is a shop with a canceled payment, whose list was read before it shows the two.
func readBeforeShown(t *testing.T) *shop {
	t.Helper()
	s := setup(t, lagging)
	key := s.paid("order-1", 1000)
	s.canceled(key, 0)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.clock.Advance(time.Minute)
	s.poll()
	return s
}

// TestPoll_LateRows: a row that becomes visible after its window was read is found by the next poll.
func TestPoll_LateRows(t *testing.T) {
	t.Parallel()
	s := readBeforeShown(t)
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled || st.Line(reconcile.LineNotListed, ledger.KRW).Count != 1 {
		t.Errorf("within the lag: got %s %+v", st.Verdict, st.Lines)
	}
	s.clock.Advance(5 * time.Minute)
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Line(reconcile.LineApplied, ledger.KRW).Count != 1 {
		t.Errorf("after it: got %+v", st.Lines)
	}
}

// TestPoll_LateRowsAfterAnOutage: the minutes that are read again are those before the last read that was complete, however
// long ago. A row that became visible while the list could not be read is in none of the stretches that were never read.
func TestPoll_LateRowsAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := readBeforeShown(t)
	s.clock.Advance(20 * time.Minute)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Status, Code: 500, N: -1})
	if _, err := s.Mirror.Poll(t.Context()); err == nil {
		t.Fatal("no error")
	}
	s.sim.Heal()
	s.clock.Advance(2 * time.Minute)
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled || st.Line(reconcile.LineApplied, ledger.KRW).Count != 1 {
		t.Errorf("got %s %v %+v", st.Verdict, st.Reasons, st.Lines)
	}
}

// moving adds a row to the gateway's list between two pages.
type moving struct {
	reconcile.Gateway
	between func(page int)
	pages   int
}

func (g *moving) Transactions(ctx context.Context, from, to time.Time, after string, limit int) (pgclient.Page, error) {
	g.between(g.pages)
	g.pages++
	return g.Gateway.Transactions(ctx, from, to, after, limit)
}

// TestPoll_ListMovesWhileRead: rows that appear while pages are read are neither lost nor doubled.
func TestPoll_ListMovesWhileRead(t *testing.T) {
	t.Parallel()
	s := setup(t, smallPages)
	at := s.clock.Now()
	for n := range 30 {
		s.row(fmt.Sprintf("row-%d", n), "pay-x", "x", "WAITING_FOR_DEPOSIT", "0")
	}
	s.clock.Advance(time.Minute)
	r := s.another(func(c *reconcile.Config) {
		c.PageSize = 7
		c.Gateway = &moving{Gateway: s.client, between: func(page int) {
			now := s.clock.Now()
			s.clock.Set(at.Add(-time.Second)) // earlier than everything read so far: this read cannot see it
			s.row(fmt.Sprintf("early-%d", page), "pay-x", "x", "WAITING_FOR_DEPOSIT", "0")
			s.clock.Set(now)
		}}
	})
	_, err := r.Mirror.Poll(t.Context())
	s.must(err)
	s.clock.Advance(time.Minute)
	s.poll()
	if n := s.number(`SELECT count(*) FROM mirror`); n != 35 {
		t.Errorf("got %d rows, want all 35", n)
	}
}

// TestPoll_ForeignRows: other systems on the same merchant id are counted and left alone.
func TestPoll_ForeignRows(t *testing.T) {
	t.Parallel()
	s := setup(t, sharedID)
	s.row("f1", "pay-f", "other-1", "DONE", "5000")
	s.row("f2", "pay-f", "other-1", "CANCELED", "5000")
	s.clock.Advance(time.Minute)
	s.poll()
	st := s.audit(reconcile.ScopeAll)
	if st.Verdict != reconcile.VerdictReconciled || st.Looked.ForeignRows != 2 || s.number(`SELECT count(*) FROM work`) != 0 {
		t.Errorf("got %s %+v", st.Verdict, st.Looked)
	}
	if n := s.number(`SELECT count(*) FROM mismatches`); n != 0 {
		t.Errorf("got %d mismatches", n)
	}
}

// TestPoll_BeforeTheBooksOpened: what happened before belongs to the system before us.
func TestPoll_BeforeTheBooksOpened(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.clock.Set(noon().Add(-3 * time.Hour))
	s.row("old", "pay-o", "order-old", "DONE", "5000")
	s.row("older", "pay-o", "order-old", "CANCELED", "5000")
	s.clock.Set(noon())
	_, err := s.Mirror.Backfill(t.Context(), noon().Add(-48*time.Hour), noon())
	s.must(err)
	s.poll()
	if st := s.audit(reconcile.ScopeAll); st.Verdict != reconcile.VerdictReconciled || len(st.Sums) != 0 {
		t.Errorf("got %s %+v", st.Verdict, st.Sums)
	}
	if n := s.number(`SELECT count(*) FROM work`) + s.number(`SELECT count(*) FROM mismatches`); n != 0 {
		t.Errorf("got %d rows of work and mismatches", n)
	}
}

// TestPoll_MoneyOfNobody: a listed capture whose order is not in our books is a mismatch at once.
func TestPoll_MoneyOfNobody(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.row("t1", "pay-n", "order-nobody", "DONE", "5000")
	s.clock.Advance(time.Minute)
	s.poll()
	if n := s.mismatches(ledger.KindPaymentWithoutOrder); n != 1 {
		t.Errorf("got %d mismatches", n)
	}
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictBreaks {
		t.Errorf("got %s", st.Verdict)
	}
}

// TestPoll_CaptureOfOurOrder: money for an order of ours, paid by a confirm that never reached us, is adopted.
func TestPoll_CaptureOfOurOrder(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 1000, tosssim.Card)
	s.must(s.sim.Approve(key))
	s.clock.Advance(time.Minute)
	s.poll()
	if st := s.audit(reconcile.ScopeRecent); st.Verdict == reconcile.VerdictBreaks || st.Captures[0].Pending.Count != 1 {
		t.Errorf("before: got %s %+v", st.Verdict, st.Captures)
	}
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusDone {
		t.Errorf("got %s", p.Status)
	}
	if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled || !st.CapturesOpen || len(st.Captures) != 0 {
		t.Errorf("after: got %s %+v", st.Verdict, st.Captures)
	}
	if st := s.audit(reconcile.ScopeAll); st.Verdict != reconcile.VerdictReconciled || st.Captures[0].Booked.Count != 1 {
		t.Errorf("in full: got %s %+v", st.Verdict, st.Captures)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestPoll_LearnsCaptureKeys: a capture first seen together with its cancel has no key until the list names it.
func TestPoll_LearnsCaptureKeys(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.order("order-1", 1000, tosssim.Card)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply})
	s.send(s.intend("order-1", key, 1000))
	s.canceled(key, 0)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.clock.Advance(time.Minute)
	s.poll()
	if n := s.number(`SELECT count(*) FROM captures c JOIN mirror g USING (transaction_key) WHERE g.kind = 'capture'`); n != 1 {
		t.Error("the capture did not learn its key")
	}
	ledgertest.RequireSound(t, s.db)
}

// TestPoll_ChangedHistory: money that reads differently the second time keeps its first reading and is a mismatch.
func TestPoll_ChangedHistory(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.row("t1", "pay-1", "order-1", "CANCELED", "1000")
	s.clock.Advance(time.Minute)
	s.poll()
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: fmt.Sprintf(
		`[{"transactionKey":"t1","paymentKey":"pay-1","orderId":"order-1","status":"CANCELED","transactionAt":%q,"currency":"KRW","amount":2000}]`,
		s.clock.Now().Format(time.RFC3339))})
	s.clock.Advance(time.Minute)
	s.poll()
	if n := s.mismatches(ledger.KindHistoryChanged); n != 1 || s.number(`SELECT amount FROM mirror`) != 1000 {
		t.Errorf("got %d mismatches and %d", n, s.number(`SELECT amount FROM mirror`))
	}
}

// TestPoll_ApprovalRowFollowsItsPayment: the list may write the present status into the row of the approval. The cancel
// has a row of its own, so nothing has changed and nothing is counted twice.
func TestPoll_ApprovalRowFollowsItsPayment(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.clock.Advance(time.Minute)
	s.poll()
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: fmt.Sprintf(
		`[{"transactionKey":%q,"paymentKey":%q,"orderId":"order-1","status":"CANCELED","transactionAt":%q,"currency":"KRW","amount":1000},
		  {"transactionKey":%q,"paymentKey":%q,"orderId":"order-1","status":"CANCELED","transactionAt":%q,"currency":"KRW","amount":1000}]`,
		s.text(`SELECT transaction_key FROM captures`), key, noon().Format(time.RFC3339),
		s.canceled(key, 0), key, s.clock.Now().Format(time.RFC3339))})
	s.clock.Advance(time.Minute)
	s.poll()
	s.sweep()
	st := s.audit(reconcile.ScopeRecent)
	if n := s.number(`SELECT count(*) FROM mismatches`); n != 0 || st.Verdict != reconcile.VerdictReconciled || st.Sums[0].Gateway.Count != 1 {
		t.Errorf("got %d mismatches, %s %+v", n, st.Verdict, st.Sums)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestPoll_ApprovalRowFirstReadAfterACancel: the same where the list is first read when the payment is canceled already.
func TestPoll_ApprovalRowFirstReadAfterACancel(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	cancel := s.canceled(key, 400)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: fmt.Sprintf(
		`[{"transactionKey":%q,"paymentKey":%q,"orderId":"order-1","status":"PARTIAL_CANCELED","transactionAt":%q,"currency":"KRW","amount":1000},
		  {"transactionKey":%q,"paymentKey":%q,"orderId":"order-1","status":"PARTIAL_CANCELED","transactionAt":%q,"currency":"KRW","amount":400}]`,
		s.text(`SELECT transaction_key FROM captures`), key, noon().Format(time.RFC3339), cancel, key, s.clock.Now().Format(time.RFC3339))})
	s.clock.Advance(time.Minute)
	s.poll()
	s.sweep()
	st := s.audit(reconcile.ScopeRecent)
	if n := s.number(`SELECT count(*) FROM mismatches`); n != 0 || st.Verdict != reconcile.VerdictReconciled || st.Sums[0].Gateway.Count != 1 {
		t.Errorf("got %d mismatches, %s %+v", n, st.Verdict, st.Sums)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestPoll_OddRows: words never heard of are kept and judged by nobody; money that cannot be held exactly is
// quarantined, never rounded.
func TestPoll_OddRows(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.row("t1", "pay-1", "order-1", "SOMETHING_NEW", "1000")
	s.row("t2", "pay-2", "order-2", "CANCELED", "10.5")
	s.clock.Advance(time.Minute)
	p := s.poll()
	if p.Rows != 2 || p.Quarantined != 1 || s.mismatches(ledger.KindQuarantined) != 1 {
		t.Errorf("got %+v and %d quarantined", p, s.mismatches(ledger.KindQuarantined))
	}
	if n := s.mismatches(ledger.KindUnrecognized); n != 1 {
		t.Errorf("got %d mismatches about the unknown word", n)
	}
	if got := s.text(`SELECT kind FROM mirror`); got != "unrecognized" {
		t.Errorf("got kind %s", got)
	}
}

// TestPoll_OneAtATime: a second process finds the list being read and leaves it.
func TestPoll_OneAtATime(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var inside reconcile.Polled
	r := s.another(func(c *reconcile.Config) {
		c.Gateway = &moving{Gateway: s.client, between: func(int) { inside = s.poll() }}
	})
	s.clock.Advance(time.Minute)
	p, err := r.Mirror.Poll(t.Context())
	if err != nil || p.Busy || !inside.Busy {
		t.Errorf("got %+v, %+v and %v", p, inside, err)
	}
	if p := s.poll(); p.Busy {
		t.Error("the lock was not freed")
	}
}

// TestPoll_AfterAPause reads day after day, and stops at the first window that fails.
func TestPoll_AfterAPause(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	s.clock.Advance(60 * time.Hour)
	if p := s.poll(); p.Windows != 3 {
		t.Errorf("got %d windows", p.Windows)
	}
	s.clock.Advance(60 * time.Hour)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.TooMany})
	if p, err := s.Mirror.Poll(t.Context()); err == nil || p.Windows != 1 {
		t.Errorf("got %d windows and %v", p.Windows, err)
	}
	var failure *pgclient.Error
	s.clock.Advance(2 * time.Minute)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.TooMany})
	if _, err := s.Mirror.Poll(t.Context()); !errors.As(err, &failure) || failure.Reason != pgclient.ReasonRateLimited {
		t.Errorf("got %v", err)
	}
	s.clock.Advance(2 * time.Minute)
	if p := s.poll(); p.Windows != 3 {
		t.Errorf("got %d windows: a failed read must not move the end", p.Windows)
	}
}

// TestPoll_MakesUpForAnEarlierOpening: an opening that is set after the first read is read from in the end, the newest
// first, and the audit can tell.
func TestPoll_MakesUpForAnEarlierOpening(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	r := s.another(func(c *reconcile.Config) { c.OpeningAt = noon().Add(-10 * 24 * time.Hour) })
	verdict := func() reconcile.Verdict {
		st, err := r.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeAll})
		s.must(err)
		return st.Verdict
	}
	for _, want := range []reconcile.Verdict{reconcile.VerdictIncomplete, reconcile.VerdictReconciled} {
		s.clock.Advance(time.Minute)
		p, err := r.Mirror.Poll(t.Context())
		s.must(err)
		if got := verdict(); got != want || p.Windows > 8 {
			t.Errorf("got %s after %d windows, want %s", got, p.Windows, want)
		}
	}
	s.clock.Advance(time.Minute)
	if p, err := r.Mirror.Poll(t.Context()); err != nil || p.Windows != 1 {
		t.Errorf("got %d windows and %v, want the newest alone", p.Windows, err)
	}
}

// TestRereadNightly: once a night, whatever became of the ticks before.
func TestRereadNightly(t *testing.T) {
	t.Parallel()
	s := setup(t)
	windows := func() int {
		p, err := s.Mirror.RereadNightly(t.Context())
		if err != nil {
			return -1
		}
		return p.Windows
	}
	s.poll()
	if got := windows(); got != 4 {
		t.Errorf("never done: got %d windows", got)
	}
	s.clock.Advance(16 * time.Hour) // four at night
	if got := windows(); got != 0 {
		t.Errorf("done since the night before: got %d windows", got)
	}
	s.clock.Advance(time.Hour)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.TooMany})
	if got := windows(); got != -1 {
		t.Errorf("refused: got %d windows", got)
	}
	s.clock.Advance(10 * time.Minute)
	if got := windows(); got != 4 {
		t.Errorf("not done tonight: got %d windows", got)
	}
	s.clock.Advance(23 * time.Hour)
	if got := windows(); got != 0 {
		t.Errorf("done tonight: got %d windows", got)
	}
}
