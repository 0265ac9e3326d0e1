package admission

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// TestGate_OneLine: every class waits for the same slots, in the order in which it came, and nobody is refused.
func TestGate_OneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, GateConfig{Enforce: true, OneLine: 2})
		end := make(chan struct{})
		var begun []Class
		enter := func(ctx context.Context, class Class) {
			gate.Middleware(class)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				begun = append(begun, class)
				<-end
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
		}
		gone, hangUp := context.WithCancel(t.Context())
		order := []Class{ClassMoney, ClassMoney, ClassReading, ClassNotification, ClassMoney}
		for n, class := range order {
			ctx := t.Context()
			if n == 3 {
				ctx = gone
			}
			go enter(ctx, class)
			synctest.Wait()
		}
		if len(begun) != 2 || gate.classes[ClassMoney].inFlight != 2 {
			t.Fatalf("got %v let in and %d in flight, want two of money", begun, gate.classes[ClassMoney].inFlight)
		}
		hangUp()
		for want := 3; want <= 4; want++ {
			end <- struct{}{}
			synctest.Wait()
			if len(begun) != want {
				t.Fatalf("got %v let in, want %d", begun, want)
			}
		}
		if begun[2] != ClassReading || begun[3] != ClassMoney {
			t.Errorf("got %v let in, want the look-up and then the payment; the notice's sender hung up", begun)
		}
		close(end)
		synctest.Wait()
		if money, reading := gate.classes[ClassMoney].inFlight, gate.classes[ClassReading].inFlight; money != 0 || reading != 0 {
			t.Errorf("got %d and %d in flight after the end, want none", money, reading)
		}
	})
}
