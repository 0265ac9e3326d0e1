package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

const kimSecret, leeSecret = "key-of-kim-at-the-back-office", "key-of-lee-at-the-back-office"

func twoPeople(c *app.Config, _ *tosssim.Config) {
	c.APIKeys = append(c.APIKeys, "kim="+kimSecret, "lee="+leeSecret)
}

// mismatch puts a contradiction of so much money into the books.
func (w *world) mismatch(n int, won int64) (id int64) {
	w.Helper()
	key := fmt.Sprintf("pay-%d", n)
	w.must(postgres.InTx(w.Context(), w.db, func(tx pgx.Tx) error {
		_, err := ledger.OpenMismatches(w.Context(), tx, "test", []ledger.Finding{{
			Kind: ledger.KindCancelMissingHere, PaymentKey: key, OrderID: fmt.Sprintf("order-%d", n), TransactionKey: "tx-" + key,
			AtRisk: ledger.Won(won), Detail: "not in our books", Gateway: map[string]any{"amount": won},
		}}, w.clock.Now())
		return err
	}))
	return w.number(`SELECT mismatch_id FROM mismatches WHERE payment_key = $1`, key)
}

// api calls our own API as whoever has the secret, and returns the status and the answer.
func (w *world) api(secret, method, path, body string) (int, map[string]any) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), method, w.app.URL()+path, strings.NewReader(body))
	w.must(err)
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	answer, err := http.DefaultClient.Do(request) //nolint:forbidigo // a test's own call, ended by the test's context
	w.must(err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	w.must(err)
	decoded := map[string]any{}
	if err := json.Unmarshal(raw, &decoded); err != nil {
		w.Fatalf("%s %s: %v in %s", method, path, err, raw)
	}
	return answer.StatusCode, decoded
}

// TestMismatchAPI walks a mismatch through its life over HTTP. Who somebody is comes from their key.
func TestMismatchAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPeople)
	id := w.mismatch(1, 2_000_000)
	path := fmt.Sprintf("/v1/mismatches/%d", id)
	steps := []struct {
		name, secret, method, path, body string
		status                           int
		field                            string
		want                             any
	}{
		{"no key", "", "GET", path, "", 401, "code", "unauthorized"},
		{"shown", kimSecret, "GET", path, "", 200, "needs_second_person", true},
		{"acknowledged", kimSecret, "POST", path + "/acknowledge", `{"note":"looking"}`, 200, "status", "acknowledged"},
		{"twice", leeSecret, "POST", path + "/acknowledge", ``, 409, "code", "mismatch_step"},
		{"in another's name", kimSecret, "POST", path + "/note", `{"note":"x","by":"api:lee"}`, 400, "code", "body_malformed"},
		{"to nobody known", kimSecret, "POST", path + "/assign", `{"to":"lee"}`, 400, "code", "invalid_request"},
		{"assigned", kimSecret, "POST", path + "/assign", `{"to":"api:lee"}`, 200, "assignee", "api:lee"},
		{"accepted without a reason", kimSecret, "POST", path + "/resolve", `{"as":"accepted"}`, 400, "code", "note"},
		{"as nothing", kimSecret, "POST", path + "/resolve", `{}`, 400, "code", "resolution"},
		{"by itself", kimSecret, "POST", path + "/resolve", `{"as":"auto"}`, 400, "code", "resolution"},
		{"at an old revision", kimSecret, "POST", path + "/resolve", `{"as":"fixed","revision":1}`, 409, "code", "mismatch_changed"},
		{"nothing to confirm", leeSecret, "POST", path + "/confirm", ``, 409, "code", "mismatch_step"},
		{"proposed", kimSecret, "POST", path + "/resolve", `{"as":"accepted","note":"by phone"}`, 200, "status", "acknowledged"},
		{"own second person", kimSecret, "POST", path + "/confirm", ``, 403, "code", "second_person"},
		{"confirmed by who is assigned", leeSecret, "POST", path + "/confirm", ``, 200, "resolved_by", "api:lee"},
		{"again", kimSecret, "POST", path + "/resolve", `{"as":"fixed"}`, 409, "code", "mismatch_step"},
		{"no request of ours", kimSecret, "POST", path + "/reopen", `{"request_never_done":true}`, 400, "code", "invalid_request"},
		{"opened again", kimSecret, "POST", path + "/reopen", `{"note":"not so"}`, 200, "status", "open"},
		{"never was", kimSecret, "GET", "/v1/mismatches/999", "", 404, "code", "not_found"},
		{"no number", kimSecret, "GET", "/v1/mismatches/x", "", 404, "code", "not_found"},
		{"no such status", kimSecret, "GET", "/v1/mismatches?status=new", "", 400, "code", "invalid_request"},
		{"no such filter", kimSecret, "GET", "/v1/mismatches?state=open", "", 400, "code", "invalid_request"},
		{"no such incident", kimSecret, "POST", "/v1/incidents/9/resolve", `{"as":"fixed"}`, 404, "code", "not_found"},
		{"no such page", kimSecret, "GET", "/v1/pending?after=x", "", 400, "code", "invalid_request"},
	}
	for _, step := range steps {
		status, answer := w.api(step.secret, step.method, step.path, step.body)
		if status != step.status || answer[step.field] != step.want {
			t.Errorf("%s: got %d and %v, want %d and %s %v", step.name, status, answer, step.status, step.field, step.want)
		}
	}
	got := w.text(`SELECT string_agg(actor || ' ' || action, ', ' ORDER BY number) FROM mismatch_trail`)
	if want := "system opened, api:kim acknowledged, api:kim assigned, api:kim resolution_proposed, api:lee resolved, api:kim reopened"; got != want {
		t.Errorf("trail: got %s, want %s", got, want)
	}
}

