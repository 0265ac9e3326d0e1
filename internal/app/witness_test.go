package app_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// witness stands before the gateway and looks into the books at the moment a call that moves money arrives: the intent
// to make it must be committed by then (I5), under the very idempotency key of the call. Where a store takes orders on, an
// approval also needs what the store said, committed for this attempt.
type witness struct {
	db    *pgxpool.Pool
	next  http.Handler
	store bool

	mu      sync.Mutex
	strange []string
}

// ServeHTTP looks, and passes the call on.
func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/payments/") {
		if key := r.Header.Get("Idempotency-Key"); !w.intended(context.WithoutCancel(r.Context()), key) {
			w.mu.Lock()
			w.strange = append(w.strange, r.URL.Path+" with key "+key)
			w.mu.Unlock()
		}
	}
	w.next.ServeHTTP(rw, r)
}

func (w *witness) intended(ctx context.Context, key string) bool {
	rows, err := w.db.Query(ctx, `
		SELECT EXISTS (SELECT 1 FROM payments p, generate_series(1, p.generation) AS g
				WHERE 'confirm-' || p.payment_key || '-' || g = $1 AND p.attempt >= 1 AND (NOT $2 OR EXISTS (
					SELECT 1 FROM acceptances a
					WHERE a.payment_key = p.payment_key AND a.attempt = p.attempt AND a.state = 'held')))
			OR EXISTS (SELECT 1 FROM cancel_requests r, generate_series(1, r.generation) AS g
				WHERE 'cancel-' || r.request_id || '-' || g = $1)`, key, w.store)
	if err != nil {
		return false
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	return err == nil && found
}

func (w *witness) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.strange
}

// logBook keeps what was logged.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds a line.
func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything so far.
func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// contextOf is a context that ends with the test, or before.
func contextOf(t interface{ Context() context.Context }) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
