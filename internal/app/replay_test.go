package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"daesa/internal/app"
	"daesa/internal/people"
	"daesa/pgclient/tosssim"
)

// After an outage an operator sees what taking a delivery up again would change, does it for a reason, and everything that
// was looked at and done stands in the trail.
func TestPages_Replay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office, lazy)
	key := w.sell("order-1", 30_000)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 500, N: -1})
	w.dashboard(key, 10_000)
	w.wantDelivery(w.newest(key), http.StatusBadGateway)
	id := w.number(`SELECT max(delivery_id) FROM deliveries WHERE outcome = 'query_failed'`)
	if id == 0 {
		t.Fatal("no delivery failed")
	}
	w.sim.Heal()
	page := fmt.Sprint("/deliveries/", id)
	op, kim := w.as("op", people.RoleOperator), w.as("kim", people.RoleApprover)

	// Who works on the books sees the delivery, not its body, and takes nothing up again.
	seen := kim.open(page + "?body=shown")
	kim.says(seen, "query failed", key)
	if strings.Contains(seen.body, "balanceAmount") || strings.Contains(seen.body, "rehearse") {
		t.Error("an approver is shown the body, or a way to take it up again")
	}
	for _, step := range []string{"/rehearse", "/replay"} {
		kim.submit(page+step, url.Values{"reason": {"because"}}, http.StatusForbidden)
	}
	if !strings.Contains(op.open("/deliveries").body, `href="`+page+`"`) {
		t.Error("the list of deliveries does not lead to it")
	}
	op.says(op.open(page), "Show what is kept of the body", "Take it up again")
	if strings.Contains(op.open(page).body, "balanceAmount") {
		t.Error("the body is shown without being asked for")
	}
	op.says(op.open(page+"?body=shown"), "balanceAmount", "PARTIAL_CANCELED")

	// It is seen first, and nothing is done without a reason.
	op.says(op.submit(page+"/rehearse", nil, http.StatusOK), "What taking it up again would do", "applied partial", "cancels", "journal_entries", "nothing was", "Do it")
	for _, reason := range []string{"", "  ", strings.Repeat("a", 201), "a\x00b", "\xff"} {
		op.submit(page+"/replay", url.Values{"reason": {reason}}, http.StatusBadRequest)
	}
	if got := w.number(`SELECT count(*) FROM cancels`); got != 0 {
		t.Fatalf("%d cancels were written by looking", got)
	}
	op.says(op.submit(page+"/replay", url.Values{"reason": {"after the outage"}}, http.StatusOK), "Taken up again", "Rows that were written", "after the outage")
	if got := w.text(`SELECT channel || ' ' || amount FROM cancels`); got != "manual 10000" {
		t.Errorf("the cancel is %q", got)
	}
	op.says(op.submit(page+"/replay", url.Values{"reason": {"once more"}}, http.StatusOK), "duplicate skipped", "No row of the books changes.")

	// What cannot be taken up says so, in both languages.
	op.submit("/deliveries/99999/rehearse", nil, http.StatusNotFound)
	op.submit("/deliveries/x/rehearse", nil, http.StatusNotFound)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 500, N: -1})
	op.language = "ko"
	op.says(op.submit(page+"/rehearse", nil, http.StatusBadGateway), "PG가 이 결제에 답하지 않았습니다")
	w.sim.Heal()
	op.says(op.submit(page+"/rehearse", nil, http.StatusOK), "장부에서 바뀌는 행이 없습니다.", "중복")

	want := "notice_seen:, delivery_rehearsed:, delivery_replayed:after the outage, delivery_replayed:once more, delivery_rehearsed:, delivery_rehearsed:"
	if got := w.text(`SELECT string_agg(action || ':' || detail, ', ' ORDER BY deed_id) FROM deeds WHERE actor = 'person:op' AND subject = $1`,
		fmt.Sprint("delivery ", id)); got != want {
		t.Errorf("the trail says %q, want %q", got, want)
	}
}

// The same by the command line, in the name of the operating system's user.
func TestReplay_Command(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lazy)
	key := w.sell("order-1", 30_000)
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 500, N: -1})
	w.dashboard(key, 10_000)
	w.wantDelivery(w.newest(key), http.StatusBadGateway)
	id := fmt.Sprint(w.number(`SELECT max(delivery_id) FROM deliveries`))
	replay := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := command(append([]string{
			"replay", "-database-url", w.url, "-toss-url", w.cfg.TossURL, "-toss-secret-key", secretKey,
			"-opening-at", w.cfg.OpeningAt.Format(time.RFC3339),
		}, args...)...)
		if code != want {
			t.Fatalf("replay %v: exit %d, want %d: %s", args, code, want, stderr)
		}
		return stdout + stderr
	}
	if got := replay(app.ExitBreaks, id); !strings.Contains(got, "the gateway gave no answer") {
		t.Errorf("of a silent gateway it says %q", got)
	}
	w.sim.Heal()
	for _, args := range [][]string{{}, {"x"}, {id, "-apply"}, {id, "-apply", "-reason", " "}, {id, "-reason", strings.Repeat("가", 201)}} {
		replay(app.ExitIncomplete, args...)
	}
	if got := replay(app.ExitBreaks, "99999"); !strings.Contains(got, "no such delivery") {
		t.Errorf("of a delivery that there is not it says %q", got)
	}
	if got := replay(app.ExitOK, id); !strings.Contains(got, "was query_failed and is now applied_partial; the gateway says PARTIAL_CANCELED") ||
		!strings.Contains(got, "nothing was written") || !strings.Contains(got, "cancels") || w.number(`SELECT count(*) FROM cancels`) != 0 {
		t.Errorf("got %s", got)
	}
	if got := replay(app.ExitOK, id, "-apply", "-reason", "after the outage", "-json"); !strings.Contains(got, `"applied": true`) || w.number(`SELECT count(*) FROM cancels`) != 1 {
		t.Errorf("got %s", got)
	}
	if got := replay(app.ExitOK, id); !strings.Contains(got, "is now duplicate_skipped") || !strings.Contains(got, "no row of the books changes") {
		t.Errorf("got %s", got)
	}
	if got := w.text(`SELECT string_agg(action || ' ' || detail, ', ' ORDER BY deed_id) FROM deeds WHERE actor LIKE 'os:%' AND subject = $1 AND action = 'delivery_replayed'`,
		"delivery "+id); got != "delivery_replayed after the outage" {
		t.Errorf("the trail says %q", got)
	}
}
