package app_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// pauses are how long the quiet takes: the sender's whole plan of redelivery, then past every last chance and watch.
func pauses() []time.Duration {
	return append([]time.Duration{45 * time.Second}, append(tosssim.RedeliverySchedule(), time.Hour, 25*time.Hour, 25*time.Hour)...)
}

// quiesce lets time pass after all trouble is over: every notice is delivered as its sender plans, everything owed is
// asked for, the list is read, the last chances come.
func (w *world) quiesce() {
	w.Helper()
	w.sim.Heal()
	w.sim.SetDelivery(tosssim.DeliveryPlan{Parallel: 4})
	for _, pause := range pauses() {
		w.clock.Advance(pause)
		w.sim.DeliverDue(w.Context())
		w.must(w.app.Tidy(w.Context()))
		w.readListUnlessPaused()
		w.sweep()
		w.must(w.app.SettleAcceptances(w.Context()))
	}
	w.sim.SetDelivery(tosssim.DeliveryPlan{Hold: true})
}

func (w *world) readList() {
	w.Helper()
	w.must(w.app.ReadList(w.Context()))
}

// readListUnlessPaused leaves a list alone whose gateway said a moment ago, before it was healed, that it is asked too
// often. The next pause is longer than what it asked for.
func (w *world) readListUnlessPaused() {
	w.Helper()
	if err := w.app.ReadList(w.Context()); !errors.Is(err, reconcile.ErrPaused) {
		w.must(err)
	}
}

// requireAgreed holds both books against each other when nothing moves any more: the identity holds with nothing
// unexplained and nothing broken, money moved at the gateway exactly as often as in the books, and nothing is owed but
// the kinds of work that the gateway itself keeps open.
func (w *world) requireAgreed(open ...ledger.WorkKind) {
	w.Helper()
	w.readList()
	s, err := w.app.AuditAll(w.Context())
	w.must(err)
	if s.Verdict != reconcile.VerdictReconciled && (len(open) == 0 || s.Verdict != reconcile.VerdictPending) {
		w.Errorf("got the verdict %s %v, want reconciled", s.Verdict, s.Reasons)
	}
	for _, sum := range s.Sums {
		if !sum.Holds() || sum.Unexplained != (reconcile.Figure{}) {
			w.Errorf("the identity does not hold: %+v", sum)
		}
	}
	if broken := s.Line(reconcile.LineBreaks, ledger.KRW); broken.Count != 0 {
		w.Errorf("got breaks: %+v", broken.Entries)
	}
	if diff := cmp.Diff(w.gatewayTotals(), w.bookTotals()); diff != "" {
		w.Errorf("the money at the gateway and in the books differs (-gateway +books):\n%s", diff)
	}
	w.requireNothingOwed(open)
	if repaired := series(w, w.app.Registry())["daesa_reconcile_work_repaired_total{}"]; repaired != 0 {
		w.Errorf("%v payments in doubt had nobody who asks", repaired)
	}
	w.requireOneKeyPerGeneration()
}

// totals is what moved, in number and in won.
type totals struct {
	Captures, Captured, Cancels, Canceled int64
}

func (w *world) gatewayTotals() totals {
	t := w.sim.Totals()
	return totals{int64(t.Captures), t.Captured["KRW"], int64(t.Cancels), t.Canceled["KRW"]}
}

func (w *world) bookTotals() totals {
	w.Helper()
	return totals{
		w.number(`SELECT count(*) FROM captures WHERE reversed_at IS NULL`),
		w.number(`SELECT COALESCE(sum(amount), 0)::bigint FROM captures WHERE reversed_at IS NULL`),
		w.number(`SELECT count(*) FROM cancels WHERE amount > 0`),
		w.number(`SELECT COALESCE(sum(amount), 0)::bigint FROM cancels`),
	}
}

// requireNothingOwed finds no open work but of the kinds given, and over accounts that nothing is doubted of: those that
// wait are asked about until their time is over, and deposits for a month.
func (w *world) requireNothingOwed(but []ledger.WorkKind) {
	w.Helper()
	kinds := make([]string, len(but))
	for i, kind := range but {
		kinds[i] = string(kind)
	}
	owed := w.text(`
		SELECT COALESCE(string_agg(kind || ' of ' || payment_key || ': ' || last_answer, '; '), '')
		FROM work
		LEFT JOIN payments p USING (payment_key)
		WHERE closed_at IS NULL AND kind <> ALL($1) AND NOT (kind = 'deposit_watch' AND p.status IN ('waiting_for_deposit', 'done')
			AND p.waiting_seen_at IS NULL AND p.money_seen_at IS NULL)`, kinds)
	if owed != "" {
		w.Errorf("still owed: %s", owed)
	}
	if n := w.number(`SELECT count(*) FROM deliveries WHERE outcome = 'received'`); n != 0 {
		w.Errorf("%d deliveries have no outcome", n)
	}
}

// requireOneKeyPerGeneration holds what the gateway saw against the books: each confirm carried the key of a generation
// that the payment has had, and each of our cancels the key of its own request.
func (w *world) requireOneKeyPerGeneration() {
	w.Helper()
	for key, calls := range w.keysSent(tosssim.Confirm) {
		p := w.payment(key)
		if p.Attempt < 1 || len(calls) > p.Generation {
			w.Errorf("payment %s was sent under %v in %d attempts of %d generations", key, calls, p.Attempt, p.Generation)
		}
		for sent := range calls {
			if want := fmt.Sprintf("confirm-%s-", key); len(sent) <= len(want) || sent[:len(want)] != want {
				w.Errorf("payment %s was sent under %s", key, sent)
			}
		}
	}
}

// keysSent is the idempotency keys of an operation that the gateway saw, by payment, and how often.
func (w *world) keysSent(op tosssim.Op) map[string]map[string]int {
	sent := make(map[string]map[string]int)
	for _, call := range w.sim.Calls() {
		if call.Op != op {
			continue
		}
		if sent[call.PaymentKey] == nil {
			sent[call.PaymentKey] = make(map[string]int)
		}
		sent[call.PaymentKey][call.IdempotencyKey]++
	}
	return sent
}
