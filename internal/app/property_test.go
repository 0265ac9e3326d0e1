package app_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAnyHistory plays random histories of buyers, a merchant, a dashboard, a gateway that fails, notices that are lost,
// doubled and out of order, crashes at any round trip, and time. After each, both books must agree. A history that fails
// is printed as the seed that repeats it.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		scope := &scoped{TB: t, fails: r}
		defer scope.end()
		h := &history{world: newWorld(scope, hasty), r: r}
		h.line = newLine()
		h.restartUnder()
		for range rapid.IntRange(8, 24).Draw(r, "steps") {
			h.step()
		}
		h.line.Mend()
		h.restart()
		h.quiesce()
		h.requireAgreed()
	})
}

// scoped is a test whose end comes before that of the test around it, and whose failures are those of one history.
type scoped struct {
	testing.TB

	fails    *rapid.T
	cleanups []func()
}

// Cleanup runs f at the end of the history.
func (s *scoped) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Context lives as long as the test around.
func (s *scoped) Context() context.Context { return context.WithoutCancel(s.TB.Context()) }

// Errorf fails the history.
func (s *scoped) Errorf(format string, args ...any) { s.fails.Errorf(format, args...) }

// Error fails the history.
func (s *scoped) Error(args ...any) { s.fails.Error(args...) }

// Fatalf ends the history.
func (s *scoped) Fatalf(format string, args ...any) { s.fails.Fatalf(format, args...) }

// Fatal ends the history.
func (s *scoped) Fatal(args ...any) { s.fails.Fatal(args...) }

// Failed reports whether the history failed.
func (s *scoped) Failed() bool { return s.fails.Failed() }

func (s *scoped) end() {
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
}

// history is one world while it is being played.
type history struct {
	*world

	r     *rapid.T
	line  *line
	sales []sale

	cancels int
}

// sale is an order and a payment that its buyer brought back from the window.
type sale struct {
	order, key string
	won        int64
}

func (h *history) restartUnder() {
	h.Helper()
	h.app.stop()
	h.app = h.start(h.line.under)
	h.listen()
}

// step draws one thing that happens.
func (h *history) step() {
	type act struct {
		name string
		do   func()
	}
	acts := []act{
		{"buyer", h.newBuyer},
		{"confirm", h.confirmAny},
		{"confirm", h.confirmAny},
		{"trouble", h.trouble},
		{"dashboard", h.dashboardCancel},
		{"cancel", h.ourCancel},
		{"notice", h.deliverAny},
		{"notice", h.deliverAny},
		{"lose", h.loseNotice},
		{"due", h.deliverDue},
		{"sweep", h.sweepAny},
		{"list", h.listAny},
		{"time", h.pass},
		{"crash", h.crashNext},
		{"restart", h.crashed},
		{"account", h.account},
		{"heal", h.sim.Heal},
	}
	n := rapid.IntRange(0, len(acts)-1).Draw(h.r, "act")
	h.r.Logf("%s", acts[n].name)
	acts[n].do()
}

func (h *history) newBuyer() {
	s := sale{order: fmt.Sprintf("order-%04d", len(h.sales)), won: rapid.SampledFrom([]int64{1_000, 12_345, 50_000}).Draw(h.r, "won")}
	method := rapid.SampledFrom(methods()).Draw(h.r, "method")
	if len(h.sales) > 0 && rapid.IntRange(0, 4).Draw(h.r, "again") == 0 { // a second window for an old order
		old := h.any()
		s.order, s.won = old.order, old.won
	} else if r, err := h.app.shop.try(h.Context(), "POST", "/v1/orders", "order-"+s.order, map[string]any{
		"order_id": s.order, "amount": s.won, "customer_id": "customer", "credits": s.won / 100,
	}); err != nil || r.code >= 400 {
		return // the database was away
	}
	s.key = h.authenticate(s.order, s.won, method)
	h.sales = append(h.sales, s)
}

// any is one of the sales so far; the zero sale when there is none.
func (h *history) any() sale {
	if len(h.sales) == 0 {
		return sale{}
	}
	return rapid.SampledFrom(h.sales).Draw(h.r, "sale")
}

func (h *history) confirmAny() {
	s := h.any()
	if s.key == "" {
		return
	}
	r, err := h.app.shop.try(h.Context(), "POST", "/v1/payments/confirm", "", confirmation(s.key, s.order, s.won))
	h.answered("confirm", r, err)
	if err == nil && r.is() == "200 done" {
		h.requireCaptured(s)
	}
}

// requireCaptured holds an answer of "done" against the books.
func (h *history) requireCaptured(s sale) {
	h.Helper()
	if got := h.payment(s.key).Captured().Minor; got != s.won {
		h.Errorf("%s was answered done and has %d in the books, want %d", s.key, got, s.won)
	}
}

// answered fails the history for an answer of 500, or none: whatever happens, callers are told what they can do.
func (h *history) answered(what string, r reply, err error) {
	h.Helper()
	if err != nil || r.code == 500 {
		h.Errorf("%s: got %s and %v: %s", what, r.is(), err, r.body)
	}
}

func (h *history) ourCancel() {
	s := h.any()
	if s.key == "" {
		return
	}
	if rapid.Bool().Draw(h.r, "fresh") {
		h.cancels++
	}
	body := cancellation(rapid.SampledFrom([]int64{0, 0, 300, 1_000}).Draw(h.r, "part"))
	if rapid.Bool().Draw(h.r, "refund") {
		body["refund_account"] = map[string]string{"bank": "20", "account_number": "1234567890", "holder_name": "홍길동"}
	}
	r, err := h.app.shop.try(h.Context(), "POST", "/v1/payments/"+s.key+"/cancel", fmt.Sprintf("cancel-%d", h.cancels), body)
	h.answered("cancel", r, err)
}
