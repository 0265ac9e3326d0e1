package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"daesa/internal/people"
	"daesa/ledger"
	"daesa/reconcile/desk"
)

// mismatchesPage is how many mismatches one page shows.
const mismatchesPage = 50

// mismatchesData is a list of mismatches.
type mismatchesData struct {
	desk.MismatchList

	Filter   ledger.MismatchFilter
	Statuses []ledger.MismatchStatus
	Kinds    []ledger.Kind
	More     string // the address of the next page
	Works    bool   // who looks may work on them
	Me       ledger.Actor
}

// Mismatches serves GET /mismatches: those that are not resolved, or as the filter says, newest first.
func (p *Pages) Mismatches(w http.ResponseWriter, r *http.Request, who people.Account) error {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	list, err := p.cfg.Desk.List(r.Context(), f)
	if err != nil {
		return err
	}
	me, err := ledger.PersonActor(who.Name)
	if err != nil {
		return err
	}
	d := mismatchesData{
		MismatchList: list, Filter: f, Statuses: ledger.MismatchStatuses(), Kinds: ledger.Kinds(), Works: who.May(people.MayWork), Me: me,
	}
	if list.Next != 0 {
		query := r.URL.Query()
		query.Set("before", strconv.FormatInt(list.Next, 10))
		d.More = "/mismatches?" + query.Encode()
	}
	return p.write(w, r, http.StatusOK, pageMismatches, d)
}

// filterOf reads the filter of a list from the address. What is empty is not asked for: a form sends all its fields.
func filterOf(query url.Values) (ledger.MismatchFilter, error) {
	f := ledger.MismatchFilter{
		Status: ledger.MismatchStatus(query.Get("status")), Kind: ledger.Kind(query.Get("kind")),
		Assignee: ledger.Actor(query.Get("assignee")), OrderID: query.Get("order_id"), Limit: mismatchesPage,
	}
	for _, text := range []string{string(f.Assignee), f.OrderID} {
		if len(text) > 200 || !utf8.ValidString(text) || slices.Contains([]byte(text), 0) {
			return f, fmt.Errorf("the filter: %w", ErrForm)
		}
	}
	if before := query.Get("before"); before != "" {
		n, err := strconv.ParseInt(before, 10, 64)
		if err != nil || n <= 0 {
			return f, fmt.Errorf("the page's beginning: %w", ErrForm)
		}
		f.Before = n
	}
	return f, desk.CheckFilter(f)
}

// mismatchData is one mismatch, and what who looks at it may do.
type mismatchData struct {
	desk.Dossier

	Steps []ledger.Step
	Me    ledger.Actor
}

// AboutRequest reports whether it is about a cancel of ours whose answer nobody knows.
func (d mismatchData) AboutRequest() bool {
	return strings.HasPrefix(d.TransactionKey, ledger.RequestSubject(""))
}

// Can reports whether the step can be made here and now.
func (d mismatchData) Can(step string) bool { return slices.Contains(d.Steps, ledger.Step(step)) }

// Mismatch serves GET /mismatches/{mismatch_id}: the evidence of both sides and everything that was done.
func (p *Pages) Mismatch(w http.ResponseWriter, r *http.Request, who people.Account) error {
	id, err := mismatchID(r)
	if err != nil {
		return err
	}
	dossier, err := p.cfg.Desk.Show(r.Context(), id)
	if err != nil {
		return err
	}
	me, err := ledger.PersonActor(who.Name)
	if err != nil {
		return err
	}
	return p.write(w, r, http.StatusOK, pageMismatch, mismatchData{Dossier: dossier, Steps: stepsFor(dossier, who, me), Me: me})
}

// permissionFor is what a step needs.
func permissionFor(step ledger.Step) people.Permission {
	if step == ledger.StepConfirm {
		return people.MayConfirm
	}
	return people.MayWork
}

// stepsFor are the steps that somebody may make with a mismatch as it stands. The ledger judges each again when it is made.
func stepsFor(d desk.Dossier, who people.Account, me ledger.Actor) []ledger.Step {
	var steps []ledger.Step
	for _, step := range ledger.Steps() {
		fits := false
		switch step {
		case ledger.StepAcknowledge:
			fits = d.Status == ledger.MismatchOpen
		case ledger.StepAssign:
			fits = d.Status != ledger.MismatchResolved
		case ledger.StepResolve:
			fits = d.Status != ledger.MismatchResolved && d.Proposal == nil
		case ledger.StepConfirm:
			fits = d.Proposal != nil && !me.Same(d.Proposal.By)
		case ledger.StepWithdraw:
			fits = d.Proposal != nil
		case ledger.StepReopen:
			fits = d.Status == ledger.MismatchResolved
		case ledger.StepNote:
			fits = true
		}
		if fits && who.May(permissionFor(step)) {
			steps = append(steps, step)
		}
	}
	return steps
}

// StepMismatch serves POST /mismatches/{mismatch_id}/{step}: one step, on the mismatch as the page showed it.
func (p *Pages) StepMismatch(w http.ResponseWriter, r *http.Request, who people.Account) error {
	id, err := mismatchID(r)
	if err != nil {
		return err
	}
	step := ledger.Step(chi.URLParam(r, "step"))
	if !slices.Contains(ledger.Steps(), step) {
		return fmt.Errorf("%q: %w", step, ledger.ErrNotFound)
	}
	if !who.May(permissionFor(step)) {
		return ErrNotAllowed
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	change, err := changeOf(r.PostForm, step, who)
	if err != nil {
		return err
	}
	if _, err := p.cfg.Desk.Change(r.Context(), id, change); err != nil {
		return desk.Explained(err)
	}
	goTo(w, r, fmt.Sprintf("/mismatches/%d", id))
	return nil
}

// changeOf reads a step from its form.
func changeOf(form url.Values, step ledger.Step, who people.Account) (ledger.Change, error) {
	by, err := ledger.PersonActor(who.Name)
	if err != nil {
		return ledger.Change{}, err
	}
	c := ledger.Change{Step: step, By: by, Note: form.Get("note")}
	if c.Revision, err = strconv.Atoi(form.Get("revision")); err != nil || c.Revision <= 0 {
		return c, fmt.Errorf("the revision: %w", ErrForm)
	}
	switch step {
	case ledger.StepResolve:
		c.As = ledger.Resolution(form.Get("as"))
		c.Request, err = desk.RequestEndOf(form.Get("request_never_done") != "", form.Get("request_done_as"))
	case ledger.StepAssign:
		c.To, err = desk.AssigneeOf(form.Get("to"))
	case ledger.StepAcknowledge, ledger.StepConfirm, ledger.StepWithdraw, ledger.StepReopen, ledger.StepNote:
	}
	return c, err
}

func mismatchID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "mismatch_id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, fmt.Errorf("the mismatch: %w", ledger.ErrNotFound)
	}
	return id, nil
}
