package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daesa/internal/app"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// closedWorld is a world whose first day has ended and is closed, with one order canceled in part.
func closedWorld(t *testing.T, settings ...setting) (w *world, digest string) {
	t.Helper()
	w = newWorld(t, settings...)
	key := w.sell("order-day", 50_000)
	w.clock.Advance(time.Minute)
	w.dashboard(key, 20_000)
	w.wantDelivery(w.newest(key), 200)
	w.clock.Set(ledger.Day("2026-04-16").Start().Add(20 * time.Minute))
	w.readList()
	s, err := w.app.Audit(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: "2026-04-15"})
	w.must(err)
	if s.Verdict != reconcile.VerdictReconciled || s.Digest == "" {
		t.Fatalf("got %s %v", s.Verdict, s.Reasons)
	}
	return w, s.Digest
}

// TestDays_OverHTTP: the days are listed and shown, and one is signed as it was seen, once; whatever else is asked for is
// refused in words that a program can tell apart.
func TestDays_OverHTTP(t *testing.T) {
	t.Parallel()
	w, digest := closedWorld(t)
	shop := w.app.shop
	get := func(path string, into any) {
		t.Helper()
		if got := shop.call(http.MethodGet, path, "", nil); got.code != http.StatusOK || json.Unmarshal(got.body, into) != nil {
			t.Fatalf("%s: got %d %s", path, got.code, got.body)
		}
	}
	var list struct{ Days []reconcile.DaySummary }
	get("/v1/days", &list)
	if len(list.Days) != 1 || list.Days[0].Day != "2026-04-15" || list.Days[0].Signed != reconcile.SignedNot ||
		list.Days[0].Digest != digest || list.Days[0].Sums[0].Canceled.Amount != 20_000 {
		t.Errorf("got %+v", list)
	}
	var applied reconcile.AppliedPage
	get("/v1/statement/applied?limit=1", &applied)
	if len(applied.Applied) != 1 || applied.Applied[0].Amount != 20_000 || applied.Next != "" {
		t.Errorf("got %+v applied", applied)
	}
	for _, refused := range []struct {
		method, path string
		body         any
		want         string
	}{
		{http.MethodGet, "/v1/days?from=yesterday", nil, "400 day_malformed"},
		{http.MethodGet, "/v1/statement/applied?limit=none", nil, "400 cursor_malformed"},
		{http.MethodGet, "/v1/statement/applied?after=%00", nil, "400 cursor_malformed"},
		{http.MethodGet, "/v1/days/2026-02-30", nil, "400 day_malformed"},
		{http.MethodGet, "/v1/days/2026-04-14", nil, "404 day_never_closed"},
		{http.MethodGet, "/v1/days?from=2026-04-14&to=2026-04-13", nil, "400 days_malformed"},
		{http.MethodPost, "/v1/days/2026-02-30/sign", map[string]any{}, "400 day_malformed"},
		{http.MethodPost, "/v1/days/2026-04-14/sign", map[string]any{}, "409 day_not_closed"},
		{http.MethodPost, "/v1/days/2026-04-15/sign", map[string]any{"digest": "abc"}, "400 signature_malformed"},
		{http.MethodPost, "/v1/days/2026-04-15/sign", map[string]any{"digest": strings.Repeat("0", 64)}, "409 day_differs"},
		{http.MethodPost, "/v1/days/2026-04-15/sign", map[string]any{"signed_by": "os:kim"}, "400 body_malformed"},
	} {
		shop.call(refused.method, refused.path, "", refused.body).want(t, refused.path, refused.want)
	}
	signing := map[string]any{"digest": digest, "note": "4월 15일 확인"}
	for i, want := range []int{http.StatusCreated, http.StatusOK} {
		var signed reconcile.Signature
		got := shop.call(http.MethodPost, "/v1/days/2026-04-15/sign", "", signing)
		if got.code != want || json.Unmarshal(got.body, &signed) != nil || signed.SignedBy != "api:shop" || signed.Digest != digest {
			t.Errorf("signing %d: got %d %s", i, got.code, got.body)
		}
	}
	var detail reconcile.DayDetail
	get("/v1/days/2026-04-15", &detail)
	if detail.Signed != reconcile.SignedYes || len(detail.Signatures) != 1 || detail.Statement.Digest != digest || detail.Signatures[0].Note != "4월 15일 확인" {
		t.Errorf("got %+v", detail)
	}
}

