package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
	"daesa/reconcile"
)

// rows lists a day.
func (s *shop) rows(day ledger.Day) ([]reconcile.Row, reconcile.Statement) {
	s.t.Helper()
	var rows []reconcile.Row
	st, err := s.Auditor.List(s.t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: day}, func(r reconcile.Row) error {
		rows = append(rows, r)
		return nil
	})
	s.must(err)
	return rows, st
}

// colorful is a day with something on every line that a closed day can have.
func (s *shop) colorful() {
	s.t.Helper()
	for n := range 6 {
		key := s.paid(orderID(n), int64(1000*(n+1)))
		s.clock.Advance(time.Minute)
		if n < 5 {
			s.canceled(key, 300)
		}
		if n < 4 {
			s.record(s.ask(ledger.ChannelWebhook, key))
		}
		s.clock.Advance(time.Minute)
	}
	s.row("txrd_nobody", "nobody", "order-none", "DONE", "70")
	s.clock.Set(ledger.Day("2026-12-01").Start().Add(20 * time.Minute))
	s.poll()
	s.clock.Advance(2 * time.Minute)
	s.exec(`UPDATE mirror SET amount = 200 WHERE kind = 'cancel' AND order_id IN ('order-0001', 'order-0002')`)
	s.exec(`INSERT INTO mismatches (kind, fingerprint, status, payment_key, transaction_key, currency, amount, detail, opened_at,
			last_seen_at, resolved_at, resolved_as, note)
		SELECT 'amount_differs', 'f', 'resolved', payment_key, transaction_key, 'KRW', 200, 'the cancel is 200 KRW at the gateway and 300 KRW here', at, last_seen_at, first_seen_at, 'accepted', 'agreed'
		FROM mirror WHERE kind = 'cancel' AND order_id = 'order-0002'`)
	s.exec(`UPDATE mirror SET kind = 'none' WHERE kind = 'cancel' AND order_id = 'order-0003'`)
}

// TestList_AddsUpToTheStatement: every figure of a statement is the sum of the rows listed for it, those that agree too.
func TestList_AddsUpToTheStatement(t *testing.T) {
	t.Parallel()
	s := setup(t, patient)
	s.colorful()
	rows, st := s.rows("2026-11-30")
	type line struct {
		name     reconcile.LineName
		currency ledger.Currency
	}
	sums := make(map[line]reconcile.Figure)
	for _, r := range rows {
		if r.At.IsZero() || r.OrderID == "" || r.PaymentKey == "" || (r.Booked != nil) != (r.Channel != "") ||
			(r.Line == reconcile.LineBreaks) != (r.Kind != "") || (r.Gateway == nil && r.Booked == nil) {
			t.Errorf("the row lacks something: %+v", r)
		}
		at := line{r.Line, r.Currency}
		sums[at] = reconcile.Figure{Count: sums[at].Count + r.Count, Amount: sums[at].Amount + r.Amount}
	}
	want := map[line]reconcile.Figure{}
	for _, l := range st.Lines {
		want[line{l.Name, l.Currency}] = l.Figure
		if len(l.Entries)+l.More == 0 {
			t.Errorf("line %s lists no orders", l.Name)
		}
	}
	for _, taken := range st.Captures {
		for _, name := range reconcile.CaptureLineNames() {
			if f := taken.Line(name); f.Count > 0 {
				want[line{name, taken.Currency}] = f
			}
		}
	}
	if diff := cmp.Diff(want, sums); diff != "" {
		t.Errorf("the rows do not add up to the lines (-want +got):\n%s", diff)
	}
	for _, name := range []reconcile.LineName{
		reconcile.LineApplied, reconcile.LineSweeping, reconcile.LineAccepted, reconcile.LineUnexplained, reconcile.LineBreaks,
		reconcile.LineCapturesBooked, reconcile.LineCapturesMissing,
	} {
		if _, there := sums[line{name, ledger.KRW}]; !there {
			t.Errorf("nothing is on the line %s: the test tries too little", name)
		}
	}
}

// TestList_OneOrder: a day is listed in one order, whatever the order in which its rows lie in the database.
func TestList_OneOrder(t *testing.T) {
	t.Parallel()
	s := setup(t, patient)
	s.colorful()
	before, _ := s.rows("2026-11-30")
	s.exec(`CREATE TABLE kept AS TABLE mirror`)
	s.exec(`DELETE FROM mirror`)
	s.exec(`CREATE FUNCTION shuffle() RETURNS void LANGUAGE plpgsql AS $$ DECLARE r kept; BEGIN
		FOR r IN TABLE kept ORDER BY md5(transaction_key) LOOP INSERT INTO mirror VALUES (r.*); END LOOP; END $$`)
	s.exec(`SELECT shuffle()`)
	s.exec(`UPDATE cancels SET reason = 'written again' WHERE order_id = 'order-0000'`)
	after, _ := s.rows("2026-11-30")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the order changed (-before +after):\n%s", diff)
	}
	inOrder := func(a, b reconcile.Row) int { return a.At.Compare(b.At) }
	cancels := slices.IndexFunc(before, func(r reconcile.Row) bool { return r.Movement == reconcile.MovementCapture })
	if cancels < 5 || !slices.IsSortedFunc(before[:cancels], inOrder) {
		t.Errorf("not in the order in which it happened: %+v", before[:cancels])
	}
}

// TestList_EndsWithItsReader: a reader that gives up ends the list, and a day that is none is refused.
func TestList_EndsWithItsReader(t *testing.T) {
	t.Parallel()
	s := setup(t, patient)
	s.colorful()
	full := errors.New("the disk is full")
	seen := 0
	_, err := s.Auditor.List(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: "2026-11-30"}, func(reconcile.Row) error {
		seen++
		return full
	})
	if !errors.Is(err, full) || seen != 1 {
		t.Errorf("got %v after %d rows", err, seen)
	}
	_, err = s.Auditor.List(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: "yesterday"}, nil)
	if !errors.Is(err, ledger.ErrDay) {
		t.Errorf("got %v", err)
	}
}

// TestStatement_ListsWhatAgrees: the statement of a day lists the orders behind what agrees, bounded; its figure is whole.
func TestStatement_ListsWhatAgrees(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.exec(fmt.Sprintf(history, 100))
	at := noon().Add(-36 * time.Hour)
	s.exec(`UPDATE mirror SET at = $1, day = '2026-11-29'`, at)
	s.exec(`INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
		SELECT 'more-' || n, 'pay-10', 'order-10', 'KRW', 1, $1, 'webhook', $1 FROM generate_series(1, 250) AS n`, at)
	s.exec(`INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
		SELECT 'more-' || n, 'pay-10', 'order-10', 'cancel', 'x', 'KRW', 1, false, $1, '2026-11-29', $1, $1, 1 FROM generate_series(1, 250) AS n`, at)
	r := s.another(func(c *reconcile.Config) { c.OpeningAt = noon().Add(-120 * 24 * time.Hour) })
	st, err := r.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: ledger.DayOf(at)})
	s.must(err)
	applied := st.Line(reconcile.LineApplied, ledger.KRW)
	if applied.Count != 260 || len(applied.Entries) != 200 || applied.More != 60 {
		t.Errorf("got %d, %d listed and %d more", applied.Count, len(applied.Entries), applied.More)
	}
}
