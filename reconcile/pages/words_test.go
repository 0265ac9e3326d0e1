package pages

import (
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"daesa/reconcile/report"
)

// said finds the texts of the pages where they are: in templates, and in what the pages say from Go.
var (
	inTemplates = regexp.MustCompile(`[({] ?t ("(?:[^"\\]|\\.)*")`)
	verbs       = regexp.MustCompile(`%[sd]`)
)

func TestWords_EveryTextIsInKorean(t *testing.T) {
	t.Parallel()
	texts := []string{
		"Cancels of each day: canceled orders, pending, accepted, unexplained", "gateway",
		whyDiffers, whyPassword, whyOld, saidApplied, saidUnchanged, saidPending, saidConflict,
	}
	err := fs.WalkDir(files, "templates", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		for _, found := range inTemplates.FindAllStringSubmatch(string(source), -1) {
			text, err := strconv.Unquote(found[1])
			if err != nil {
				return err
			}
			texts = append(texts, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 100 {
		t.Fatalf("only %d texts were found: this test does not see the pages", len(texts))
	}
	for _, text := range texts {
		korean, ok := koreanTexts[text]
		if !ok {
			t.Errorf("%q has no Korean", text)
			continue
		}
		if got, want := verbs.FindAllString(korean, -1), verbs.FindAllString(text, -1); !slices.Equal(got, want) {
			t.Errorf("%q is filled with %v, its Korean with %v", text, want, got)
		}
	}
	for text := range koreanTexts {
		if !slices.Contains(texts, text) {
			t.Errorf("%q is said nowhere", text)
		}
	}
}

func TestLocal_GoesNowhereElse(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/mismatches?status=open": "/mismatches?status=open", "": "/", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/",
		"/\tevil": "/", "javascript:alert(1)": "/",
	} {
		if got := local(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestParseTemplates(t *testing.T) {
	t.Parallel()
	all, err := parseTemplates()
	if err != nil {
		t.Fatal(err)
	}
	for language, pages := range all {
		for _, name := range pageNames() {
			if pages[name] == nil {
				t.Errorf("no %s in %s", name, strings.ToUpper(string(language)))
			}
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of              any
		english, korean string
	}{
		{14*time.Hour + 20*time.Minute, "14h 20m", "14시간 20분"},
		{"10m0s", "10m", "10분"},
		{"1h0m5s", "1h 5s", "1시간 5초"},
		{time.Duration(0), "0s", "0초"},
		{"unknown", "unknown", "unknown"},
	} {
		if got := (words{report.English}).span(c.of); got != c.english {
			t.Errorf("%v: got %q, want %q", c.of, got, c.english)
		}
		if got := (words{report.Korean}).span(c.of); got != c.korean {
			t.Errorf("%v: got %q, want %q", c.of, got, c.korean)
		}
	}
}
