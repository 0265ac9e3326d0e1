package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/riverqueue/river/rivertype"
	"pgregory.net/rapid"

	"daesa/internal/sheet"
	"daesa/ledger"
	"daesa/reconcile"
)

// hostile are texts from outside with what a CSV file must say instead.
func hostile(t *testing.T) []struct{ Text, Guarded string } {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "hostile.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []struct{ Text, Guarded string }
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one struct{ Text, Guarded string }
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestGuard holds every text that a spreadsheet would run or change against what is written instead.
func TestGuard(t *testing.T) {
	t.Parallel()
	for _, h := range hostile(t) {
		if got := sheet.Guard(clean(h.Text)); got != h.Guarded {
			t.Errorf("%q: got %q, want %q", h.Text, got, h.Guarded)
		}
		if got := sheet.Unguard(h.Guarded); got != clean(h.Text) {
			t.Errorf("%q: the text is lost: got %q", h.Text, got)
		}
	}
	if got := clean("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("no UTF-8: got %q", got)
	}
}

// TestGuard_NothingStartsAFormula: whatever the text, nothing that may come to stand first in a cell begins a formula, a
// number or a date, and the text can be had back.
func TestGuard_NothingStartsAFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("=+-@＝−;\t\r\n'\" \u00a0019.E/가a\u202e\x00,"))).Draw(t, "text")
		cleaned := clean(s)
		guarded := sheet.Guard(cleaned)
		if got := sheet.Unguard(guarded); got != cleaned {
			t.Fatalf("%q became %q and comes back as %q", cleaned, guarded, got)
		}
		if !utf8.ValidString(guarded) || strings.ContainsAny(guarded, "\x00\u202e\r") {
			t.Fatalf("%q became %q", s, guarded)
		}
		for _, cell := range strings.FieldsFunc(guarded, func(r rune) bool { return strings.ContainsRune(";\t\n", r) }) {
			if first := strings.TrimLeft(cell, " \"\u00a0"); first != "" && strings.ContainsAny(first[:1], "=+-@") || strings.HasPrefix(first, "＝") || strings.HasPrefix(first, "−") {
				t.Fatalf("%q became %q, in which %q begins a formula", s, guarded, cell)
			}
		}
		var file bytes.Buffer
		out := csv.NewWriter(&file)
		out.UseCRLF = true
		if err := out.Write([]string{guarded, "x"}); err != nil {
			t.Fatal(err)
		}
		out.Flush()
		back, err := csv.NewReader(&file).Read()
		if err != nil || back[0] != guarded {
			t.Fatalf("%q was written and read as %q: %v", guarded, back, err)
		}
	})
}

// TestKorean_HasEveryWord of the closed sets that stand in the cells of a report.
func TestKorean_HasEveryWord(t *testing.T) {
	t.Parallel()
	var words []string
	words = appendWords(words, reconcile.LineNames())
	words = appendWords(words, reconcile.CaptureLineNames())
	words = appendWords(words, reconcile.Verdicts())
	words = appendWords(words, reconcile.Movements())
	words = appendWords(words, reconcile.Standings())
	words = appendWords(words, ledger.Accounts())
	words = appendWords(words, ledger.EntryKinds())
	words = appendWords(words, ledger.Kinds())
	words = appendWords(words, ledger.WorkKinds())
	words = appendWords(words, ledger.Closings())
	words = appendWords(words, ledger.Channels())
	words = appendWords(words, ledger.Statuses())
	words = appendWords(words, ledger.OrderStatuses())
	words = appendWords(words, ledger.CancelRequestStatuses())
	words = appendWords(words, ledger.Events())
	words = appendWords(words, ledger.EventKinds())
	words = appendWords(words, ledger.Resolutions())
	words = appendWords(words, []ledger.Audience{ledger.AudienceMerchant, ledger.AudienceCustomer})
	words = appendWords(words, rivertype.JobStates())
	for _, w := range words {
		if Korean.word(w) == w {
			t.Errorf("%q has no Korean word", w)
		}
	}
}

func appendWords[T ~string](words []string, more []T) []string {
	for _, w := range more {
		words = append(words, string(w))
	}
	return words
}
