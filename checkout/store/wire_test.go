package store

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"daesa/internal/guard"
)

// answering gives every call the same answer.
func answering(status int, header http.Header, body io.Reader) tripper {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body)}, nil
	}
}

// TestAsk_ABrokenConnectionMayHaveAsked: only one that was never made is known to have asked nothing.
func TestAsk_ABrokenConnectionMayHaveAsked(t *testing.T) {
	t.Parallel()
	for op, sent := range map[string]bool{"dial": false, "read": true, "write": true} {
		c := mustNew(t, testConfig(tripper(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: op, Net: "tcp", Err: syscall.ECONNRESET}
		})))
		if got, err := ask(t, c, order("one")); err != nil || got != (Answer{Word: Unreachable, Sent: sent}) {
			t.Errorf("broken at %s: got %+v, %v, want sent %t", op, got, err, sent)
		}
	}
}

// TestAsk_HalfAYesIsNone: an answer that breaks off, or goes on for ever, was not read, whatever it began with.
func TestAsk_HalfAYesIsNone(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{
		"breaks off": io.MultiReader(strings.NewReader(`{"accepted":true}`), broken{}),
		"too long":   strings.NewReader(`{"accepted":true}` + strings.Repeat(" ", bodyMax)),
	} {
		c := mustNew(t, testConfig(answering(http.StatusOK, nil, body)))
		if got, err := ask(t, c, order("one")); err != nil || got != (Answer{Word: Unreachable, Sent: true}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// broken is a connection that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestAsk_GoesNowhereElse: the order is for the store alone, wherever it says that it has moved.
func TestAsk_GoesNowhereElse(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the question went elsewhere")
		_, _ = io.WriteString(w, `{"accepted":true}`)
	}))
	defer elsewhere.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther} {
		store := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		cfg := testConfig(nil)
		cfg.URL = store.URL
		if got, err := ask(t, mustNew(t, cfg), order("one")); err != nil || got != (Answer{Word: Unreachable, Sent: true}) {
			t.Errorf("%d: got %+v, %v", status, got, err)
		}
		store.Close()
	}
}

// TestAsk_AWrongAddressIsNoHealthyStore: a question about something that is not there was not answered. It opens no
// breaker either: the address is ours.
func TestAsk_AWrongAddressIsNoHealthyStore(t *testing.T) {
	t.Parallel()
	c := mustNew(t, testConfig(nil))
	m := c.question(order("one"))
	if got := m.unknown(); got != resultRefused {
		t.Errorf("got %s for a question, want refused", got)
	}
	if got := c.tells(resultRefused, c.cfg.Limits.Total); got != guard.Ignored {
		t.Errorf("got %v, want ignored", got)
	}
}

// TestAsk_APanicIsAFailure: it gives everything back, and says nothing good of the store.
func TestAsk_APanicIsAFailure(t *testing.T) {
	t.Parallel()
	cfg := testConfig(tripper(func(*http.Request) (*http.Response, error) { panic("torn") }))
	cfg.Limits.Breaker = guard.BreakerLimits{Window: 1, MinCalls: 1}
	c := mustNew(t, cfg)
	func() {
		defer func() { _ = recover() }()
		_, _ = ask(t, c, order("one"))
	}()
	if c.slots.Held() != 0 || c.breaker.State() != guard.Open {
		t.Errorf("%d slots held, breaker %s; want none, and open", c.slots.Held(), c.breaker.State())
	}
}

// TestReserve_TheCapIsOfAllInstances: three instances ask eight at once each, and one of very many asks one.
func TestReserve_TheCapIsOfAllInstances(t *testing.T) {
	t.Parallel()
	for replicas, want := range map[int]int{1: 24, 3: 8, 5: 4, 100: 1} {
		cfg := testConfig(nil)
		cfg.Replicas = replicas
		cfg.Limits.Total, cfg.Limits.Least = 1, 1 // nobody waits
		c := mustNew(t, cfg)
		got := 0
		for range 30 {
			permit, err := c.Reserve(t.Context())
			var unsent *Unsent
			if err != nil && (!errors.As(err, &unsent) || unsent.Reason != guard.RefusalCap) {
				t.Fatal(err)
			}
			if err == nil {
				got++
				t.Cleanup(permit.Release)
			}
		}
		if got != want {
			t.Errorf("%d replicas: %d questions at once, want %d", replicas, got, want)
		}
	}
}