// TestMain_Day: the command closes, shows, lists and signs a day in the name of the operating system's user; it exits as
// daesa audit does.
func TestMain_Day(t *testing.T) {
	t.Parallel()
	w, digest := closedWorld(t)
	w.app.stop()
	day := func(want int, says string, args ...string) {
		t.Helper()
		args = append([]string{"day", "-database-url", w.url, "-opening-at", w.cfg.OpeningAt.Format(time.RFC3339)}, args...)
		if code, stdout, stderr := command(args...); code != want || !strings.Contains(stdout+stderr, says) {
			t.Errorf("%v: got %d, want %d and %q:\n%s%s", args[5:], code, want, says, stdout, stderr)
		}
	}
	day(0, "nothing changed", "close", "2026-04-15")
	day(0, digest, "show", "2026-04-15")
	day(0, "reconciled", "list", "-from", "2026-04-01", "-to", "2026-04-15")
	day(2, "not closed", "list", "-from", "2026-04-01", "-to", "2026-04-16")
	day(1, "look at it again", "sign", "2026-04-15", "-digest", strings.Repeat("0", 64))
	day(1, "not closed", "sign", "2026-04-14")
	day(0, "2026-04-15 signed by os:", "sign", "2026-04-15", "-digest", digest, "-note", "seen")
	day(0, "already signed by os:", "sign", "2026-04-15")
	day(0, `"seen"`, "show", "2026-04-15")
	day(2, "never closed", "show", "2026-04-10")
	day(2, "yesterday", "close", "yesterday")
	day(2, "is not over", "close", "2999-12-31")
	if n := w.number(`SELECT count(*) FROM audit_runs WHERE day > '2026-04-16'`); n != 0 {
		t.Errorf("got %d runs of days to come", n)
	}
	w.exec(`UPDATE mirror SET amount = 19000 WHERE kind = 'cancel'`)
	day(1, "0 new, 0 gone, 1 changed", "close", "2026-04-15")
	day(1, "no longer says what was signed", "show", "2026-04-15")
	day(1, "CHANGED SINCE", "list", "-from", "2026-04-15", "-to", "2026-04-15")
}

// TestMain_DayChangedByMuch: who signs alone a day that changed by much since it was signed is refused, not told that the command failed.
func TestMain_DayChangedByMuch(t *testing.T) {
	t.Parallel()
	w, _ := closedWorld(t)
	w.exec(`UPDATE second_person SET above = 100`)
	day := func(verb string) (int, string, string) {
		return command("day", "-database-url", w.url, "-opening-at", w.cfg.OpeningAt.Format(time.RFC3339), verb, "2026-04-15")
	}
	if code, out, errs := day("sign"); code != 0 {
		t.Fatalf("got %d\n%s%s", code, out, errs)
	}
	now := w.clock.Now()
	w.clock.Set(ledger.Day("2026-04-15").End().Add(-time.Second))
	key := w.text(`SELECT payment_key FROM payments`)
	w.dashboard(key, 10_000)
	w.clock.Set(now)
	w.wantDelivery(w.newest(key), http.StatusOK)
	w.clock.Advance(2 * time.Hour)
	w.must(w.app.RereadList(t.Context()))
	if code, out, errs := day("close"); code != 0 {
		t.Fatalf("got %d\n%s%s", code, out, errs)
	}
	if code, out, errs := day("sign"); code != 1 || !strings.Contains(errs, "another must acknowledge") {
		t.Errorf("got %d\n%s%s", code, out, errs)
	}
}

