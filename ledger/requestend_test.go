package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// TestMismatch_EndsARequestThatNobodyWillKnow: a person states by evidence what came of a cancel of ours. It is done
// only with a cancel that is in the books, and asking stops.
func TestMismatch_EndsARequestThatNobodyWillKnow(t *testing.T) {
	t.Parallel()
	refused := &ledger.RequestEnd{Status: ledger.CancelRequestRefused}
	doneAs := func(key string) *ledger.RequestEnd {
		return &ledger.RequestEnd{Status: ledger.CancelRequestDone, TransactionKey: key}
	}
	tests := []struct {
		name   string
		status ledger.CancelRequestStatus // of the request before
		asked  time.Duration              // before now
		note   string
		end    *ledger.RequestEnd
		err    error
		want   ledger.CancelRequestStatus
		work   string
	}{
		{"never happened", ledger.CancelRequestUnknown, time.Hour, "Toss says so", refused, nil, ledger.CancelRequestRefused, "refuted"},
		{"happened under a key that is booked", ledger.CancelRequestUnknown, time.Hour, "Toss says so", doneAs("c1"), nil, ledger.CancelRequestDone, "settled"},
		{"nothing stated: asking goes on", ledger.CancelRequestUnknown, time.Hour, "n", nil, nil, ledger.CancelRequestUnknown, "open"},
		{"happened, and the books have no such cancel", ledger.CancelRequestUnknown, time.Hour, "n", doneAs("c9"), ledger.ErrRequestEnd, ledger.CancelRequestUnknown, "open"},
		{"happened with another amount", ledger.CancelRequestUnknown, time.Hour, "n", doneAs("c2"), ledger.ErrRequestEnd, ledger.CancelRequestUnknown, "open"},
		{"happened as another request's cancel", ledger.CancelRequestUnknown, time.Hour, "n", doneAs("c3"), ledger.ErrRequestEnd, ledger.CancelRequestUnknown, "open"},
		{"happened, under no key", ledger.CancelRequestUnknown, time.Hour, "n", doneAs(""), ledger.ErrRequestEnd, ledger.CancelRequestUnknown, "open"},
		{"never happened, under a key", ledger.CancelRequestUnknown, time.Hour, "n", &ledger.RequestEnd{Status: ledger.CancelRequestRefused, TransactionKey: "c1"}, ledger.ErrRequestEnd, ledger.CancelRequestUnknown, "open"},
		{"no reason", ledger.CancelRequestUnknown, time.Hour, "", refused, ledger.ErrNote, ledger.CancelRequestUnknown, "open"},
		{"under way", ledger.CancelSending, time.Hour, "n", refused, ledger.ErrRequestEnd, ledger.CancelSending, "open"},
		{"just being asked about", ledger.CancelRequestUnknown, time.Second, "n", refused, ledger.ErrRequestEnd, ledger.CancelRequestUnknown, "open"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.sold("pk_1", "order_1", 50_000, 0)
			b.asked("req-1", "pk_1", 10_000)
			b.answer("req-1", ledger.CancelRequestUnknown, "")
			b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 10_000), done("c2", 5_000), done("c3", 10_000)))
			b.exec(`
				INSERT INTO cancel_requests (request_id, payment_key, status, currency, amount, refundable, reason, transaction_key, requested_by, created_at, updated_at)
				VALUES ('req-2', 'pk_1', 'done', 'KRW', 10000, 10000, 'x', 'c3', 'm', now(), now())`)
			b.exec(`UPDATE cancel_requests SET status = '` + string(test.status) + `' WHERE request_id = 'req-1'`)
			b.exec(`UPDATE work SET last_asked_at = '` + b.now.Add(-test.asked).Format(time.RFC3339Nano) + `' WHERE request_id = 'req-1'`)
			f := found(1, 10_000)
			f.PaymentKey, f.TransactionKey = "pk_1", ledger.RequestSubject("req-1")
			b.found("sweep", f)
			_, err := b.step(1, ledger.Change{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed, Note: test.note, Request: test.end})
			if !errors.Is(err, test.err) {
				t.Errorf("got error %v, want %v", err, test.err)
			}
			if m := b.mismatch(1); (m.Status == ledger.MismatchResolved) != (test.err == nil) {
				t.Errorf("got %s after %v", m.Status, err)
			}
			if got := b.request("req-1"); got.Status != test.want {
				t.Errorf("got %s, want %s", got.Status, test.want)
			}
			if diff := cmp.Diff([]string{test.work}, b.list(`SELECT COALESCE(closed_as, 'open') FROM work WHERE request_id = 'req-1'`)); diff != "" {
				t.Errorf("work (-want +got):\n%s", diff)
			}
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// TestMismatch_EndOfARequestNeedsTheSecondPersonToo: until then nothing is stated of the request.
func TestMismatch_EndOfARequestNeedsTheSecondPersonToo(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 5_000_000, 0)
	b.asked("req-1", "pk_1", 2_000_000)
	b.answer("req-1", ledger.CancelRequestUnknown, "")
	f := found(1, 2_000_000)
	f.PaymentKey, f.TransactionKey = "pk_1", ledger.RequestSubject("req-1")
	b.found("sweep", f)
	end := &ledger.RequestEnd{Status: ledger.CancelRequestRefused}
	if _, err := b.step(1, ledger.Change{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed, Note: "Toss says so", Request: end}); err != nil {
		t.Fatal(err)
	}
	if got := b.request("req-1"); got.Status != ledger.CancelRequestUnknown {
		t.Errorf("got %s by one person's word", got.Status)
	}
	if _, err := b.step(1, ledger.Change{Step: ledger.StepConfirm, By: "os:lee"}); err != nil {
		t.Fatal(err)
	}
	if got := b.request("req-1"); got.Status != ledger.CancelRequestRefused || got.Answer != "by hand, os:lee: Toss says so" {
		t.Errorf("got %s %q, want refused", got.Status, got.Answer)
	}
}
