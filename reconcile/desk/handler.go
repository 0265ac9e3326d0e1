package desk

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile"
)

// bodyMax is far above what a step needs.
const bodyMax = 16 << 10

func invalid(detail string) error { return web.WithDetail(ErrRequest, detail) }

// ListMismatches serves GET /v1/mismatches: those that are not resolved, or of a status, a resolution
// or days of resolution asked for, newest first.
func (d *Desk) ListMismatches(w http.ResponseWriter, r *http.Request) error {
	f, err := filterOf(r)
	if err != nil {
		return err
	}
	list, err := d.List(r.Context(), f)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, list)
}

// filterOf reads the filter from the request's query. A parameter that is not known is refused: a filter that is not
// applied would show what was not asked for.
func filterOf(r *http.Request) (ledger.MismatchFilter, error) {
	var f ledger.MismatchFilter
	query := r.URL.Query()
	for name := range query {
		if !slices.Contains([]string{
			"status", "resolution", "from", "to", "kind", "assignee", "order_id", "payment_key", "incident_id", "min_amount", "currency", "before", "limit",
		}, name) {
			return f, invalid("no such parameter: " + strconv.QuoteToASCII(name))
		}
	}
	if err := texts(query.Get("order_id"), query.Get("payment_key"), query.Get("assignee")); err != nil {
		return f, err
	}
	f.Status, f.Kind = ledger.MismatchStatus(query.Get("status")), ledger.Kind(query.Get("kind"))
	f.Resolution, f.From, f.To = ledger.Resolution(query.Get("resolution")), ledger.Day(query.Get("from")), ledger.Day(query.Get("to"))
	f.Assignee, f.OrderID, f.PaymentKey = ledger.Actor(query.Get("assignee")), query.Get("order_id"), query.Get("payment_key")
	numbers := map[string]*int64{"incident_id": &f.Incident, "before": &f.Before}
	for name, into := range numbers {
		if err := number(query.Get(name), name, into); err != nil {
			return f, err
		}
	}
	var limit int64
	if err := number(query.Get("limit"), "limit", &limit); err != nil {
		return f, err
	}
	f.Limit = int(min(limit, 1000))
	if amount := query.Get("min_amount"); amount != "" {
		var err error
		if f.AtLeast, err = ledger.ParseMoney(amount, currencyOf(query.Get("currency"))); err != nil {
			return f, invalid("min_amount must be an exact amount of the currency")
		}
	}
	return f, CheckFilter(f)
}

func currencyOf(text string) ledger.Currency {
	if text == "" {
		return ledger.KRW
	}
	return ledger.Currency(text)
}

// CheckFilter refuses words that no mismatch can have: their list would be empty for the wrong reason.
func CheckFilter(f ledger.MismatchFilter) error {
	switch {
	case f.Status != "" && !slices.Contains(ledger.MismatchStatuses(), f.Status):
		return invalid("status must be open, acknowledged or resolved")
	case f.Resolution != "" && !slices.Contains(ledger.Resolutions(), f.Resolution):
		return invalid("resolution must be auto, fixed or accepted")
	case !dayOrNone(f.From) || !dayOrNone(f.To):
		return invalid("from and to must be days of the form 2006-01-02")
	case f.Status != "" && f.Status != ledger.MismatchResolved && (f.Resolution != "" || f.From != "" || f.To != ""):
		return invalid("resolution, from and to are of those that are resolved")
	case f.From != "" && f.To != "" && f.From > f.To:
		return invalid("from must not be after to")
	case f.Kind != "" && !slices.Contains(ledger.Kinds(), f.Kind):
		return invalid("there is no such kind")
	}
	return nil
}

func dayOrNone(day ledger.Day) bool {
	_, err := ledger.ParseDay(string(day))
	return day == "" || err == nil
}

func number(text, name string, into *int64) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return invalid(name + " must be a whole number above nothing")
	}
	*into = n
	return nil
}

// texts refuses what the database cannot hold as a text.
func texts(all ...string) error {
	for _, text := range all {
		if len(text) > 1024 || !utf8.ValidString(text) || slices.Contains([]byte(text), 0) {
			return invalid("a parameter has no valid form")
		}
	}
	return nil
}

func pathNumber(r *http.Request, name string) (int64, error) {
	n, err := strconv.ParseInt(chi.URLParam(r, name), 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%s: %w", name, ledger.ErrNotFound)
	}
	return n, nil
}

// GetMismatch serves GET /v1/mismatches/{mismatch_id}: with the evidence of both sides and the trail.
func (d *Desk) GetMismatch(w http.ResponseWriter, r *http.Request) error {
	id, err := pathNumber(r, "mismatch_id")
	if err != nil {
		return err
	}
	dossier, err := d.Show(r.Context(), id)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, dossier)
}

// stepBody is what a step may say. Who makes it is never in the body.
type stepBody struct {
	Note     string            `json:"note"`
	Revision int               `json:"revision"`
	As       ledger.Resolution `json:"as"`
	To       string            `json:"to"`
	// What a person states of a cancel of ours whose answer nobody will ever know.
	RequestNeverDone bool   `json:"request_never_done"`
	RequestDoneAs    string `json:"request_done_as"`
}

