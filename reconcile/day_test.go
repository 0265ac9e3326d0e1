package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient"
	"daesa/reconcile"
)

// monday is the first business day of every shop.
const monday = ledger.Day("2026-11-30")

func (s *shop) closeDay(day ledger.Day) reconcile.Statement {
	s.t.Helper()
	st, err := s.Auditor.Close(s.t.Context(), day)
	s.must(err)
	return st
}

// overnight moves to twenty past midnight after a day and reads the list.
func (s *shop) overnight(day ledger.Day) {
	s.t.Helper()
	s.clock.Set(day.End().Add(20 * time.Minute))
	s.poll()
}

// late is a cancel that happened on Monday and that the list shows only now.
func (s *shop) late(key string, won int64) (transactionKey string) {
	s.t.Helper()
	now := s.clock.Now()
	s.clock.Set(monday.End().Add(-time.Millisecond))
	transactionKey = s.canceled(key, won)
	s.clock.Set(now)
	return transactionKey
}

func (s *shop) reread() {
	s.t.Helper()
	_, err := s.Mirror.Reread(s.t.Context())
	s.must(err)
}

func (s *shop) keyOf(order string) string {
	s.t.Helper()
	return s.text(`SELECT payment_key FROM payments WHERE order_id = $1`, order)
}

// TestClose_SaysWhatChanged: a closing run says what the day did not say in its earlier run: figures before and after,
// and every transaction that is new, gone or otherwise. A run that finds nothing new says so.
func TestClose_SaysWhatChanged(t *testing.T) {
	t.Parallel()
	s := setup(t, patient)
	first, second := s.paid("order-1", 1000), s.paid("order-2", 2000)
	s.clock.Advance(time.Minute)
	early := s.canceled(first, 400)
	s.overnight(monday)
	if st := s.closeDay(monday); st.Since != nil || st.Digest == "" || st.Verdict != reconcile.VerdictPending {
		t.Fatalf("the first run: got %s, digest %q, since %+v", st.Verdict, st.Digest, st.Since)
	}
	again := s.closeDay(monday)
	if again.Since == nil || !again.Since.Nothing() || again.Since.Digest != again.Digest {
		t.Errorf("nothing happened: got %+v", again.Since)
	}

	late := s.late(second, 700)
	s.clock.Advance(time.Hour)
	s.reread()
	s.record(s.ask(ledger.ChannelWebhook, first))
	s.exec(`DELETE FROM mirror WHERE kind = 'capture' AND order_id = 'order-2'`)
	st := s.closeDay(monday)
	want := reconcile.Since{
		RunID: again.RunID, Verdict: reconcile.VerdictPending, Digest: again.Digest, New: 1, Gone: 0, Changed: 2,
		Figures: []reconcile.FigureChange{
			{Name: "gateway", Currency: ledger.KRW, Before: reconcile.Figure{Count: 1, Amount: 400}, After: reconcile.Figure{Count: 2, Amount: 1100}},
			{Name: "canceled", Currency: ledger.KRW, After: reconcile.Figure{Count: 1, Amount: 400}},
			{Name: "pending", Currency: ledger.KRW, Before: reconcile.Figure{Count: 1, Amount: 400}, After: reconcile.Figure{Count: 1, Amount: 700}},
			{Name: "breaks", Currency: ledger.KRW, After: reconcile.Figure{Count: 1, Amount: 2000}},
			{Name: "captures_listed", Currency: ledger.KRW, Before: reconcile.Figure{Count: 2, Amount: 3000}, After: reconcile.Figure{Count: 1, Amount: 1000}},
			{Name: "captures_booked", Currency: ledger.KRW, Before: reconcile.Figure{Count: 2, Amount: 3000}, After: reconcile.Figure{Count: 1, Amount: 1000}},
		},
		Entries: []reconcile.Change{
			{
				Movement: reconcile.MovementCapture, OrderID: "order-2", PaymentKey: second,
				Before: &reconcile.Stood{Standing: reconcile.StandingApplied, Listed: "2000 KRW", Booked: "2000 KRW"},
				After:  &reconcile.Stood{Standing: reconcile.StandingBreaks, Booked: "2000 KRW"},
			},
			{
				Movement: reconcile.MovementCancel, OrderID: "order-1", PaymentKey: first, TransactionKey: early,
				Before: &reconcile.Stood{Standing: reconcile.StandingPending, Listed: "400 KRW"},
				After:  &reconcile.Stood{Standing: reconcile.StandingApplied, Listed: "400 KRW", Booked: "400 KRW"},
			},
			{
				Movement: reconcile.MovementCancel, OrderID: "order-2", PaymentKey: second, TransactionKey: late,
				After: &reconcile.Stood{Standing: reconcile.StandingPending, Listed: "700 KRW"},
			},
		},
	}
	captureKey := cmpopts.IgnoreFields(reconcile.Change{}, "At")
	if st.Since == nil {
		t.Fatal("says nothing of the earlier run")
	}
	want.Entries[0].TransactionKey = st.Since.Entries[0].TransactionKey
	if diff := cmp.Diff(want, *st.Since, captureKey, cmpopts.IgnoreFields(reconcile.Since{}, "StartedAt")); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
	var text strings.Builder
	s.must(st.WriteText(&text))
	for _, says := range []string{"since run", "1 new, 0 gone, 2 changed", "pending (listed 400 KRW, booked not) -> applied (400 KRW)", "not there -> pending (listed 700 KRW, booked not)", st.Digest} {
		if !strings.Contains(text.String(), says) {
			t.Errorf("the text does not say %q:\n%s", says, text.String())
		}
	}
	if kept := s.text(`SELECT statement->'since'->>'new' FROM audit_runs WHERE run_id = $1`, st.RunID); kept != "1" {
		t.Errorf("the run kept %s", kept)
	}
}

