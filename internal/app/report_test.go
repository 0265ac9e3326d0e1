package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"daesa/ledger"
)

// TestReport_FromTheCommandLine makes every report of a sale in every format.
func TestReport_FromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.sell("order-1", 50_000)
	w.dashboard(key, 12_000)
	w.wantDelivery(w.newest(key), 200)
	w.readList()
	day := string(ledger.DayOf(w.clock.Now()))

	for _, args := range [][]string{{"day", day}, {"range", day, day}, {"order", "order-1"}, {"applied"}, {"trial-balance"}} {
		args = append([]string{"report", "-database-url", w.url}, args...)
		code, csv, stderr := command(args...)
		if code != 0 || !strings.HasPrefix(csv, "\ufeffreport,"+strings.ReplaceAll(args[3], "-", "_")+"\r\n") {
			t.Errorf("%v: got %d, %s and %.80s", args[3:], code, stderr, csv)
		}
		code, text, stderr := command(append(args, "-format", "json")...)
		if code != 0 || !json.Valid([]byte(text)) {
			t.Errorf("%v: got %d, %s and %.80s", args[3:], code, stderr, text)
		}
		code, workbook, stderr := command(append(args, "-format", "xlsx", "-lang", "ko")...)
		book, err := excelize.OpenReader(strings.NewReader(workbook))
		if code != 0 || err != nil || book.GetSheetList()[0] != "개요" {
			t.Errorf("%v: got %d, %s and %v", args[3:], code, stderr, err)
		}
	}
	_, timeline, _ := command("report", "-database-url", w.url, "order", "order-1")
	for _, want := range []string{"gateway,capture,", "notice,PAYMENT_STATUS_CHANGED PARTIAL_CANCELED,applied_partial", "journal,cancel,refunds,KRW,12000", "list,listed,"} {
		if !strings.Contains(timeline, want) {
			t.Errorf("the timeline lacks %q:\n%s", want, timeline)
		}
	}
}

// TestReport_Refusals: what cannot be reported says so, and leaves nothing behind.
func TestReport_Refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	for _, test := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing asked", nil, 2, "trial-balance"},
		{"an unknown order", []string{"order", "order-none"}, 1, "not in the books"},
		{"a day that is none", []string{"day", "2026-02-30"}, 2, "2026-02-30"},
		{"a range that ends before it begins", []string{"range", "2026-11-30", "2026-11-29"}, 2, "range"},
		{"an unknown format", []string{"-format", "pdf", "trial-balance"}, 2, "pdf"},
		{"nowhere to write", []string{"-out", filepath.Join(dir, "none", "report.csv"), "trial-balance"}, 2, "none"},
		{"nothing written for an unknown order", []string{"-out", filepath.Join(dir, "report.csv"), "order", "order-none"}, 1, "not in the books"},
	} {
		code, stdout, stderr := command(append([]string{"report", "-database-url", w.url}, test.args...)...)
		if code != test.code || !strings.Contains(stdout+stderr, test.says) {
			t.Errorf("%s: got %d and %q, want %d and %q", test.name, code, stdout+stderr, test.code, test.says)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("got %v left behind: %v", left, err)
	}
}

// TestReport_File is what standard output would have been, whole, and takes the place of an older one.
func TestReport_File(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sell("order-1", 50_000)
	file := filepath.Join(t.TempDir(), "order.csv")
	w.must(os.WriteFile(file, []byte("older"), 0o600))
	code, stdout, stderr := command("report", "-database-url", w.url, "-out", file, "order", "order-1")
	if code != 0 || stdout != "" {
		t.Fatalf("got %d, %q and %q", code, stdout, stderr)
	}
	got, err := os.ReadFile(file)
	w.must(err)
	if !bytes.Contains(got, []byte("order_id,order-1")) || !bytes.HasSuffix(got, []byte("\r\n")) {
		t.Errorf("got %q", got)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("got %v beside it: %v", left, err)
	}
}
