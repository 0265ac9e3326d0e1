package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestEvidence_OfBothSides: a mismatch about a transaction shows what either book has of it, and nothing of a book that has
// nothing.
func TestEvidence_OfBothSides(t *testing.T) {
	t.Parallel()
	s := setup(t)
	keyOf := func(payment string) string {
		return s.text(`SELECT transaction_key FROM captures WHERE payment_key = $1`, payment)
	}
	amount, currency, there, changed := s.paid("order-1", 1000), s.paid("order-2", 1000), s.paid("order-3", 1000), s.paid("order-4", 1000)
	back := s.paid("order-5", 1000)
	canceled := s.canceled(back, 400)
	s.record(s.ask(ledger.ChannelWebhook, back))
	less := s.canceled(s.paid("order-6", 1000), 300)
	s.record(s.ask(ledger.ChannelWebhook, s.text(`SELECT payment_key FROM payments WHERE order_id = 'order-6'`)))
	s.row("K1", "pay-1", "order-x", "DONE", "5000")
	s.clock.Advance(time.Minute)
	s.poll()
	s.exec(`UPDATE captures SET amount = 900 WHERE payment_key = $1`, amount)
	s.exec(`UPDATE captures SET currency = 'USD' WHERE payment_key = $1`, currency)
	s.exec(`UPDATE cancels SET amount = 200 WHERE transaction_key = $1`, less)
	s.exec(`DELETE FROM mirror WHERE payment_key = $1`, there)
	s.clock.Advance(12 * time.Minute)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Body, N: 2, Body: fmt.Sprintf(
		`[{"transactionKey":%q,"paymentKey":%q,"orderId":"order-4","status":"DONE","transactionAt":%q,"currency":"KRW","amount":2000}]`,
		keyOf(changed), changed, noon().Format(time.RFC3339))})
	s.poll()
	s.audit(reconcile.ScopeRecent)

	const (
		none      = `{"present": false}`
		at        = `{"at": "2026-11-30T03:00:00Z", `
		confirmed = `"channel": "confirm", "present": true, "currency": "KRW"}`
		noticed   = `"channel": "webhook", "present": true, "currency": "KRW"}`
	)
	for _, want := range []struct {
		name           string
		kind           ledger.Kind
		transaction    string
		gateway, books string
	}{
		{
			"another amount", ledger.KindAmountDiffers, keyOf(amount),
			at + `"word": "DONE", "amount": "1000", "present": true, "currency": "KRW"}`, at + `"amount": "900", ` + confirmed,
		},
		{
			"another currency", ledger.KindCurrencyDiffers, keyOf(currency),
			at + `"word": "DONE", "amount": "1000", "present": true, "currency": "KRW"}`,
			at + `"amount": "10.00", "channel": "confirm", "present": true, "currency": "USD"}`,
		},
		{
			"only listed", ledger.KindPaymentWithoutOrder, "K1",
			at + `"word": "DONE", "amount": "5000", "present": true, "currency": "KRW"}`, none,
		},
		{"only booked", ledger.KindOrderWithoutPayment, keyOf(there), none, at + `"amount": "1000", ` + confirmed},
		{
			"a row that changed", ledger.KindHistoryChanged, keyOf(changed),
			at + `"word": "DONE", "amount": "2000", "present": true, "currency": "KRW", "payment_key": "` + changed + `"}`,
			at + `"amount": "1000", ` + confirmed,
		},
		{
			"a capture that vanished", ledger.KindHistoryChanged, keyOf(back),
			at + `"kind": "capture", "word": "DONE", "amount": "1000", "present": false, "currency": "KRW"}`, at + `"amount": "1000", ` + confirmed,
		},
		{
			"a cancel that vanished", ledger.KindHistoryChanged, canceled,
			at + `"word": "PARTIAL_CANCELED", "amount": "400", "present": false, "currency": "KRW"}`, at + `"amount": "400", ` + noticed,
		},
		{
			"a cancel of another amount, that vanished as well", ledger.KindAmountDiffers, less,
			at + `"word": "PARTIAL_CANCELED", "amount": "300", "present": false, "currency": "KRW"}`, at + `"amount": "200", ` + noticed,
		},
	} {
		got := s.text(`SELECT concat(gateway - 'transaction_key', ' | ', books - 'transaction_key') FROM mismatches
			WHERE kind = $1 AND transaction_key = $2`, want.kind, want.transaction)
		if got != want.gateway+" | "+want.books {
			t.Errorf("%s:\ngot  %s\nwant %s | %s", want.name, got, want.gateway, want.books)
		}
	}
	if n := s.number(`SELECT count(*) FROM mismatches WHERE gateway ->> 'transaction_key' <> transaction_key OR books ->> 'transaction_key' <> transaction_key`); n != 0 {
		t.Errorf("%d show another transaction's key", n)
	}
	if got := s.text(`SELECT detail FROM mismatches WHERE kind = 'amount_differs' AND detail LIKE 'the capture%'`); got != "the capture is 1000 KRW at the gateway and 900 KRW here" {
		t.Errorf("got %q", got)
	}
}