// change is the step that a request asks for, in the name of the key that it came with.
func change(r *http.Request, step ledger.Step) (ledger.Change, error) {
	by, err := ledger.APIActor(web.Actor(r.Context()))
	if err != nil {
		return ledger.Change{}, err
	}
	body := stepBody{}
	if r.ContentLength != 0 {
		if body, err = web.Decode[stepBody](r, bodyMax); err != nil {
			return ledger.Change{}, err
		}
	}
	c := ledger.Change{Step: step, By: by, Note: body.Note, As: body.As, Revision: body.Revision}
	if c.To, err = AssigneeOf(body.To); err != nil {
		return c, err
	}
	c.Request, err = RequestEndOf(body.RequestNeverDone, body.RequestDoneAs)
	switch {
	case err != nil:
		return c, err
	case step != ledger.StepResolve && (c.As != "" || c.Request != nil):
		return c, invalid("only a resolution says as what")
	case step != ledger.StepAssign && c.To != "":
		return c, invalid("only an assignment says to whom")
	}
	return c, nil
}

// AssigneeOf reads to whom a mismatch is given; nothing takes it from everybody.
func AssigneeOf(text string) (ledger.Actor, error) {
	if text == "" {
		return "", nil
	}
	to, err := ledger.ParseActor(text)
	if err != nil {
		return "", invalid("to must be os:<user>, api:<key> or person:<account>")
	}
	return to, nil
}

// RequestEndOf is what a person states of a cancel request: that it never happened, or under which transaction key it
// did; nothing when neither.
func RequestEndOf(neverDone bool, doneAs string) (*ledger.RequestEnd, error) {
	switch {
	case neverDone && doneAs != "":
		return nil, invalid("the cancel either never happened or happened under a key")
	case neverDone:
		return &ledger.RequestEnd{Status: ledger.CancelRequestRefused}, nil
	case doneAs != "":
		return &ledger.RequestEnd{Status: ledger.CancelRequestDone, TransactionKey: doneAs}, texts(doneAs)
	}
	return nil, nil //nolint:nilnil // nothing is stated
}

// Step serves POST /v1/mismatches/{mismatch_id}/… for one step.
func (d *Desk) Step(step ledger.Step) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := pathNumber(r, "mismatch_id")
		if err != nil {
			return err
		}
		c, err := change(r, step)
		if err != nil {
			return err
		}
		after, err := d.Change(r.Context(), id, c)
		if err != nil {
			return Explained(err)
		}
		return web.WriteJSON(w, http.StatusOK, after)
	}
}

// Explained lets the caller read why a step was not allowed.
func Explained(err error) error {
	for _, known := range []error{
		ledger.ErrStep, ledger.ErrSecondPerson, ledger.ErrMoved, ledger.ErrNote, ledger.ErrResolution, ledger.ErrUnfixable, ledger.ErrRequestEnd,
	} {
		if errors.Is(err, known) {
			return web.WithDetail(err, err.Error())
		}
	}
	return err
}

// ListIncidents serves GET /v1/incidents?status=open: newest first; all of them when no status is named.
func (d *Desk) ListIncidents(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if status := query.Get("status"); status != "" && status != string(ledger.MismatchOpen) {
		return invalid("status must be open, or left out")
	}
	var before int64
	if err := number(query.Get("before"), "before", &before); err != nil {
		return err
	}
	list, err := d.Incidents(r.Context(), query.Get("status") != "", before)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, list)
}

// GetIncident serves GET /v1/incidents/{incident_id}. Its mismatches are listed by GET /v1/mismatches?incident_id=.
func (d *Desk) GetIncident(w http.ResponseWriter, r *http.Request) error {
	id, err := pathNumber(r, "incident_id")
	if err != nil {
		return err
	}
	i, err := d.Incident(r.Context(), id)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, i)
}

// StepIncident serves POST /v1/incidents/{incident_id}/… for one step with everything that is left of it.
func (d *Desk) StepIncident(step ledger.Step) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := pathNumber(r, "incident_id")
		if err != nil {
			return err
		}
		c, err := change(r, step)
		if err != nil {
			return err
		}
		after, err := d.ChangeIncident(r.Context(), id, c)
		if err != nil {
			return Explained(err)
		}
		return web.WriteJSON(w, http.StatusOK, after)
	}
}

// ListPending serves GET /v1/pending: every cancel that is still owed an answer, soonest last chance first.
func (d *Desk) ListPending(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	after, err := reconcile.ParsePendingCursor(query.Get("after"))
	if err != nil {
		return invalid("after must be what an earlier answer had as next")
	}
	var limit int64
	if err := number(query.Get("limit"), "limit", &limit); err != nil {
		return err
	}
	list, err := d.Pending(r.Context(), after, int(min(limit, 1000)))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, list)
}