// TestClose_ARunThatSawLittleForgetsNothing: a run that could not see the whole day neither says nor changes what the day
// said, and the next one is compared with the last that could.
func TestClose_ARunThatSawLittleForgetsNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.canceled(key, 0)
	s.record(s.ask(ledger.ChannelWebhook, key))
	s.overnight(monday)
	first := s.closeDay(monday)
	s.exec(`UPDATE list_covered SET stretches = '{}'`)
	s.exec(`CREATE TABLE kept AS TABLE mirror`)
	s.exec(`DELETE FROM mirror`)
	blind := s.closeDay(monday)
	if blind.Digest != "" || blind.Since != nil || blind.Verdict == reconcile.VerdictReconciled {
		t.Errorf("saw nothing and says %s, digest %q, since %+v", blind.Verdict, blind.Digest, blind.Since)
	}
	s.exec(`INSERT INTO mirror TABLE kept`)
	s.exec(`UPDATE list_covered SET stretches = tstzmultirange(tstzrange('2026-11-01', '2027-01-01'))`)
	s.exec(`DELETE FROM mismatches`)
	seeing := s.closeDay(monday)
	if seeing.Digest != first.Digest || seeing.Since.RunID != first.RunID || !seeing.Since.Nothing() {
		t.Errorf("got %s since %+v, want the first run's %s", seeing.Digest, seeing.Since, first.Digest)
	}
}

// TestClose_LateRowsComeIn: what is late in either book opens the day again, and the run says that it is new.
func TestClose_LateRowsComeIn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	s.overnight(monday)
	s.close()
	transaction := s.late(key, 300)
	s.clock.Advance(4 * time.Hour)
	s.reread()
	s.sweep()
	days := s.close()
	if len(days) != 1 || days[0].Day != monday || days[0].Since == nil {
		t.Fatalf("got %+v", days)
	}
	since := days[0].Since
	if since.New != 1 || since.Changed+since.Gone != 0 || since.Entries[0].TransactionKey != transaction ||
		since.Entries[0].After.Standing != reconcile.StandingApplied || since.Entries[0].Before != nil {
		t.Errorf("got %+v", since)
	}
}

// shuffling answers the rows of every page in another order than the gateway does.
type shuffling struct{ reconcile.Gateway }

func (g shuffling) Transactions(ctx context.Context, from, to time.Time, after string, limit int) (pgclient.Page, error) {
	page, err := g.Gateway.Transactions(ctx, from, to, after, limit)
	r := rand.New(rand.NewPCG(7, 7))
	r.Shuffle(len(page.Rows), func(i, j int) { page.Rows[i], page.Rows[j] = page.Rows[j], page.Rows[i] })
	return page, err
}

