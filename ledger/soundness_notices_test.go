package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// delivered keeps a delivery, as the handler of notices does.
func (b *books) delivered(outcome, reason, body string) {
	b.t.Helper()
	_, err := b.pool.Exec(b.t.Context(), `
		INSERT INTO deliveries (received_at, source, payment_key, body, body_hash, body_bytes, outcome, reason)
		VALUES (@now, '127.0.0.1', 'pk_1', NULLIF(@body, '')::jsonb, '', 0, @outcome, @reason)`,
		pgx.StrictNamedArgs{"now": b.now, "body": body, "outcome": outcome, "reason": reason})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *books) requireViolations(want ...string) {
	b.t.Helper()
	violations, err := ledger.Check(b.t.Context(), b.pool)
	if err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, v := range violations {
		got = append(got, v.Invariant+" "+v.Detail)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// TestCheck_AcknowledgedNoticesAreInTheBooks: a 200 for a cancel that the books lack is found, whatever other cancel the
// payment has.
func TestCheck_AcknowledgedNoticesAreInTheBooks(t *testing.T) {
	t.Parallel()
	const beside = `{"data":{"cancels":[{"transactionKey":"c1","cancelStatus":"DONE"},{"transactionKey":"c2","cancelStatus":"ABORTED"}]}}`
	const both = `{"data":{"cancels":[{"transactionKey":"c1","cancelStatus":"DONE"},{"transactionKey":"c2","cancelStatus":"DONE"}]}}`
	for _, c := range []struct {
		name, body string
		cancels    []ledger.ObservedCancel
		want       []string
	}{
		{"no cancel", "", nil, []string{"I9 duplicate_skipped without a cancel in the books"}},
		{"another cancel", both, []ledger.ObservedCancel{done("c1", 1_000)}, []string{"I9 duplicate_skipped without cancel c2"}},
		{"its cancels", both, []ledger.ObservedCancel{done("c1", 1_000), done("c2", 1_000)}, nil},
		{"nothing left", both, []ledger.ObservedCancel{done("c1", 50_000)}, nil},
		{"given up", beside, []ledger.ObservedCancel{done("c1", 1_000)}, nil},
		{"one cannot be named", `{"data":{"cancels":[{"transactionKey":"c2","cancelStatus":"DONE"},{}]}}`, []ledger.ObservedCancel{done("c1", 1_000)}, nil},
		{"callback of another cancel", `{"orderId":"order_1","transactionKey":"c2"}`, []ledger.ObservedCancel{done("c1", 1_000)}, []string{"I9 duplicate_skipped without cancel c2"}},
		{"callback", `{"orderId":"order_1","transactionKey":"c1"}`, []ledger.ObservedCancel{done("c1", 1_000)}, nil},
		{"one cancel", `{"data":{"transactionKey":"c2"}}`, []ledger.ObservedCancel{done("c1", 1_000)}, []string{"I9 duplicate_skipped without cancel c2"}},
		{"the payment's own key", `{"data":{"paymentKey":"pk_1","transactionKey":"t"}}`, []ledger.ObservedCancel{done("c1", 1_000)}, nil},
		{"odd list", `{"data":{"cancels":"none"}}`, []ledger.ObservedCancel{done("c1", 1_000)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.sold("pk_1", "order_1", 50_000, 0)
			b.record(b.captured("pk_1", "order_1", 50_000, c.cancels...))
			b.delivered("duplicate_skipped", "", c.body)
			b.requireViolations(c.want...)
		})
	}
}

// TestCheck_RefusedNoticesAreOwed: a refused notice whose cancel nobody asks about is found.
func TestCheck_RefusedNoticesAreOwed(t *testing.T) {
	t.Parallel()
	const named = `{"data":{"cancels":[{"transactionKey":"c1"}]}}`
	for _, c := range []struct {
		name, reason, body string
		work               []string // the cancels of open claims
		old                bool     // the claims were closed before the notice came
		booked             string
		lost               bool
	}{
		{name: "nobody asks", body: named, lost: true},
		{name: "nobody asks, no name", lost: true},
		{name: "nobody asks, a callback", body: `{"transactionKey":"c1"}`, work: []string{"c2"}, lost: true},
		{name: "somebody asks about another cancel", body: named, work: []string{"c2"}, lost: true},
		{name: "somebody asked before", body: named, work: []string{"c1"}, old: true, lost: true},
		{name: "another cancel is booked", body: named, booked: "c2", lost: true},
		{name: "given up", reason: "given_up", body: named},
		{name: "its claim", body: named, work: []string{"c2", "c1"}},
		{name: "the claim without a name", body: named, work: []string{""}},
		{name: "no name, some claim", work: []string{"c2"}},
		{name: "booked", body: named, booked: "c1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.sold("pk_1", "order_1", 50_000, 0)
			if c.booked != "" {
				b.record(b.captured("pk_1", "order_1", 50_000, done(c.booked, 1_000)))
			}
			for _, key := range c.work {
				b.open(claim("pk_1", key))
			}
			if c.old {
				if _, err := b.pool.Exec(t.Context(), `UPDATE work SET closed_at = $1, closed_as = 'refuted' WHERE kind = 'cancel_claimed'`, b.now); err != nil {
					t.Fatal(err)
				}
			}
			b.now = b.now.Add(time.Minute)
			b.delivered("query_failed", c.reason, c.body)
			if c.lost {
				b.requireViolations("I9 query_failed and nobody asks")
				return
			}
			b.requireViolations()
		})
	}
}