// TestMain_OtherSettings: a command that was told another order pattern, opening or list lag than the service neither closes
// nor signs a day, reads the gateway's list nor imports, and what it only prints comes with a warning. A look at what is
// kept needs no settings. Whoever starts the service with others decides for every command.
func TestMain_OtherSettings(t *testing.T) {
	t.Parallel()
	w, digest := closedWorld(t, func(c *app.Config, _ *tosssim.Config) { c.OrderPattern = "^order-" })
	w.app.stop()
	asked, at := gatewayBehind(t, w.cfg.TossURL)
	file := filepath.Join(t.TempDir(), "payments.csv")
	w.must(os.WriteFile(file, []byte("payment_key,order_id,amount\nno-such-payment,order-none,1000\n"), 0o600))
	const warning = "this command was told other settings than the service has"
	writes := [][]string{
		{"reconcile", "-from", "2026-04-15", "-to", "2026-04-15", "-again", "-toss-url", at, "-toss-secret-key", secretKey},
		{"import", "-csv", file, "-apply", "-toss-url", at, "-toss-secret-key", secretKey},
		{"day", "close", "2026-04-15"},
		{"day", "sign", "2026-04-15", "-digest", digest},
	}
	looks := [][]string{{"audit", "-day", "2026-04-15"}, {"report", "day", "2026-04-15"}, {"report", "range", "2026-04-15", "2026-04-15"}}
	run := func(settings, args []string) (int, string, string) {
		return command(append(append(slices.Clone(args), "-database-url", w.url), settings...)...)
	}
	books := `SELECT concat_ws(' ', (SELECT count(*) FROM audit_runs), (SELECT basis FROM audit_state), (SELECT count(*) FROM list_runs),
		(SELECT md5(string_agg(g::text, '' ORDER BY g.transaction_key)) FROM mirror g), (SELECT count(*) FROM work),
		(SELECT count(*) FROM mismatches), (SELECT count(*) FROM imports), (SELECT count(*) FROM day_signoffs))`
	check := func(settings []string, commands [][]string, sets ...string) {
		t.Helper()
		for _, args := range commands {
			before, questions := w.text(books), asked.Load()
			code, _, stderr := run(settings, args)
			if (code == 2) != (len(sets) > 0) {
				t.Errorf("%v %v: got %d %s", settings, args, code, stderr)
			}
			for _, set := range []string{"DAESA_ORDER_PATTERN", "DAESA_OPENING_AT", "DAESA_LIST_LAG"} {
				if strings.Contains(stderr, set) != slices.Contains(sets, set) {
					t.Errorf("%v %v: got %s", settings, args, stderr)
				}
			}
			if changed := w.text(books) != before || asked.Load() != questions; changed == (len(sets) > 0) {
				t.Errorf("%v %v: the books are\n%s, and were\n%s; %d questions", settings, args, w.text(books), before, asked.Load()-questions)
			}
		}
	}
	warned := func(settings []string, want bool) {
		t.Helper()
		for _, args := range looks {
			if _, stdout, stderr := run(settings, args); strings.Contains(stderr, warning) != want || stdout == "" {
				t.Errorf("%v: %v: got %q and %d bytes", settings, args, stderr, len(stdout))
			}
		}
		if code, _, stderr := run(settings, []string{"day", "show", "2026-04-15"}); code != 0 || stderr != "" {
			t.Errorf("%v: show: got %d %s", settings, code, stderr)
		}
	}
	own := []string{"-opening-at", w.cfg.OpeningAt.Format(time.RFC3339), "-order-pattern", "^order-"}
	check(own, writes)
	warned(own, false)
	check(nil, writes, "DAESA_ORDER_PATTERN", "DAESA_OPENING_AT")
	warned(nil, true)

	w.cfg.OrderPattern = "^ord"
	w.restart()
	w.app.stop()
	check(own, writes[:1], "DAESA_ORDER_PATTERN")
	check(append(slices.Clone(own[:2]), "-order-pattern", "^ord"), writes[:1])
}

// gatewayBehind is a gateway's address that counts what it is asked.
func gatewayBehind(t *testing.T, address string) (asked *atomic.Int32, at string) {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	asked = &atomic.Int32{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	return asked, server.URL
}
