package ledger_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// TestAccount_IsAskedAboutShortlyAfterItsTime: which the gateway named, or a week when it did not.
func TestAccount_IsAskedAboutShortlyAfterItsTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		due  time.Duration // from now, 0 = the gateway does not say
		want time.Duration
	}{
		{"named", 36 * time.Hour, 36*time.Hour + 5*time.Minute},
		{"not named", 0, 7*24*time.Hour + 5*time.Minute},
		{"over already", -time.Hour, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.order("order_1", 50_000, 0)
			b.intend("pk_1", "order_1", 50_000)
			waiting := b.captured("pk_1", "order_1", 50_000)
			waiting.Evidence, waiting.VirtualAccount = ledger.EvidenceWaiting, true
			if c.due != 0 {
				waiting.DueAt = b.now.Add(c.due)
			}
			b.record(waiting)
			b.record(waiting)
			minutes := b.list(`SELECT round(extract(epoch FROM due_at - opened_at) / 60)::text FROM work WHERE kind = 'deposit_watch' AND deadline > due_at`)
			if want := []string{strconv.Itoa(int(c.want.Minutes()))}; !cmp.Equal(minutes, want) {
				t.Errorf("got the account asked about after %v minutes, want %v", minutes, want)
			}
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// TestAccount_ADepositAfterItsTimeStillWins: the order was freed, and the money came all the same.
func TestAccount_ADepositAfterItsTimeStillWins(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	seen := b.captured("pk_1", "order_1", 50_000)
	seen.Evidence, seen.VirtualAccount, seen.DueAt = ledger.EvidenceWaiting, true, b.now.Add(time.Hour)
	b.record(seen)
	b.now = b.now.Add(2 * time.Hour)
	seen.Evidence, seen.AskedAt, seen.SeenAt = ledger.EvidenceDead, b.now, b.now
	if r := b.record(seen); r.After.Status != ledger.StatusFailed || r.Order.Status != ledger.OrderPending || r.After.Reason != "DEPOSIT_OVERDUE" {
		t.Errorf("got %s (%s) and order %s, want failed and pending", r.After.Status, r.After.Reason, r.Order.Status)
	}
	b.requireWork("deposit_watch - settled")
	seen.Evidence, seen.DueAt = ledger.EvidenceCaptured, time.Time{}
	if r := b.record(seen); r.After.Status != ledger.StatusDone || r.Order.Status != ledger.OrderPaid {
		t.Errorf("got %s and order %s, want done and paid", r.After.Status, r.Order.Status)
	}
	ledgertest.RequireSound(t, b.pool)
}