// TestMismatchAPI_Lists filters and pages, newest first, whatever is opened meanwhile.
func TestMismatchAPI_Lists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPeople)
	for n := range 5 {
		w.mismatch(n, int64(n+1)*1000)
	}
	list := func(query string) (orders []string, next any) {
		t.Helper()
		status, answer := w.api(kimSecret, "GET", "/v1/mismatches?"+query, "")
		if status != 200 {
			t.Fatalf("%s: got %d %v", query, status, answer)
		}
		for _, m := range answer["mismatches"].([]any) {
			orders = append(orders, fmt.Sprint(m.(map[string]any)["order_id"]))
		}
		return orders, answer["next"]
	}
	for query, want := range map[string]string{
		"": "order-4 order-3 order-2 order-1 order-0", "min_amount=3000": "order-4 order-3 order-2", "min_amount=3000&currency=USD": "",
		"kind=cancel_missing_here&status=open": "order-4 order-3 order-2 order-1 order-0", "kind=stale_unknown": "", "order_id=order-2": "order-2",
		"payment_key=pay-1": "order-1", "status=resolved": "", "assignee=api:kim": "", "incident_id=1": "",
	} {
		if got, _ := list(query); strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
	first, next := list("limit=2")
	w.mismatch(9, 1)
	second, next2 := list(fmt.Sprintf("limit=2&before=%v", next))
	third, end := list(fmt.Sprintf("limit=2&before=%v", next2))
	if got := strings.Join(append(append(first, second...), third...), " "); got != "order-4 order-3 order-2 order-1 order-0" || end != nil {
		t.Errorf("got pages %s and then %v", got, end)
	}
}

