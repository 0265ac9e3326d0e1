package pages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile"
	"daesa/reconcile/report"
)

// rowsShown is how many rows of a table a page shows; the file has all.
const rowsShown = 200

// reportKind is what a report is about, as it stands in its address.
type reportKind string

// The reports.
const (
	reportDay          reportKind = "day"
	reportRange        reportKind = "range"
	reportOrder        reportKind = "order"
	reportApplied      reportKind = "applied"
	reportTrialBalance reportKind = "trial-balance"
)

// maker makes a report and hands it to write, which must not keep it.
type maker func(ctx context.Context, write func(report.Report) error) error

// Report serves GET /reports/{kind}: a report as a page, or with ?format= as a file. What it is of stands in the query:
// ?day= of day, ?from=&to= of range, ?order_id= of order, ?as_of=&known_at= of trial-balance, both in Korean time.
func (p *Pages) Report(w http.ResponseWriter, r *http.Request, who people.Account) error {
	kind := reportKind(chi.URLParam(r, "kind"))
	query := r.URL.Query()
	maker, err := p.maker(kind, query)
	if err != nil {
		return err
	}
	format := report.Format(query.Get("format"))
	switch {
	case format == "":
		return p.showReport(w, r, who, kind, query, maker)
	case !slices.Contains(report.Formats(), format):
		return fmt.Errorf("the format: %w", ErrForm)
	case !who.May(people.MayExport):
		return ErrNotAllowed
	}
	return p.sendReport(w, r, who, kind, format, maker)
}

// Order serves GET /orders/{order_id}: everything that is known of one order, in the order in which it happened.
func (p *Pages) Order(w http.ResponseWriter, r *http.Request, who people.Account) error {
	id, err := web.PathText(r, "order_id")
	if err != nil {
		return ledger.ErrNotFound
	}
	query := url.Values{"order_id": {id}}
	maker, err := p.maker(reportOrder, query)
	if err != nil {
		return err
	}
	return p.showReport(w, r, who, reportOrder, query, maker)
}

// maker reads from the query what the report is of.
func (p *Pages) maker(kind reportKind, query url.Values) (maker, error) {
	reporter := p.cfg.Reporter
	switch kind {
	case reportDay:
		day, err := ledger.ParseDay(query.Get("day"))
		return func(ctx context.Context, write func(report.Report) error) error { return reporter.Day(ctx, day, write) }, dayForm(err)
	case reportRange:
		from, err := ledger.ParseDay(query.Get("from"))
		to, toErr := ledger.ParseDay(query.Get("to"))
		if err == nil && toErr == nil && from > to {
			err = reconcile.ErrDays
		}
		return func(ctx context.Context, write func(report.Report) error) error {
				return reporter.Range(ctx, from, to, write)
			},
			dayForm(errors.Join(err, toErr))
	case reportOrder:
		id := query.Get("order_id")
		if id == "" || len(id) > 200 || !utf8.ValidString(id) || slices.Contains([]byte(id), 0) {
			return nil, ledger.ErrNotFound
		}
		return func(ctx context.Context, write func(report.Report) error) error {
			return reporter.Order(ctx, id, write)
		}, nil
	case reportApplied:
		return reporter.Applied, nil
	case reportTrialBalance:
		asOf, err := inKorea(query.Get("as_of"))
		knownAt, knownErr := inKorea(query.Get("known_at"))
		return func(ctx context.Context, write func(report.Report) error) error {
			return reporter.TrialBalance(ctx, asOf, knownAt, write)
		}, errors.Join(err, knownErr)
	}
	return nil, web.ErrNoRoute
}

func dayForm(err error) error {
	if err != nil {
		return web.WithDetail(err, "a day must have the form 2006-01-02")
	}
	return nil
}

// inKorea reads a moment as a form sends it; nothing for none.
func inKorea(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(form, text, ledger.Seoul()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("a moment has the form 2006-01-02T15:04: %w", ErrForm)
}

// reportData is a report as a page.
type reportData struct {
	Kind   reportKind
	Title  string
	Query  url.Values
	Facts  []shownFact
	Tables []shownTable
	Files  []file
	AsOf   bool // it is of a moment that can be chosen
	Ask    bool // who looks may have the gateway asked about the payments in it
}

type shownFact struct{ Name, Value string }

type shownTable struct {
	Name    string
	Columns []shownColumn
	Rows    [][]string
	More    bool // there are more than are shown
}

type shownColumn struct {
	Name   string
	Number bool
	Order  bool // its cells name orders
	Pay    bool // its cells are the keys of the payments that the table is of
	Long   bool // its cells may be long
}

// file is the same report as a file.
type file struct {
	Format report.Format
	At     string
}

// errEnough ends a table of which enough is shown.
var errEnough = errors.New("enough rows")

func (p *Pages) showReport(
	w http.ResponseWriter, r *http.Request, who people.Account, kind reportKind, query url.Values, make maker,
) error {
	language := p.languageOf(r)
	d := reportData{Kind: kind, Query: query, Title: query.Get("order_id"), AsOf: kind == reportTrialBalance, Ask: who.May(people.MayAsk)}
	for _, format := range report.Formats() {
		of := maps.Clone(query)
		of.Set("format", string(format))
		d.Files = append(d.Files, file{format, "/reports/" + string(kind) + "?" + of.Encode()})
	}
	err := make(r.Context(), func(told report.Report) error {
		d.Facts, d.Tables = nil, nil
		for _, f := range told.Facts {
			if value := language.Cell(f.Value); value != "" {
				d.Facts = append(d.Facts, shownFact{language.Name(f.Name), value})
			}
		}
		for _, t := range told.Tables {
			shown, err := show(t, language)
			if err != nil {
				return err
			}
			d.Tables = append(d.Tables, shown)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.write(w, r, http.StatusOK, pageReport, d)
}

// show reads the beginning of a table.
func show(t report.Table, language report.Language) (shownTable, error) {
	shown := shownTable{Name: language.Name(t.Name)}
	for _, c := range t.Columns {
		shown.Columns = append(shown.Columns, shownColumn{
			Name: language.Column(t.Name, c.Name), Number: c.Type == report.TypeMoney || c.Type == report.TypeCount, Order: c.Name == "order_id",
			Long: c.Type == report.TypeText, Pay: t.Name == "payments" && c.Name == "payment_key",
		})
	}
	if t.Rows == nil {
		return shown, nil
	}
	err := t.Rows(func(row report.Row) error {
		if len(shown.Rows) == rowsShown {
			shown.More = true
			return errEnough
		}
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = language.Cell(c)
		}
		shown.Rows = append(shown.Rows, cells)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return shown, err
	}
	return shown, nil
}
