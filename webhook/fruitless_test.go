package webhook

import (
	"context"
	"fmt"
	"testing"
	"time"

	"daesa/ledger"
)

func TestFruitless_OnePaymentNeverKeepsAnotherFromBeingAskedAbout(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	f := newFruitless(1)
	asked := 0
	for range 2_000 { // a second apart
		if f.begin("pk_forged", now) {
			asked++
			f.end("pk_forged", now, true)
		}
		if !f.begin("pk_other", now) {
			t.Fatal("the notices of one payment used up what all may cost")
		}
		f.end("pk_other", now, false)
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
		if key := fmt.Sprintf("pk_%d", n); f.begin(key, now) {
			asked++
			f.end(key, now, true)
		}
		now = now.Add(time.Millisecond)
	}
	if want := (fruitlessOfAll + 60*fruitlessPerSecond) / 3; asked < want-1 || asked > want+1 {
		t.Errorf("one of three instances asked %d times in a minute, want its third: %d", asked, want)
	}
}

// TestFruitless_ThoseUnderWayCount: a storm is faster than what its questions prove is known, and is bounded all the same.
// What turns out to prove something costs nothing.
func TestFruitless_ThoseUnderWayCount(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	f := newFruitless(1)
	begun := func() (asked int) {
		for n := range 1_000 {
			if f.begin(fmt.Sprintf("pk_%d", n), now) {
				asked++
			}
		}
		return asked
	}
	if got := begun(); got != fruitlessOfAll {
		t.Errorf("%d questions were begun at once, want %d", got, fruitlessOfAll)
	}
	for range 100 {
		f.end("pk_0", now, false)
	}
	if got := begun(); got != 100 {
		t.Errorf("%d questions were begun after 100 that proved something, want 100", got)
	}
}

// TestFruitless_ABurstMayReachOneOfMany: an instance whose share is small lets as many questions be under way as the gate
// lets notices in, unless much has proven nothing of late. What that costs beyond its share is paid back.
func TestFruitless_ABurstMayReachOneOfMany(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	f := newFruitless(10)
	burst := func() (begun int) {
		for n := range 1_000 {
			if f.begin(fmt.Sprintf("pk_%d", n), now) {
				begun++
			}
		}
		return begun
	}
	if got := burst(); got != fruitlessTogether {
		t.Fatalf("%d questions were begun at once, want %d", got, fruitlessTogether)
	}
	for n := range fruitlessTogether {
		f.end(fmt.Sprintf("pk_%d", n), now, true)
	}
	asked := fruitlessTogether
	for range 600 {
		now = now.Add(time.Second)
		if f.begin("pk_late", now) {
			f.end("pk_late", now, false)
			f.count(fmt.Sprintf("pk_%d", asked), now)
			asked++
		}
	}
	if want := (fruitlessOfAll + 600*fruitlessPerSecond) / 10; asked > want+1 {
		t.Errorf("%d questions proved nothing in ten minutes, want no more than the share of %d", asked, want)
	}
	if f.ofPayment["pk_late"] != nil {
		t.Fatal("pk_late is counted, so that it shows nothing")
	}
	for f.all.TokensAt(now) >= fruitlessOfAll/10/2 { // little is left
		f.count("pk_more", now)
	}
	if got, left := burst(), int(f.all.TokensAt(now)); got != left {
		t.Errorf("%d questions were begun at once where %d may prove nothing, want no more", got, left)
	}
}

// TestFruitless_ASlowQuestionRefillsNothing: questions that end in another order than they began cost no less.
func TestFruitless_ASlowQuestionRefillsNothing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	f := newFruitless(1)
	asked := 0
	ask := func(since time.Time) {
		if key := fmt.Sprintf("pk_%d", asked); f.begin(key, since) {
			asked++
			f.end(key, since, true)
		}
	}
	for range 60 * 20 { // 20 pairs a second: one that is answered at once, and one that took three seconds
		ask(now)
		ask(now.Add(-3 * time.Second))
		now = now.Add(50 * time.Millisecond)
	}
	if want := fruitlessOfAll + 60*fruitlessPerSecond; asked < want-1 || asked > want+1 {
		t.Errorf("asked %d times in a minute, want %d", asked, want)
	}
}

// count notes a question that proved nothing, allowed or not.
func (f *fruitless) count(key string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(key, now)
}

func TestFruitless_MemoryIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	f := newFruitless(1)
	for n := range fruitlessPayments + 5_000 {
		f.count(fmt.Sprintf("pk_%d", n), now)
		if len(f.ofPayment) > fruitlessPayments {
			t.Fatalf("%d payments are remembered", len(f.ofPayment))
		}
	}
	now = now.Add(time.Hour)
	f.count("pk_late", now)
	if len(f.ofPayment) != 1 {
		t.Errorf("%d payments are remembered although an hour has passed", len(f.ofPayment))
	}
}

// TestFruitless_APanicIsUnderWayNoMore: a question that ended in a panic does not count as under way for ever.
func TestFruitless_APanicIsUnderWayNoMore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 1, 0, 0, 0, time.UTC)
	h := &Handler{cfg: Config{Gateway: panicking{}}.withDefaults(), fruitless: newFruitless(1)}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if !h.fruitless.begin("pk_1", now) {
		t.Fatal("the first question was refused")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		h.question(ctx, ctx, delivery{paymentKey: "pk_1"}, now)
	}()
	if h.fruitless.underWay != 0 {
		t.Errorf("%d questions are under way, want none", h.fruitless.underWay)
	}
}

// panicking is a gateway's client that is broken.
type panicking struct{ Gateway }

func (panicking) Query(context.Context, ledger.Channel, string) (ledger.Observation, error) {
	panic("the gateway's client is broken")
}
