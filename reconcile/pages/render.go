package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/reconcile/report"
)

//go:embed templates static
var files embed.FS

// The pages, each a file of templates/.
const (
	pageSignIn     = "sign_in"
	pagePassword   = "password"
	pageOverview   = "overview"
	pageDay        = "day"
	pageMismatches = "mismatches"
	pageMismatch   = "mismatch"
	pageReport     = "report"
	pageDeliveries = "deliveries"
	pageDelivery   = "delivery"
	pageBulk       = "bulk"
	pageAccounts   = "accounts"
	pageAsked      = "asked"
	pageProblem    = "problem"
)

func pageNames() []string {
	return []string{pageSignIn, pagePassword, pageOverview, pageDay, pageMismatches, pageMismatch, pageReport, pageDeliveries, pageDelivery, pageBulk, pageAccounts, pageAsked, pageProblem}
}

// parseTemplates reads every page once for each language: its words are bound to it.
func parseTemplates() (map[report.Language]map[string]*template.Template, error) {
	all := make(map[report.Language]map[string]*template.Template)
	for _, language := range []report.Language{report.English, report.Korean} {
		all[language] = make(map[string]*template.Template)
		for _, name := range pageNames() {
			parsed, err := template.New("frame.html").Funcs(words{language}.functions()).Option("missingkey=error").
				ParseFS(files, "templates/frame.html", "templates/parts.html", "templates/"+name+".html")
			if err != nil {
				return nil, fmt.Errorf("read the page %s: %w", name, err)
			}
			all[language][name] = parsed
		}
	}
	return all, nil
}

// frame is what every page is given.
type frame struct {
	Name     string
	Language report.Language
	Other    report.Language
	Who      *people.Account
	Here     string // path and query of the page, to come back to
	Now      time.Time
	Style    string
	Icon     string
	Data     any
}

// write writes a page whole, then sends it.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, status int, name string, data any) error {
	language := p.languageOf(r)
	f := frame{
		Name: name, Language: language, Other: report.Korean, Who: whoOf(r.Context()), Here: r.URL.RequestURI(), Now: p.cfg.Now(), Style: p.style.path, Icon: p.icon.path, Data: data,
	}
	if language == report.Korean {
		f.Other = report.English
	}
	if r.Method != http.MethodGet {
		f.Here = "/"
	}
	var whole bytes.Buffer
	if err := p.templates[language][name].Execute(&whole, f); err != nil {
		return fmt.Errorf("write the page %s: %w", name, err)
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Language", string(language))
	header.Set("Content-Length", strconv.Itoa(whole.Len()))
	w.WriteHeader(status)
	_, _ = whole.WriteTo(w) // a browser that has gone away is no failure of ours
	return nil
}

// problem tells people what a request failed of.
func (p *Pages) problem(w http.ResponseWriter, r *http.Request, problem web.Problem) {
	if p.write(w, r, problem.Status, pageProblem, problemData{Problem: problem, Request: web.RequestID(r.Context())}) != nil {
		http.Error(w, problem.Title, problem.Status) // the page itself is what fails
	}
}

// problemData is a problem for people.
type problemData struct {
	web.Problem

	Request string
}
