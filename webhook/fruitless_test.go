package webhook

import (
	"fmt"
	"testing"
	"time"
)

func TestFruitless_OnePaymentNeverKeepsAnotherFromBeingAskedAbout(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	f := newFruitless(1)
	asked := 0
	for range 2_000 { // a second apart
		if f.mayAsk("pk_forged", now) {
			asked++
			f.note("pk_forged", now)
		}
		if !f.mayAsk("pk_other", now) {
			t.Fatal("the notices of one payment used up what all may cost")
		}
		now = now.Add(time.Second)
	}
	if want := fruitlessOfPayment + 2_000/60; asked < want-1 || asked > want+1 {
		t.Errorf("asked %d times in 2,000 s, want %d at once and one a minute", asked, fruitlessOfPayment)
	}
}

func TestFruitless_ManyPaymentsCostNoMoreThanOneSource(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	f := newFruitless(3)
	asked := 0
	for n := range 60_000 { // a millisecond apart
		if key := fmt.Sprintf("pk_%d", n); f.mayAsk(key, now) {
			asked++
			f.note(key, now)
		}
		now = now.Add(time.Millisecond)
	}
	if want := (fruitlessOfAll + 60*fruitlessPerSecond) / 3; asked < want-1 || asked > want+1 {
		t.Errorf("one of three instances asked %d times in a minute, want its third: %d", asked, want)
	}
}

func TestFruitless_MemoryIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	f := newFruitless(1)
	for n := range fruitlessPayments + 5_000 {
		f.note(fmt.Sprintf("pk_%d", n), now)
		if len(f.ofPayment) > fruitlessPayments {
			t.Fatalf("%d payments are remembered", len(f.ofPayment))
		}
	}
	now = now.Add(time.Hour)
	f.note("pk_late", now)
	if len(f.ofPayment) != 1 {
		t.Errorf("%d payments are remembered although an hour has passed", len(f.ofPayment))
	}
}
