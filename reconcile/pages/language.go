package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"daesa/ledger"
	"daesa/reconcile"
	"daesa/reconcile/report"
)

// languageCookie keeps the language that somebody chose.
const languageCookie = "language"

// languageOf is the language of a request: the one chosen, else the browser's, else English.
func (p *Pages) languageOf(r *http.Request) report.Language {
	if chosen, err := r.Cookie(languageCookie); err == nil {
		if l := report.Language(chosen.Value); l == report.Korean || l == report.English {
			return l
		}
	}
	preferred, _, err := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil {
		return report.English
	}
	_, index, _ := p.languages.Match(preferred...)
	return []report.Language{report.English, report.Korean}[index]
}

// SetLanguage serves POST /language: keeps the language and goes back to where it was chosen.
func (p *Pages) SetLanguage(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	chosen := report.Language(r.PostForm.Get("language"))
	if chosen != report.Korean && chosen != report.English {
		return ErrForm
	}
	//nolint:gosec // it says nothing but a language
	http.SetCookie(w, &http.Cookie{Name: languageCookie, Value: string(chosen), Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode})
	goTo(w, r, r.PostForm.Get("back"))
	return nil
}

// local is a path of ours to go to; anything else is the overview.
func local(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}

// formMost is far above any form of ours.
const formMost = 64 << 10

// readForm reads a form whole.
func readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, formMost)
	if err := r.ParseForm(); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return nil
}

// words are what a page says in one language.
type words struct{ language report.Language }

func (s words) functions() template.FuncMap {
	return template.FuncMap{
		"t":        s.say,
		"word":     func(w any) string { return s.language.Word(fmt.Sprint(w)) },
		"reason":   s.language.Reason,
		"sentence": s.language.Sentence,
		"amount":   amount,
		"decimal":  ledger.Grouped,
		"count":    count,
		"style":    verdictStyle,
		"evidence": evidence,
		"segment":  url.PathEscape, // of a path: templates leave what parts paths and queries as it is
		"outcome":  s.outcome,
		"report": func(kind reportKind) string {
			return s.language.Column("report", strings.ReplaceAll(string(kind), "-", "_"))
		},
		"at":      at,
		"span":    s.span,
		"weekday": s.weekday,
		"plot":    s.plot,
	}
}

// say is a text of the pages. Without another in the language it stands as it is; a test finds those that have none.
func (s words) say(text string, values ...any) string {
	if s.language == report.Korean {
		for _, dictionary := range []map[string]string{koreanTexts, koreanProblems} {
			if korean, ok := dictionary[text]; ok {
				text = korean
			}
		}
	}
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

// outcome is what the books made of an answer of the gateway's.
func (s words) outcome(o ledger.Outcome) string {
	switch o {
	case ledger.OutcomeApplied:
		return s.say(saidApplied)
	case ledger.OutcomeUnchanged:
		return s.say(saidUnchanged)
	case ledger.OutcomePending:
		return s.say(saidPending)
	case ledger.OutcomeConflict:
		return s.say(saidConflict)
	}
	return string(o)
}

// What the books made of an answer.
const (
	saidApplied   = "it was new, and is in the books now"
	saidUnchanged = "they say so already"
	saidPending   = "unchanged; the gateway is still working on it"
	saidConflict  = "unchanged; the gateway contradicts them, which is a mismatch now"
)

// weekday is the day of the week of a business day.
func (s words) weekday(day ledger.Day) string {
	of := day.Start().Add(12 * time.Hour).In(ledger.Seoul()).Weekday()
	if s.language == report.Korean {
		return []string{"일", "월", "화", "수", "목", "금", "토"}[of]
	}
	return of.String()[:3]
}

// span is how long something takes, to the second: a duration, or one as statements write it.
func (s words) span(of any) string {
	d, ok := of.(time.Duration)
	if text, written := of.(string); written {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			return text
		}
	} else if !ok {
		return fmt.Sprint(of)
	}
	units := []string{"h", "m", "s"}
	if s.language == report.Korean {
		units = []string{"시간", "분", "초"}
	}
	var parts []string
	seconds := int64(d.Round(time.Second) / time.Second)
	for i, n := range []int64{seconds / 3600, seconds / 60 % 60, seconds % 60} {
		if n != 0 || (i == 2 && len(parts) == 0) {
			parts = append(parts, strconv.FormatInt(n, 10)+units[i])
		}
	}
	return strings.Join(parts, " ")
}

// amount is minor units of a currency with separators, without its code.
func amount(minor int64, currency ledger.Currency) string {
	return ledger.Grouped(ledger.Money{Minor: minor, Currency: currency}.Decimal())
}

// count is a number with separators.
func count(n any) string {
	switch n := n.(type) {
	case int:
		return ledger.Grouped(strconv.Itoa(n))
	case *int:
		return ledger.Grouped(strconv.Itoa(*n))
	}
	return fmt.Sprint(n)
}

// evidence is what one of the books had, a line for each of its fields.
func evidence(raw json.RawMessage) string {
	var indented bytes.Buffer
	if len(raw) == 0 || string(raw) == "null" {
		return "–"
	}
	if json.Indent(&indented, raw, "", "  ") != nil {
		return string(raw)
	}
	return indented.String()
}

// at is a moment in Korea, to the second.
func at(t any) string {
	switch t := t.(type) {
	case time.Time:
		if !t.IsZero() {
			return t.In(ledger.Seoul()).Format("2006-01-02 15:04:05")
		}
	case *time.Time:
		if t != nil {
			return at(*t)
		}
	}
	return ""
}

// verdictStyle is the class that a verdict is drawn with.
func verdictStyle(v reconcile.Verdict) string {
	switch v {
	case reconcile.VerdictReconciled:
		return "good"
	case reconcile.VerdictPending:
		return "waits"
	case reconcile.VerdictIncomplete:
		return "unsure"
	case reconcile.VerdictBreaks, reconcile.VerdictError:
		return "bad"
	}
	return "none"
}
