package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/app"
	"daesa/internal/people"
)

// keyed runs a command of keys.
func (w *world) keyed(want int, args ...string) string {
	w.Helper()
	var out, errors bytes.Buffer
	if got := app.Main(append([]string{"--database-url", w.url, "key"}, args...), &out, &errors); got != want {
		w.Fatalf("key %s: got exit code %d, want %d\n%s%s", strings.Join(args, " "), got, want, out.String(), errors.String())
	}
	return out.String() + errors.String()
}

// keyIn is the key that a command printed.
func (w *world) keyIn(said string) string {
	w.Helper()
	found := regexp.MustCompile(`^key, shown this once: (daesa_[a-z2-7]{8}_[a-z2-7]{52})\n$`).FindStringSubmatch(said)
	if found == nil {
		w.Fatalf("no key in %q", said)
	}
	return found[1]
}

// TestKey_CommandLine is the life of a key: made while the service runs, rotated without a gap, revoked within 30 seconds.
func TestKey_CommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status := func(key string) int {
		t.Helper()
		got, _ := w.api(key, http.MethodGet, "/v1/mismatches", "")
		return got
	}
	first := w.keyIn(w.keyed(app.ExitOK, "add", "erp", "--scopes", "read"))
	w.keyed(app.ExitBreaks, "add", "ERP", "--scopes", "read")
	w.keyed(app.ExitIncomplete, "add", "two words", "--scopes", "read")
	w.keyed(app.ExitIncomplete, "add", "pos", "--scopes", "confirm")
	w.keyed(app.ExitIncomplete, "rotate", "erp", "--grace", "1000h")
	w.keyed(app.ExitBreaks, "rotate", "pos")
	if got := status(first); got != http.StatusOK {
		t.Fatalf("a new key: got %d, want 200", got)
	}
	if got, said := w.api(first, http.MethodPost, "/v1/mismatches/1/acknowledge", "{}"); got != http.StatusForbidden || said["code"] != "scope_missing" || !strings.Contains(fmt.Sprint(said["detail"]), "books") {
		t.Errorf("a key that may look only, at a judgment: %d %v", got, said)
	}
	second := w.keyIn(w.keyed(app.ExitOK, "rotate", "erp"))
	w.clock.Advance(time.Minute)
	if a, b := status(first), status(second); a != http.StatusOK || b != http.StatusOK {
		t.Errorf("after the rotation: %d and %d, want both to let in", a, b)
	}
	w.keyed(app.ExitOK, "revoke", "erp", "--prefix", first[:14])
	w.clock.Advance(30 * time.Second)
	if a, b := status(first), status(second); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("after one was revoked: %d and %d", a, b)
	}
	if said := w.keyed(app.ExitOK, "list"); strings.Count(said, "erp") != 2 || !strings.Contains(said, "revoked 20") || !strings.Contains(said, "current") || !strings.Contains(said, second[:14]) {
		t.Errorf("the list says %q", said)
	}
	w.app.stop() // the last use is written at the latest then
	if got := w.number(`SELECT count(*) FROM api_keys WHERE last_used_at IS NOT NULL`); got != 2 {
		t.Errorf("%d keys are known to have been used, want 2", got)
	}
	all := w.logs.String() + w.keyed(app.ExitOK, "list", "--json") + w.text(`SELECT string_agg(d::text, ' ') FROM deeds d`)
	for _, secret := range []string{first[15:], second[15:]} {
		if strings.Contains(all, secret) {
			t.Error("a key stands in the log, the list or the trail")
		}
	}
}

// What somebody did with a key is done in its name, and a rotation changes nothing of that: the same request with the new
// key is the same request.
func TestKey_IsOneAfterARotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := people.NewKeys(w.db, w.clock.Now)
	first, err := keys.Add(t.Context(), "os:root", "kim", people.Scopes())
	w.must(err)
	id := w.mismatch(1, 5_000_000)
	at := fmt.Sprintf("/v1/mismatches/%d/", id)
	for _, step := range []struct{ name, body string }{
		{"acknowledge", `{"revision":1}`}, {"resolve", `{"revision":2,"as":"accepted","note":"given in cash"}`},
	} {
		if got, said := w.api(first, http.MethodPost, at+step.name, step.body); got != http.StatusOK {
			t.Fatalf("%s: %d %v", step.name, got, said)
		}
	}
	if got := w.text(`SELECT string_agg(DISTINCT actor, ' ') FROM mismatch_trail WHERE actor LIKE 'api:%'`); got != "api:kim" {
		t.Errorf("the trail names %s", got)
	}
	second, err := keys.Rotate(t.Context(), "os:root", "kim", time.Hour)
	w.must(err)
	w.clock.Advance(time.Second)
	if got, said := w.api(second, http.MethodPost, at+"confirm", `{"revision":3}`); got != http.StatusForbidden || said["code"] != "second_person" {
		t.Errorf("a new key makes a second person: %d %v", got, said)
	}
}

// TestScopes holds what each scope lets in to against a table. A route that asks for none is one for buyers or the gateway.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := people.NewKeys(w.db, w.clock.Now)
	router, err := app.PublicRoutes(w.app.App, prometheus.NewPedanticRegistry())
	w.must(err)
	tokens := make(map[people.Scope]string)
	for _, scope := range people.Scopes() {
		tokens[scope], err = keys.Add(t.Context(), "os:root", string(scope), []people.Scope{scope})
		w.must(err)
	}
	var rows []string
	w.must(chi.Walk(router, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		address := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "1")
		ask := func(token string) bool {
			request, err := http.NewRequestWithContext(t.Context(), method, w.app.URL()+address, http.NoBody)
			w.must(err)
			request.Header.Set("Authorization", "Bearer "+token)
			got, err := w.app.shop.send(request)
			w.must(err)
			return got.code != http.StatusUnauthorized && got.Code != "scope_missing"
		}
		var in []string
		for _, scope := range people.Scopes() {
			if ask(tokens[scope]) {
				in = append(in, string(scope))
			}
		}
		if ask("nobody") {
			in = []string{"open"}
		}
		rows = append(rows, fmt.Sprintf("%-7s %-44s %s", method, path, strings.Join(in, " ")))
		return nil
	}))
	slices.Sort(rows)
	got, golden := strings.Join(rows, "\n")+"\n", filepath.Join("testdata", "scopes.txt")
	if *update {
		w.must(os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	w.must(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the scopes differ from %s; -update writes it (-want +got):\n%s", golden, diff)
	}
}
