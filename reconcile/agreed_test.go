package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestAgreed judges each kind that ends by itself: not before the facts prove that both sides agree, and then at once.
func TestAgreed(t *testing.T) {
	t.Parallel()
	const (
		capture = `INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
			VALUES ('cap', 'P', 'order-1', 'capture', 'DONE', 'KRW', 10000, false, now(), '2026-11-30', now(), current_timestamp, 1)`
		later = `UPDATE captures SET recorded_at = recorded_at + interval '2 hours'`
	)
	tests := []struct {
		name    string
		kind    ledger.Kind
		ofKey   string // the mismatch's transaction key
		not     string // facts that prove nothing
		agrees  string // and those that do; "" = it never ends by itself
		wanting string // facts that stand against it meanwhile
	}{
		{"order", ledger.KindOrderDiffers, "", `SELECT 1`, later, ""},
		{"merchant", ledger.KindMerchantDiffers, "", `SELECT 1`, later, ""},
		{"amount of the payment", ledger.KindAmountDiffers, "", `SELECT 1`, later, ""},
		{"currency of the payment", ledger.KindCurrencyDiffers, "", `SELECT 1`, later, ""},
		{"amount that the list has otherwise", ledger.KindAmountDiffers, "", later, `UPDATE mirror SET amount = 10000`, `UPDATE mirror SET amount = 900`},
		{
			"amount of a cancel, seen in an answer", ledger.KindAmountDiffers, "cxl",
			`UPDATE mismatches SET gateway = '{"asked_at": "2026-11-30T00:00:00Z"}'`, later, "",
		},
		{
			"currency of a capture, seen in an answer", ledger.KindCurrencyDiffers, "cap",
			`UPDATE mismatches SET gateway = '{"asked_at": "2026-11-30T00:00:00Z"}'`, later, "",
		},
		{"currency of a capture", ledger.KindCurrencyDiffers, "cap", `SELECT 1`, `UPDATE mirror SET currency = 'KRW'`, `UPDATE mirror SET currency = 'USD'`},
		{
			"money without an order, before the list names it", ledger.KindPaymentWithoutOrder, "", `SELECT 1`,
			`INSERT INTO mismatches (kind, fingerprint, payment_key, transaction_key, status, currency, amount, detail, opened_at, last_seen_at, changed_at)
				SELECT kind, 'other', payment_key, 'cap', status, currency, amount, detail, opened_at, last_seen_at, changed_at FROM mismatches`,
			`DELETE FROM captures`,
		},
		{"currency of a cancel", ledger.KindCurrencyDiffers, "cxl", `SELECT 1`, `UPDATE mirror SET currency = 'KRW'`, `UPDATE mirror SET currency = 'USD'`},
		{
			"paid twice, given back in part", ledger.KindPaidTwice, "", `UPDATE payments SET surplus = true, status = 'partially_canceled', canceled = 3000`,
			`UPDATE payments SET status = 'canceled', canceled = 10000`, `UPDATE payments SET surplus = true`,
		},
		{"paid twice, and the other given back", ledger.KindPaidTwice, "", `SELECT 1`, `UPDATE payments SET surplus = false`, `UPDATE payments SET surplus = true`},
		{
			"credits", ledger.KindCreditsSpent, "", `UPDATE credit_accounts SET granted = granted + 4`, `UPDATE credit_accounts SET granted = granted + 1`,
			`INSERT INTO credit_accounts (customer_id, granted, revoked, spent, updated_at) VALUES ('c', 5, 5, 5, now())`,
		},
		{
			"quarantined row", ledger.KindQuarantined, "cxl", `UPDATE mirror SET kind = 'unrecognized', last_seen_at = '2027-01-01'`,
			`UPDATE mirror SET kind = 'cancel'`, `UPDATE mirror SET last_seen_at = '2020-01-01'`,
		},
		{"quarantined answer", ledger.KindQuarantined, "", `SELECT 1`, later, ""},
		{"word of a row", ledger.KindUnrecognized, "cxl", `UPDATE mirror SET last_seen_at = '2027-01-01'`, `UPDATE mirror SET kind = 'cancel'`, `UPDATE mirror SET kind = 'unrecognized'`},
		{"word of an answer", ledger.KindUnrecognized, "", `SELECT 1`, later, ""},
		{"money for an expired order", ledger.KindPaidAfterExpiry, "", later, "", ""},
		{"a changed history", ledger.KindHistoryChanged, "cxl", later, "", ""},
		{
			"a deposit that is not listed, and fell back", ledger.KindOrderWithoutPayment, "cap", `SELECT 1`, `UPDATE captures SET reversed_at = now()`,
			`UPDATE mirror SET missing_since = now()`,
		},
		{
			"a capture that is not listed, while another of its payment is", ledger.KindOrderWithoutPayment, "cap", `SELECT 1`,
			`UPDATE mirror SET transaction_key = 'cap' WHERE kind = 'capture'`, `UPDATE mirror SET transaction_key = 'other' WHERE kind = 'capture'`,
		},
		{
			"a capture without a name, which is known by it now", ledger.KindOrderWithoutPayment, "",
			`UPDATE captures SET transaction_key = NULL; UPDATE mirror SET missing_since = now()`,
			`UPDATE captures SET transaction_key = 'named'`, "",
		},
		{
			"a deposit whose row is gone, and that fell back", ledger.KindHistoryChanged, "cap",
			`UPDATE mismatches SET detail = 'the list had this row and no longer has it'`, `UPDATE captures SET reversed_at = now()`,
			`UPDATE mirror SET missing_since = now()`,
		},
		{
			"a deposit whose row waits, and that fell back", ledger.KindHistoryChanged, "cap",
			`UPDATE mismatches SET detail = 'the list shows the row of the deposit without money, and the payment object does not'`,
			`UPDATE captures SET reversed_at = now()`, `UPDATE mirror SET waiting_since = now()`,
		},
		{"a history that changed otherwise, of a deposit that fell back", ledger.KindHistoryChanged, "cap", `UPDATE captures SET reversed_at = now()`, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			key := s.paid("order-1", 10_000)
			s.exec(`UPDATE captures SET transaction_key = 'cap'`)
			s.exec(`UPDATE orders SET customer_id = 'c'`)
			s.exec(capture)
			s.exec(strings.NewReplacer("'cap'", "'cxl'", "'capture'", "'cancel'", "10000", "3000").Replace(capture))
			s.exec(`UPDATE mirror SET payment_key = $1`, key)
			s.exec(`INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
				VALUES ('cxl', $1, 'order-1', 'KRW', 3000, $2, 'webhook', $2)`, key, s.clock.Now().Add(-time.Hour))
			s.clock.Advance(time.Hour)
			if test.wanting != "" {
				s.exec(test.wanting)
			}
			s.tx(func(tx pgx.Tx) error {
				b := &pgx.Batch{}
				ledger.QueueMismatch(b, ledger.Finding{Kind: test.kind, PaymentKey: key, OrderID: "order-1", TransactionKey: test.ofKey, AtRisk: ledger.Won(1), Detail: "-"}, s.clock.Now())
				return tx.SendBatch(t.Context(), b).Close()
			})
			s.exec(test.not)
			s.must(s.Sweeper.Tend(t.Context()))
			if s.mismatches(test.kind) != 1 {
				t.Error("it ended with nothing proven")
			}
			if test.agrees == "" {
				return
			}
			s.exec(test.agrees)
			s.must(s.Sweeper.Tend(t.Context()))
			if got := s.text(`SELECT status || ' ' || COALESCE(resolved_as, '-') FROM mismatches WHERE fingerprint <> 'other'`); got != "resolved auto" {
				t.Errorf("got %s, want it resolved by itself", got)
			}
		})
	}
}