// TestMain_Mismatch works on mismatches from the command line, in the name of who runs it.
func TestMain_Mismatch(t *testing.T) {
	t.Parallel()
	above := int64(5000)
	w := newWorld(t, twoPeople, func(c *app.Config, _ *tosssim.Config) { c.SecondPersonAbove = &above })
	me, err := user.Current()
	w.must(err)
	w.mismatch(1, 4000)
	w.mismatch(2, 6000)
	run := func(want int, says string, args ...string) {
		t.Helper()
		args = append(args, "--database-url", w.url)
		if code, stdout, stderr := command(args...); code != want || !strings.Contains(stdout+stderr, says) {
			t.Errorf("%v: got %d and %s%s, want %d and %q", args, code, stdout, stderr, want, says)
		}
	}
	run(0, "6,000 KRW", "mismatch", "list")
	run(0, "no mismatches", "mismatch", "list", "--status", "resolved")
	run(0, "no mismatches", "mismatch", "list", "--resolution", "accepted")
	run(2, "resolution must be auto, fixed or accepted", "mismatch", "list", "--resolution", "odd")
	run(2, "days of the form 2006-01-02", "mismatch", "list", "--from", "30-11-2026")
	run(2, "no such kind", "mismatch", "list", "--kind", "odd")
	run(2, "--min-amount", "mismatch", "list", "--min-amount", "much")
	run(0, `"mismatch_id": 2`, "mismatch", "list", "--json", "--min-amount", "5,000")
	run(0, "a second person must confirm", "mismatch", "show", "2")
	run(1, "not in the books", "mismatch", "show", "3")
	run(0, "acknowledged", "mismatch", "ack", "1", "--note", "looking")
	run(0, "os:park", "mismatch", "assign", "1", "--to", "os:park")
	run(2, "must be os:<user>", "mismatch", "assign", "1", "--to", "park")
	run(0, "resolved, fixed", "mismatch", "resolve", "1", "--as", "fixed")
	run(0, "by os:"+me.Username+", ", "mismatch", "list", "--resolution", "fixed", "--from", "2000-01-01")
	run(0, "no mismatches", "mismatch", "list", "--resolution", "fixed", "--to", "2000-01-01")
	run(0, "no mismatches", "mismatch", "list", "--from", "2999-01-01")
	run(2, "are of those that are resolved", "mismatch", "list", "--status", "open", "--resolution", "fixed")
	run(2, "from must not be after to", "mismatch", "list", "--from", "2026-01-02", "--to", "2026-01-01")
	run(0, "open, fixed?", "mismatch", "resolve", "2", "--as", "fixed")
	run(1, "who proposed it cannot confirm it", "mismatch", "confirm", "2")
	if status, answer := w.api(leeSecret, "POST", "/v1/mismatches/2/withdraw", ""); status != 200 {
		t.Errorf("got %d %v, want it withdrawn", status, answer)
	}
	run(1, "nobody has proposed", "mismatch", "withdraw", "2")
	run(0, "open, accepted?", "mismatch", "resolve", "2", "--as", "accepted", "--note", "by phone")
	if status, answer := w.api(leeSecret, "POST", "/v1/mismatches/2/confirm", `{"note":"asked the bank"}`); status != 200 {
		t.Errorf("got %d %v, want it confirmed", status, answer)
	}
	run(0, "proposed by os:"+me.Username+", ", "mismatch", "list", "--resolution", "accepted")
	run(0, "KST: by phone; confirmed by api:lee, ", "mismatch", "list", "--resolution", "accepted")
	run(0, "KST: asked the bank", "mismatch", "list", "--resolution", "accepted")
	run(0, "  confirmed    by api:lee, ", "mismatch", "show", "2")
	run(0, `"note": "asked the bank"`, "mismatch", "list", "--json", "--resolution", "accepted")
	run(0, "open", "mismatch", "reopen", "1")
	run(0, "revision", "mismatch", "note", "1", "asked Toss")
	run(0, "no incidents", "incident", "list")
	run(1, "not in the books", "incident", "resolve", "1", "--as", "fixed")
	run(0, "nothing is pending", "pending")
	run(2, "not a cursor", "pending", "--after", "x")
	who := w.text(`SELECT string_agg(DISTINCT actor, ',' ORDER BY actor) FROM mismatch_trail`)
	if want := "api:lee,os:" + me.Username + ",system"; who != want {
		t.Errorf("got %s, want %s", who, want)
	}
}

// TestPending tells what is waiting from what is late and what is past all waiting, by the clock.
func TestPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPeople, lazy)
	line := func() string {
		t.Helper()
		_, answer := w.api(kimSecret, "GET", "/v1/pending", "")
		var lines []string
		for _, p := range answer["pending"].([]any) {
			view := p.(map[string]any)
			lines = append(lines, fmt.Sprint(view["line"], " ", view["attempt"], " ", view["attempts_in_all"], " ", view["order_id"]))
		}
		return strings.Join(lines, "; ")
	}
	key := w.sell("order-1", 50_000)
	w.must(postgres.InTx(w.Context(), w.db, func(tx pgx.Tx) error {
		now := w.clock.Now()
		_, err := tx.Exec(w.Context(), `
			INSERT INTO work (kind, payment_key, transaction_key, opened_at, due_at, deadline, notice_attempt, notice_next_at)
			VALUES ('cancel_claimed', $1, 'tx-1', $2::timestamptz, $3::timestamptz, $3, 1, $4)`, key, now, now.Add(91*time.Hour), now.Add(4*time.Minute))
		return err
	}))
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "in_flight 2 7 order-1"},
		{2 * time.Minute, "awaiting_redelivery 2 7 order-1"},
		{3 * time.Minute, "sweeping 2 7 order-1"},
		{2 * time.Minute, "late 2 7 order-1"},
		{91 * time.Hour, "past_last_chance 2 7 order-1"},
	} {
		w.clock.Advance(step.after)
		if got := line(); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
		if strings.HasPrefix(step.want, "awaiting") {
			w.sweep() // it refreshes the gauges
			got := series(t, w.app.Registry())
			if n, next := got["daesa_reconcile_pending_attempts{attempt=2}"], got["daesa_reconcile_pending_next_expected_seconds{}"]; n != 1 || next != 120 {
				t.Errorf("got %v waiting for redelivery 2 in %v s, want 1 in 120", n, next)
			}
		}
	}
}