// dollars puts a paid and canceled order in dollars into both books: the simulator's checkout is in won.
func (s *shop) dollars(order string, cents int64) {
	s.t.Helper()
	at := s.clock.Now()
	amount := ledger.Money{Minor: cents, Currency: ledger.USD}
	s.exec(`INSERT INTO orders (order_id, status, currency, amount, created_at, expires_at) VALUES ($1, 'paid', 'USD', $2, $3, $3)`, order, cents, at)
	s.exec(`INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, created_at, updated_at)
		VALUES ('pay-' || $1, $1, 'done', 'USD', $2::bigint, $2::bigint, $3::timestamptz, $3)`, order, cents, at)
	s.exec(`INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
		VALUES ('pay-' || $1::text, 1, 'taken-' || $1::text, 'USD', $2, $3, 'confirm', $3)`, order, cents, at)
	s.exec(`INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
		VALUES ('back-' || $1::text, 'pay-' || $1::text, $1, 'USD', $2, $3, 'webhook', $3)`, order, cents, at)
	for name, status := range map[string]string{"taken-": "DONE", "back-": "CANCELED"} {
		s.must(s.sim.PutTransaction(fmt.Appendf(nil, `{"mId":"tsimshop01","transactionKey":%q,"paymentKey":%q,"orderId":%q,
			"method":"카드","status":%q,"transactionAt":%q,"currency":"USD","amount":%s}`,
			name+order, "pay-"+order, order, status, at.Format(time.RFC3339), amount.Decimal())))
	}
	s.journalled()
}

// closedDays are the bytes of the newest closed statement of each day.
func (s *shop) closedDays() map[string]string {
	s.t.Helper()
	rows, err := s.db.Query(s.t.Context(), `
		SELECT DISTINCT ON (day) to_char(day, 'YYYY-MM-DD') AS day, convert_from(closed, 'UTF8') AS closed
		FROM audit_runs
		WHERE closed IS NOT NULL
		ORDER BY day, run_id DESC`)
	s.must(err)
	type closedDay struct {
		Day    string `db:"day"`
		Closed string `db:"closed"`
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[closedDay])
	s.must(err)
	days := make(map[string]string, len(found))
	for _, d := range found {
		days[d.Day] = d.Closed
	}
	return days
}