// TestAgreed_ChangedRowReadsWellAgain: a row that the list showed otherwise than at first, or in two ways at once, is over when
// a later read comes to its end and shows it as at first: not while it is shown otherwise, and not by a read that failed. What
// a person accepted stays as it was accepted.
func TestAgreed_ChangedRowReadsWellAgain(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 1000)
	row := func(amount int) string {
		return fmt.Sprintf(`{"transactionKey":%q,"paymentKey":%q,"orderId":"order-1","status":"DONE","transactionAt":%q,"currency":"KRW","amount":%d}`,
			s.text(`SELECT transaction_key FROM captures`), key, noon().Format(time.RFC3339), amount)
	}
	read := func() {
		s.clock.Advance(time.Minute)
		s.poll()
	}
	reads := func(body string) {
		s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, Body: body})
		read()
	}
	stands := func(what string, want int) {
		t.Helper()
		s.must(s.Sweeper.Tend(t.Context()))
		st := s.audit(reconcile.ScopeAll)
		if got := s.mismatches(ledger.KindHistoryChanged); got != want || (st.Verdict == reconcile.VerdictReconciled) != (want == 0) {
			t.Errorf("%s: got %d open and %s, want %d", what, got, st.Verdict, want)
		}
	}
	read()
	for what, body := range map[string]string{
		"another amount": `[` + row(2000) + `]`, "two amounts": `[` + row(1000) + `,` + row(2000) + `]`, "the first one last": `[` + row(2000) + `,` + row(1000) + `]`,
	} {
		reads(body)
		stands(what, 1)
		reads(body)
		stands(what+", again", 1)
		read()
		s.exec(`UPDATE list_runs SET result = 'failed' WHERE run_id = (SELECT max(run_id) FROM list_runs)`)
		stands(what+", a read that failed", 1)
		s.exec(`UPDATE list_runs SET result = 'complete', started_at = (SELECT max(last_seen_at) FROM mismatches)
			WHERE run_id = (SELECT max(run_id) FROM list_runs)`)
		stands(what+", a read that began no later", 1)
		read()
		stands(what+", read well", 0)
		if got := s.text(`SELECT resolved_as FROM mismatches`); got != "auto" {
			t.Errorf("%s: got %s", what, got)
		}
	}
	reads(`[` + row(2000) + `]`)
	s.exec(`UPDATE mismatches SET status = 'resolved', resolved_at = $1, resolved_as = 'accepted', note = 'agreed'`, s.clock.Now())
	for _, beside := range []string{"accepted", "accepted, read well"} {
		if st := s.audit(reconcile.ScopeAll); st.Line(reconcile.LineAcceptedBeside, ledger.KRW).Count != 1 {
			t.Errorf("%s: got %s %+v", beside, st.Verdict, st.Lines)
		}
		read()
	}
}
