package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/reconcile"
)

// closedWorld is a world whose first day has ended and is closed, with one order canceled in part.
func closedWorld(t *testing.T) (w *world, digest string) {
	t.Helper()
	w = newWorld(t)
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

// TestMain_OtherSettings: a command that was told another opening or list lag than the service neither closes nor signs a
// day, and what it only prints comes with a warning. A look at what is kept needs no settings.
func TestMain_OtherSettings(t *testing.T) {
	t.Parallel()
	w, digest := closedWorld(t)
	w.app.stop()
	opening := w.cfg.OpeningAt.Format(time.RFC3339)
	sameInstant := w.cfg.OpeningAt.UTC().Format(time.RFC3339)
	const warning = "the service says something else of these books"
	for _, test := range []struct {
		name     string
		settings []string
		same     bool
	}{
		{"the service's own", []string{"-opening-at", opening}, true},
		{"the same instant in another zone", []string{"-opening-at", sameInstant, "-list-lag", "600s"}, true},
		{"no opening", nil, false},
		{"another opening", []string{"-opening-at", "2026-04-15T09:00:01+09:00"}, false},
		{"another lag", []string{"-opening-at", opening, "-list-lag", "5m"}, false},
	} {
		run := func(args ...string) (int, string, string) {
			return command(append(append(args, "-database-url", w.url), test.settings...)...)
		}
		runs := w.number(`SELECT count(*) FROM audit_runs`)
		basis := w.text(`SELECT basis FROM audit_state`)
		for _, args := range [][]string{{"day", "close", "2026-04-15"}, {"day", "sign", "2026-04-15", "-digest", digest}} {
			code, _, stderr := run(args...)
			if (code == 0) != test.same || strings.Contains(stderr, "DAESA_OPENING_AT") == test.same {
				t.Errorf("%s: %v: got %d %s", test.name, args, code, stderr)
			}
		}
		if !test.same && (w.number(`SELECT count(*) FROM audit_runs`) != runs || w.text(`SELECT basis FROM audit_state`) != basis) {
			t.Errorf("%s: something was written", test.name)
		}
		for _, args := range [][]string{{"audit", "-day", "2026-04-15"}, {"report", "day", "2026-04-15"}, {"report", "range", "2026-04-15", "2026-04-15"}} {
			if _, stdout, stderr := run(args...); strings.Contains(stderr, warning) == test.same || stdout == "" {
				t.Errorf("%s: %v: got %q and %d bytes", test.name, args, stderr, len(stdout))
			}
		}
		if code, _, stderr := run("day", "show", "2026-04-15"); code != 0 || stderr != "" {
			t.Errorf("%s: show: got %d %s", test.name, code, stderr)
		}
	}
}
