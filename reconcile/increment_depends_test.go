package reconcile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/reconcile"
)

// TestIncrement_WhatDependsOnIt: what a change makes of another key, and what time alone makes of one, is in the audit
// of the next minute.
func TestIncrement_WhatDependsOnIt(t *testing.T) {
	t.Parallel()
	//nolint:dupword // one time in several columns
	const (
		listed = `INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
			SELECT 'g', 'pay-1', 'order-1', 'cancel', 'CANCELED', 'KRW', 1000, false, at, (at AT TIME ZONE 'Asia/Seoul')::date, at, at, 1 FROM noon`
		listedCapture = `INSERT INTO mirror (transaction_key, payment_key, order_id, kind, word, currency, amount, negative, at, day, first_seen_at, last_seen_at, first_run)
			SELECT 'k', 'pay-1', 'order-1', 'capture', 'DONE', 'KRW', 1000, false, at, (at AT TIME ZONE 'Asia/Seoul')::date, at, at, 1 FROM noon`
		captured = `INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
			SELECT 'pay-1', 1, 'g', 'KRW', 1000, at, 'confirm', at FROM noon`
		voided = `INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, channel, recorded_at)
			SELECT 'b', 'pay-1', 'order-1', 'KRW', 0, at, 'webhook', at FROM noon`
		claimed = `INSERT INTO work (kind, payment_key, transaction_key, currency, amount, opened_at, due_at, deadline)
			SELECT 'cancel_claimed', 'pay-1', 'g', 'KRW', 1000, at, at, at + interval '4 days' FROM noon`
		doubted = `INSERT INTO work (kind, payment_key, currency, amount, opened_at, due_at, deadline)
			SELECT 'confirm_unknown', 'pay-1', 'KRW', 1000, at, at, at + interval '1 hour' FROM noon`
	)
	tests := []struct {
		name   string
		before []string
		change string
		after  time.Duration
	}{
		{"a void is listed under another key", []string{voided}, listed, 0},
		{"a listed cancel is a void no more", []string{`UPDATE payments SET virtual_account = true`, listed}, captured, 0},
		{"a capture is listed by the row of a cancel", []string{captured}, listed, 0},
		{"a capture is in the books no more", []string{captured, `UPDATE captures SET transaction_key = NULL`, listedCapture}, `DELETE FROM captures`, 0},
		{"just found, to the second", []string{listed, claimed}, "", time.Minute},
		{"the notice did not come", []string{listed, claimed, `UPDATE work SET opened_at = at - interval '1 hour', notice_attempt = 2, notice_next_at = at + interval '20 minutes' FROM noon`}, "", 20 * time.Minute},
		{"past its last chance", []string{listed, claimed}, "", 97 * time.Hour},
		{"in doubt for too long", []string{listedCapture, doubted}, "", 25 * time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.cfg.OpeningAt = noon().Add(-48 * time.Hour)
			s.Reconciler = s.another(func(*reconcile.Config) {})
			s.exec(`INSERT INTO list_covered (stretches) VALUES (tstzmultirange(tstzrange($1, $2, '[]')))`, noon().Add(-50*time.Hour), noon().Add(200*time.Hour))
			s.exec(`CREATE TABLE noon (at timestamptz)`)
			s.exec(`INSERT INTO noon VALUES ($1)`, noon())
			s.exec(`INSERT INTO orders (order_id, currency, amount, created_at, expires_at) SELECT 'order-1', 'KRW', 1000, at, at FROM noon`)
			s.exec(`INSERT INTO payments (payment_key, order_id, status, currency, amount, captured, created_at, updated_at)
				SELECT 'pay-1', 'order-1', 'done', 'KRW', 1000, 1000, at, at FROM noon`)
			for _, sql := range test.before {
				s.exec(sql)
			}
			before := s.agrees("before")
			if test.change != "" {
				s.exec(test.change)
			}
			s.clock.Advance(test.after)
			if after := s.agrees("after"); cmp.Equal(before.Lines, after.Lines) && cmp.Equal(before.Captures, after.Captures) {
				t.Errorf("nothing changed: %+v", after.Lines)
			}
		})
	}
}
