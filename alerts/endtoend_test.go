package alerts

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/app"
	"daesa/pgclient/tosssim"
)

// TestAlarms_AQuietHour: an hour of sales and refunds, in two minutes, wakes nobody, and the dead man's switch is heard all the
// while.
func TestAlarms_AQuietHour(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.Release()
	h.each(time.Hour/hurry, func(n int) {
		if key := h.sell(); n%4 == 0 {
			h.refund(key)
		}
	})
	h.heard()
	if got := h.inbox.count(theSwitch); got < 10 {
		t.Errorf("the dead man's switch was heard %d times in an hour, want every minute or two", got)
	}
}

// TestAlarms_Faults: a burst over the limit, an apply failure, a refused key and a silent gateway each come to the right
// receiver, once, with what money is at risk and where to look, and are said to be over when they are.
func TestAlarms_Faults(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *app.Config) {
		c.RateLimit, c.TrustedProxies = 60, []string{"127.0.0.1/32"}
		c.Lazy = true // a sweep that asks a silent gateway takes a third of a minute, which would be ten minutes here
	})
	h.Release()
	key := h.sell()

	h.burst(400)
	h.hears("tickets", "NoticeRateLimited", time.Minute)

	h.database(`ALTER TABLE cancels ADD CONSTRAINT nothing_more CHECK (amount < 0) NOT VALID`)
	h.refund(key)
	h.hears("pages", "NoticeApplyFailed", time.Minute)
	h.database(`ALTER TABLE cancels DROP CONSTRAINT nothing_more`)

	key = h.sell()
	h.Sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Refuse, Body: "UNAUTHORIZED_KEY", N: -1})
	h.refund(key)
	h.hears("pages", "GatewayKeyRefused", time.Minute)
	h.Sim.Heal()
	h.ends(2 * time.Minute)

	h.Sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang, N: -1})
	for n := 0; !h.inbox.has("tickets NoticeQueryFailing"); n++ {
		if n == 60 {
			h.Fatalf("not within a minute: tickets hears NoticeQueryFailing; notified of %v", h.inbox.firing())
		}
		h.each(time.Second, func(int) { h.refund(h.sell()) })
	}
	h.Sim.Heal()
	h.ends(2 * time.Minute)
	h.heard("tickets NoticeRateLimited", "pages NoticeApplyFailed", "pages GatewayKeyRefused", "tickets NoticeQueryFailing")

	for _, n := range h.inbox.received() {
		for _, alert := range n.Alerts {
			for _, name := range []string{"summary", "summary_ko", "description", "runbook", "page"} {
				if alert.Annotations[name] == "" || strings.Contains(alert.Annotations[name], "error expanding") {
					t.Errorf("%s: %s is %q", n.about(), name, alert.Annotations[name])
				}
			}
			if page := alert.Annotations["page"]; !strings.HasPrefix(page, "https://pages.example.com/") {
				t.Errorf("%s leads to %s", n.about(), page)
			}
		}
	}
}

// TestAlarms_Silence: notices that stopped coming, and an audit that stands still, are noticed although nothing fails.
func TestAlarms_Silence(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil) // notices are held back
	for range 3 {
		h.refund(h.sell())
	}
	h.hears("tickets", "NoticesSilent", 2*time.Minute)
	blocked := h.block("audit_runs")
	h.hears("tickets", "AuditAbsent", 4*time.Minute)
	blocked()
	h.Release()
	h.ends(4 * time.Minute)
	h.heard("tickets NoticesSilent", "tickets AuditAbsent")
}

// burst sends notices that need no question, as fast as they are answered.
func (h *house) burst(n int) {
	h.Helper()
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range n / 8 {
				request, err := http.NewRequestWithContext(h.Context(), http.MethodPost, h.App.URL()+"/webhooks/toss",
					bytes.NewReader([]byte(`{"eventType":"METHOD_UPDATED","data":{}}`)))
				if err != nil {
					h.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("X-Forwarded-For", "203.0.113.7")
				answer, err := (&http.Client{Timeout: aReply}).Do(request)
				if err != nil {
					h.Error(err)
					return
				}
				_ = answer.Body.Close()
			}
		})
	}
	senders.Wait()
}

// database runs one statement as somebody who may do anything.
func (h *house) database(sql string) {
	h.Helper()
	conn, err := pgx.Connect(h.Context(), h.db)
	h.must(err)
	defer func() { _ = conn.Close(context.WithoutCancel(h.Context())) }()
	_, err = conn.Exec(h.Context(), sql)
	h.must(err)
}

// block lets nobody touch a table until it is called.
func (h *house) block(table string) (release func()) {
	h.Helper()
	conn, err := pgx.Connect(h.Context(), h.db)
	h.must(err)
	_, err = conn.Exec(h.Context(), "BEGIN; LOCK TABLE "+pgx.Identifier{table}.Sanitize()+" IN ACCESS EXCLUSIVE MODE")
	h.must(err)
	var once sync.Once
	release = func() { once.Do(func() { _ = conn.Close(context.WithoutCancel(h.Context())) }) }
	h.Cleanup(release)
	return release
}