// TestClose_AMirrorReadAnewSaysTheSame: the closed statements of all days, with pending, late and foreign rows and two
// currencies in them, are the same bytes when the mirror was deleted and read again, in whatever order its rows come.
func TestClose_AMirrorReadAnewSaysTheSame(t *testing.T) {
	t.Parallel()
	s := setup(t, patient, sharedID)
	from := s.clock.Now().Add(-time.Hour)
	for d := range 3 {
		for n := range 5 {
			key := s.paid(orderID(10*d+n), int64(1000+n))
			s.clock.Advance(time.Minute)
			if n > 0 {
				s.canceled(key, int64(100*n))
			}
			if n > 1 {
				s.record(s.ask(ledger.ChannelWebhook, key))
			}
			s.clock.Advance(time.Minute)
		}
		s.dollars(fmt.Sprintf("order-usd%d", d), 1999)
		s.row(fmt.Sprint("foreign-", d), "pay-f", "other-shop", "DONE", "5000")
		s.row(fmt.Sprint("foreign-back-", d), "pay-f", "other-shop", "CANCELED", "5000")
		s.clock.Advance(2 * time.Hour)
		s.poll()
		s.clock.Set(ledger.DayOf(s.clock.Now()).Next().Start().Add(15 * time.Minute))
		s.poll()
		s.close()
		s.clock.Set(ledger.DayOf(s.clock.Now()).Start().Add(12 * time.Hour))
	}
	s.late(s.keyOf("order-0000"), 50)
	s.record(s.ask(ledger.ChannelWebhook, s.keyOf("order-0001")))
	s.reread()
	s.poll()
	s.clock.Advance(2 * time.Hour)
	s.poll()
	s.close()
	s.clock.Advance(20 * time.Minute)
	s.close()
	before := s.closedDays()
	if len(before) != 3 || !strings.Contains(before["2026-11-30"], "USD canceled 1 1999") || !strings.Contains(before["2026-11-30"], "KRW pending 1 50") ||
		!strings.Contains(before["2026-12-02"], "verdict reconciled_with_pending") {
		t.Fatalf("the days say too little to be compared: %v", before)
	}

	for name, gateway := range map[string]reconcile.Gateway{"as it comes": s.client, "shuffled": shuffling{s.client}} {
		s.exec(`DELETE FROM mirror`)
		s.exec(`DELETE FROM list_runs`)
		s.exec(`DELETE FROM list_covered`)
		s.clock.Advance(3 * time.Hour)
		r := s.another(func(c *reconcile.Config) { c.Gateway, c.PageSize = gateway, 7 })
		if _, err := r.Mirror.Backfill(t.Context(), from, s.clock.Now()); err != nil {
			t.Fatal(err)
		}
		for day := range before {
			st, err := r.Auditor.Close(t.Context(), ledger.Day(day))
			s.must(err)
			if st.Digest == "" || !st.Since.Nothing() {
				t.Errorf("%s, %s: got %s %v, since %+v", name, day, st.Verdict, st.Reasons, st.Since)
			}
		}
		if diff := cmp.Diff(before, s.closedDays()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
	if n := s.number(`SELECT count(*) FROM day_rows WHERE gone_run IS NOT NULL`); n == 0 {
		t.Error("no row ever stood otherwise: the test tries too little")
	}
}

// TestClose_TwiceAtOnceIsTheSame: runs of one day that are started together come one after the other and say the same.
func TestClose_TwiceAtOnceIsTheSame(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for n := range 3 {
		key := s.paid(orderID(n), 1000)
		s.canceled(key, 0)
		s.record(s.ask(ledger.ChannelWebhook, key))
	}
	s.overnight(monday)
	var together sync.WaitGroup
	statements := make([]reconcile.Statement, 4)
	errs := make([]error, len(statements))
	for n := range statements {
		r := s.another(func(*reconcile.Config) {})
		together.Go(func() { statements[n], errs[n] = r.Auditor.Close(t.Context(), monday) })
	}
	together.Wait()
	firsts := 0
	for n, st := range statements {
		s.must(errs[n])
		if st.Digest != statements[0].Digest || st.Verdict != reconcile.VerdictReconciled {
			t.Errorf("run %d: got %s and %s, want the same of all", st.RunID, st.Verdict, st.Digest)
		}
		if st.Since == nil {
			firsts++
		} else if !st.Since.Nothing() {
			t.Errorf("run %d: got %+v, want nothing new", st.RunID, st.Since)
		}
	}
	if rows := s.number(`SELECT count(*) FROM day_rows`); firsts != 1 || rows != 6 {
		t.Errorf("got %d first runs and %d rows, want 1 and 6", firsts, rows)
	}
}

// TestClose_WaitsNoLongerThanAMoment: a run that another one keeps waiting gives up and says so.
func TestClose_WaitsNoLongerThanAMoment(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.overnight(monday)
	s.tx(func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, int64(0x6461657361_02)); err != nil {
			return err
		}
		st, err := s.Auditor.Close(t.Context(), monday)
		if err == nil || !strings.Contains(err.Error(), reconcile.ErrClosingBusy.Error()) || st.Verdict != "" {
			t.Errorf("got %q and %v", st.Verdict, err)
		}
		return nil
	})
	if n := s.number(`SELECT count(*) FROM audit_runs`); n != 0 {
		t.Errorf("got %d runs kept", n)
	}
}

// TestCloseDays_OneDayDoesNotHoldUpTheOthers: a day that cannot be read is reported, and the later ones are closed.
func TestCloseDays_OneDayDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.overnight(monday)
	s.overnight("2026-12-01")
	s.exec(`ALTER TABLE audit_runs ADD CONSTRAINT no_monday CHECK (day IS DISTINCT FROM '2026-11-30' OR verdict = 'error')`)
	days, err := s.Auditor.CloseDays(t.Context())
	if err == nil || len(days) != 1 || days[0].Day != "2026-12-01" {
		t.Errorf("got %+v and %v", days, err)
	}
	if got := s.text(`SELECT string_agg(day || ' ' || verdict, ', ' ORDER BY run_id) FROM audit_runs`); got != "2026-11-30 error, 2026-12-01 reconciled" {
		t.Errorf("got %s", got)
	}
}
