package guard

import (
	"testing"
	"time"
)

// BenchmarkBulkhead takes a slot and gives it back.
func BenchmarkBulkhead(b *testing.B) {
	slots := NewBulkhead(60, 0)
	b.ReportAllocs()
	for b.Loop() {
		if refusal, ok := slots.Acquire(b.Context()); !ok {
			b.Fatal(refusal)
		}
		slots.Release()
	}
}

// BenchmarkBreaker asks for a permission and tells what came of the call.
func BenchmarkBreaker(b *testing.B) {
	breaker := NewBreaker(usual(time.Second), nil)
	b.ReportAllocs()
	for b.Loop() {
		permission, err := breaker.AcquireWithin(b.Context(), time.Second)
		if err != nil {
			b.Fatal(err)
		}
		permission.Done(Succeeded)
	}
}

// BenchmarkBreaker_Open is what a call costs that the breaker refuses.
func BenchmarkBreaker_Open(b *testing.B) {
	breaker := NewBreaker(usual(time.Hour), nil)
	defer breaker.Stop()
	for range 10 {
		_ = breaker.call(Failed)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := breaker.Acquire(); err == nil {
			b.Fatal("let through")
		}
	}
}

// BenchmarkLoad counts a call at the slots of its path.
func BenchmarkLoad(b *testing.B) {
	load := NewLoad(60)
	b.ReportAllocs()
	for b.Loop() {
		load.Arrive(false)
		load.Release(time.Millisecond)
	}
}
