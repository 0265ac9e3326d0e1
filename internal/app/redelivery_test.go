package app_test

import (
	"testing"
	"time"
)

// TestRedelivery_LongAfterwards: a notice that comes again after every process was replaced, at the end of the sender's
// redeliveries and weeks later, is answered 200 and applied no second time: what was applied is known from the books.
func TestRedelivery_LongAfterwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-again", 50_000)
	w.dashboard(key, 20_000)
	notice := w.newest(key)
	w.wantDelivery(notice, 200)
	for _, pause := range []time.Duration{91*time.Hour + time.Minute, 40 * 24 * time.Hour} {
		w.clock.Advance(pause)
		w.restart()
		w.wantDelivery(notice, 200)
	}
	if n := w.number(`SELECT count(*) FROM cancels`); n != 1 {
		t.Errorf("got %d cancels, want 1", n)
	}
	if n := w.number(`SELECT count(*) FROM deliveries WHERE outcome = 'duplicate_skipped'`); n != 2 {
		t.Errorf("got %d deliveries known for duplicates, want 2", n)
	}
	if got := w.payment(key).Canceled().Minor; got != 20_000 {
		t.Errorf("got %d canceled, want 20000", got)
	}
}
