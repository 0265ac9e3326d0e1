package pages

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile/desk"
)

// bulkData is what came of one step with many mismatches.
type bulkData struct {
	Step  ledger.Step
	Made  []desk.MismatchView
	Not   []notMade
	Total int
}

// notMade is a mismatch with which the step was not made, and why.
type notMade struct {
	ID  int64
	Why string
}

// bulkSteps are the steps that can be made with many at once. Each is one of its own: what one does not allow keeps the
// others from nothing.
func bulkSteps() []ledger.Step {
	return []ledger.Step{ledger.StepAcknowledge, ledger.StepAssign, ledger.StepResolve}
}

// StepMismatches serves POST /mismatches: one step with each mismatch that was chosen, as the list showed it.
func (p *Pages) StepMismatches(w http.ResponseWriter, r *http.Request, who people.Account) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	step := ledger.Step(r.PostForm.Get("step"))
	if !slices.Contains(bulkSteps(), step) {
		return fmt.Errorf("the step: %w", ErrForm)
	}
	chosen := r.PostForm["chosen"]
	if len(chosen) == 0 || len(chosen) > mismatchesPage {
		return web.WithDetail(ErrForm, "choose between one and fifty mismatches")
	}
	d := bulkData{Step: step, Total: len(chosen)}
	changes := make([]ledger.Change, len(chosen))
	ids := make([]int64, len(chosen))
	for i, text := range chosen { // all of the form is read before anything is done
		var err error
		if ids[i], changes[i], err = chosenChange(text, r.PostForm, step, who); err != nil {
			return err
		}
	}
	for i, id := range ids {
		if err := d.make(r.Context(), p.cfg.Desk, id, changes[i]); err != nil {
			return err
		}
	}
	return p.write(w, r, http.StatusOK, pageBulk, d)
}

// make makes the step with one of them. What the ledger refuses is told of that one; when the database fails, nothing more
// is tried.
func (d *bulkData) make(ctx context.Context, at *desk.Desk, id int64, change ledger.Change) error {
	after, err := at.Change(ctx, id, change)
	told, refused := errors.AsType[interface {
		error
		ProblemDetail() string
	}](desk.Explained(err))
	switch {
	case err == nil:
		d.Made = append(d.Made, after)
	case refused:
		d.Not = append(d.Not, notMade{id, told.ProblemDetail()})
	case errors.Is(err, ledger.ErrNotFound):
		d.Not = append(d.Not, notMade{id, err.Error()})
	default:
		return err
	}
	return nil
}

// chosenChange is the step with one chosen mismatch, which stands in the form as its number and revision: 17.3.
func chosenChange(text string, form url.Values, step ledger.Step, who people.Account) (int64, ledger.Change, error) {
	number, revision, _ := strings.Cut(text, ".")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 {
		return 0, ledger.Change{}, fmt.Errorf("what was chosen: %w", ErrForm)
	}
	change, err := changeOf(url.Values{
		"revision": {revision}, "note": {form.Get("note")}, "as": {form.Get("as")}, "to": {form.Get("to")},
	}, step, who)
	return id, change, err
}
