package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// past is a gateway with rows of the last days, for commands that go by the clock on the wall.
type past struct {
	sim *tosssim.Sim
	url string
	db  string
	// pages counts the pages of the list that were asked for; the one numbered hold is never answered.
	pages, hold atomic.Int32
	held        chan struct{}
}

func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{sim: tosssim.New(tosssim.Config{SecretKey: secretKey}), db: postgrestest.NewURL(t), held: make(chan struct{}, 1)}
	next := p.sim.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/transactions" && p.pages.Add(1) == p.hold.Load() {
			p.held <- struct{}{}
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(p.sim.Close)
	t.Cleanup(server.Close)
	p.url = server.URL
	for day := range 3 {
		for n, status := range []string{"WAITING_FOR_DEPOSIT", "SOMETHING_NEW"} {
			if day != 1 && n == 1 {
				continue
			}
			err := p.sim.PutTransaction(fmt.Appendf(nil, `{"mId":"tsimshop01","transactionKey":"row-%d-%d","paymentKey":"pay-%d","orderId":"order-%d",
				"status":%q,"transactionAt":%q,"currency":"KRW","amount":0}`, day, n, day, day, status, daysAgo(day+1).Start().Add(12*time.Hour).Format(time.RFC3339)))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

func daysAgo(n int) ledger.Day {
	return ledger.DayOf(time.Now().Add(-time.Duration(n) * 24 * time.Hour))
}

func (p *past) args(command string, more ...string) []string {
	return append([]string{command, "-database-url", p.db, "-toss-url", p.url, "-toss-secret-key", secretKey}, more...)
}

// TestReconcile reads three days of the past, says what it knows of each, and has nothing to read the second time.
func TestReconcile(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	args := p.args("reconcile", "-from", string(daysAgo(3)), "-to", string(daysAgo(1)))
	code, out, errs := command(args...)
	if code != 1 {
		t.Errorf("got %d, want 1 for the row that nobody understands: %s %s", code, out, errs)
	}
	if got := strings.Count(errs, "window "); got != 3 || !strings.Contains(errs, "window 3 of 3") || !strings.Contains(errs, "left") {
		t.Errorf("the progress has %d lines, want one for each window:\n%s", got, errs)
	}
	for _, want := range []string{"3 windows, 3 pages, 4 rows, 4 of them new", string(daysAgo(2)) + "  yes          2"} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q in it", out, want)
		}
	}
	if _, out, _ = command(args...); !strings.Contains(out, "read before") || !strings.Contains(out, "0 windows") {
		t.Errorf("the second time: got\n%s", out)
	}
	pages := p.pages.Load()
	_, out, _ = command(append(args, "-again", "-json")...)
	var report struct {
		Windows, Rows, Fresh int
		Left                 []any
		Days                 []struct{ Whole bool }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Windows != 3 || report.Rows != 4 || report.Fresh != 0 ||
		len(report.Left) != 0 || len(report.Days) != 3 || !report.Days[0].Whole {
		t.Errorf("again: got %+v and %v from\n%s", report, err, out)
	}
	if got := p.pages.Load() - pages; got != 3 {
		t.Errorf("again: asked for %d pages, want 3", got)
	}
	for _, bad := range [][]string{{"-from", "yesterday"}, {"-from", "2026-01-02", "-to", "2026-01-01"}, {"-from", "2999-01-01"}} {
		if code, _, errs := command(p.args("reconcile", bad...)...); code != 2 || !strings.Contains(errs, "--from") {
			t.Errorf("%v: got %d %s", bad, code, errs)
		}
	}
	if code, _, errs := command("reconcile", "-from", "2026-01-02", "-database-url", p.db); code != 2 || !strings.Contains(errs, "TOSS_SECRET_KEY") {
		t.Errorf("without a key: got %d %s", code, errs)
	}
}

// TestReconcile_Stopped: an interrupt in the middle of the second window says what is left, and the next call goes on
// with that.
func TestReconcile_Stopped(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.hold.Store(2)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := p.args("reconcile", "-from", string(daysAgo(3)), "-to", string(daysAgo(1)))
	program := exec.CommandContext(t.Context(), self, append([]string{programArgument}, args...)...)
	var out, errs bytes.Buffer
	program.Stdout, program.Stderr = &out, &errs
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	<-p.held
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := program.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("got %v, want exit code 2: %s", err, errs.String())
	}
	if !strings.Contains(out.String(), "2 windows; the same command goes on") || !strings.Contains(out.String(), "NO") {
		t.Errorf("got\n%s", out.String())
	}
	if code, out, errs := command(args...); code != 1 || !strings.Contains(out, "2 windows, 2 pages") || strings.Contains(out, "NO") {
		t.Errorf("got %d\n%s%s", code, out, errs)
	}
}
