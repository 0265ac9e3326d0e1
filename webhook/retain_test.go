package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"daesa/webhook"
)

// TestRetain: what anybody can make up goes first, notices of our cancels stay for over a year, and what is evidence
// for something open stays as long as it is.
func TestRetain(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	evidence := s.paid(t, "order-0001", 50_000)
	plain := s.paid(t, "order-0002", 50_000)
	const insert = `
		INSERT INTO deliveries (received_at, source, payment_key, word, body, body_hash, body_bytes, outcome)
		VALUES ($1, '127.0.0.1', $2, $3, '{"a":1}', '', 0, $4)`
	for _, days := range []int{1, 31, 91, 200, 397} {
		at := s.clock.Now().Add(-time.Duration(days) * 24 * time.Hour)
		for _, outcome := range []webhook.Outcome{
			webhook.OutcomePaymentNotFound, webhook.OutcomeEventIgnored, webhook.OutcomeStatusIgnored, webhook.OutcomeStateMismatch,
		} {
			if _, err := s.db.Exec(t.Context(), insert, at, plain, fmt.Sprintf("%s %d", outcome, days), outcome); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.db.Exec(t.Context(), insert, at, evidence, fmt.Sprintf("evidence %d", days), webhook.OutcomeStateMismatch); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.Exec(t.Context(), `
		INSERT INTO work (kind, payment_key, opened_at, due_at, deadline, closed_at, closed_as) VALUES
			('cancel_claimed', $1, $2, $2, $3, NULL, NULL),
			('cancel_claimed', $5, $2, $2, $2, $2, 'refuted'),
			('parked', 'pk_young', $2, $3, $3, NULL, NULL),
			('parked', 'pk_over', $2, $2, $2, NULL, NULL),
			('parked', 'pk_old', $2, $2, $2, $4, 'expired'),
			('parked', 'pk_evidence', $2, $2, $2, $4, 'expired')`,
		evidence, s.clock.Now(), s.clock.Now().Add(time.Hour), s.clock.Now().Add(-31*24*time.Hour), plain); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(t.Context(), `
		INSERT INTO mismatches (kind, fingerprint, status, payment_key, detail, opened_at, last_seen_at, changed_at)
		VALUES ('payment_without_order', 'f', 'open', 'pk_evidence', '', $1, $1, $1)`, s.clock.Now()); err != nil {
		t.Fatal(err)
	}
	got, err := s.handler.Retain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Bodies: the three oldest of four outcomes. Deliveries: four of each kind of strangers, three statuses, one cancel.
	if want := (webhook.Retained{Bodies: 12, Deliveries: 12, Expired: 1, Claims: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	left := strings.Join(text(t, s.db, `SELECT word || CASE WHEN body IS NULL THEN ' bare' ELSE '' END FROM deliveries WHERE word <> '' ORDER BY word COLLATE "C"`), "\n")
	want := strings.Join([]string{
		"event_ignored 1", "evidence 1", "evidence 200", "evidence 31", "evidence 397", "evidence 91", "payment_not_found 1",
		"state_mismatch 1", "state_mismatch 200 bare", "state_mismatch 31", "state_mismatch 91 bare", "status_ignored 1", "status_ignored 31",
	}, "\n")
	if left != want {
		t.Errorf("got left\n%s\nwant\n%s", left, want)
	}
	if again, err := s.handler.Retain(t.Context()); again != (webhook.Retained{}) || err != nil {
		t.Errorf("got %+v, %v from a second run, want nothing", again, err)
	}
}

// TestWorkers: the jobs do their work, twice without harm.
func TestWorkers(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	reap, retain := &webhook.ReapWorker{Handler: s.handler}, &webhook.RetainWorker{Handler: s.handler}
	for range 2 {
		if err := reap.Work(t.Context(), &river.Job[webhook.ReapArgs]{}); err != nil {
			t.Error(err)
		}
		if err := retain.Work(t.Context(), &river.Job[webhook.RetainArgs]{}); err != nil {
			t.Error(err)
		}
	}
}
