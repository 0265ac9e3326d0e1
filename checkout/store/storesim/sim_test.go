package storesim

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// send puts one signed call to the store.
func send(t *testing.T, s *Sim, path, id, order string) *httptest.ResponseRecorder {
	t.Helper()
	body := fmt.Sprintf(`{"acceptance_id":%q,"order_id":%q,"amount":"1","currency":"KRW"}`, id, order)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := signer.Sign(id, now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", id)
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	r.Header.Set("webhook-signature", signature)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// TestStore_TheKnee: up to the knee everything takes the same; beyond it, longer by how many more there are.
func TestStore_TheKnee(t *testing.T) {
	t.Parallel()
	const rested = 50 * time.Millisecond
	for atOnce, want := range map[int]time.Duration{1: rested, 24: rested, 25: rested, 50: 100 * time.Millisecond, 64: 128 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{Secret: secret})
			began := time.Now()
			var group sync.WaitGroup
			for i := range atOnce {
				group.Go(func() { send(t, s, "/", fmt.Sprint("acc_", i), fmt.Sprint("order-", i)) })
			}
			group.Wait()
			if took := time.Since(began); took != want {
				t.Errorf("%d at once took %s, want %s", atOnce, took, want)
			}
			if s.AtMost() != atOnce || s.UnderWay() != 0 || len(s.Held()) != atOnce {
				t.Errorf("%d at once: saw %d, %d under way, holds %d", atOnce, s.AtMost(), s.UnderWay(), len(s.Held()))
			}
		})
	}
}

func TestStore_AnAcceptanceIsKnownByItsID(t *testing.T) {
	t.Parallel()
	s := New(Config{Secret: secret, Base: -1})
	says := func(what, path, id, want string) {
		t.Helper()
		if got := strings.TrimSpace(send(t, s, path, id, "order-1").Body.String()); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	says("first", "/", "a", `{"accepted":true}`)
	s.Decline("", "closed")
	says("again", "/", "a", `{"accepted":true}`)
	says("another", "/", "b", `{"accepted":false,"reason":"closed"}`)
	s.Decline("", "")
	says("released", "/a/release", "a", `{"released":true}`)
	says("released again", "/a/release", "a", `{"released":true}`)
	says("asked after its release", "/", "a", `{"accepted":false,"reason":"released before"}`)
	says("released before it was asked", "/c/release", "c", `{"released":true}`)
	says("asked about then", "/", "c", `{"accepted":false,"reason":"released before"}`)
	if held := s.Held(); len(held) != 0 {
		t.Errorf("holds %v", held)
	}
	if w := send(t, s, "/a/release", "b", "order-1"); w.Code != http.StatusBadRequest {
		t.Errorf("got %d for the release of another id than its address names", w.Code)
	}
}

func TestStore_BelievesOnlyWhatIsSigned(t *testing.T) {
	t.Parallel()
	s := New(Config{Secret: "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", Base: -1})
	if w := send(t, s, "/", "a", "order-1"); w.Code != http.StatusUnauthorized || len(s.Acceptances()) != 0 {
		t.Errorf("got %d", w.Code)
	}
}
