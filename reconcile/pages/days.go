package pages

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"

	"daesa/internal/people"
	"daesa/internal/postgres"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile"
)

// dayData is one business day.
type dayData struct {
	reconcile.DayDetail

	Before, After ledger.Day
	MaySign       bool
	Running       bool // the day is not over
}

// Day serves GET /days/{day}: the newest statement of a day, who signed it, and its runs.
func (p *Pages) Day(w http.ResponseWriter, r *http.Request, who people.Account) error {
	day, err := dayOf(r)
	if err != nil {
		return err
	}
	d, err := p.cfg.Days.Day(r.Context(), day)
	if errors.Is(err, reconcile.ErrNoClosing) && day <= ledger.DayOf(p.cfg.Now()) {
		d, err = p.dayNow(r.Context(), day)
	}
	if err != nil {
		return err
	}
	return p.write(w, r, http.StatusOK, pageDay, dayData{
		DayDetail: d, Before: ledger.DayOf(day.Start().Add(-1)), After: day.Next(), MaySign: who.May(people.MaySign),
		Running: day == ledger.DayOf(p.cfg.Now()),
	})
}

// dayNow is what both books say of a day that no audit was kept of, as it stands now: of today, above all. Nothing is kept of
// it, and nobody can sign it.
func (p *Pages) dayNow(ctx context.Context, day ledger.Day) (d reconcile.DayDetail, err error) {
	d = reconcile.DayDetail{Day: day, Signed: reconcile.SignedNot}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = postgres.InTxWith(ctx, p.cfg.DB, options, func(tx pgx.Tx) (err error) {
		d.Statement, _, err = p.cfg.Days.SaysIn(ctx, tx, day, p.cfg.Now().Truncate(time.Microsecond))
		return err
	})
	d.Statement.Digest = ""
	return d, err
}

// SignDay serves POST /days/{day}/sign: a signature on the statement that the page showed.
func (p *Pages) SignDay(w http.ResponseWriter, r *http.Request, who people.Account) error {
	day, err := dayOf(r)
	if err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	digest := r.PostForm.Get("digest")
	if digest == "" {
		return ErrForm
	}
	by, err := ledger.PersonActor(who.Name)
	if err != nil {
		return err
	}
	_, err = p.cfg.Auditor.Sign(r.Context(), reconcile.Signing{Day: day, By: by, Digest: digest, Note: r.PostForm.Get("note")})
	if err != nil {
		return unsigned(err)
	}
	goTo(w, r, "/days/"+string(day))
	return nil
}

func dayOf(r *http.Request) (ledger.Day, error) {
	day, err := ledger.ParseDay(chi.URLParam(r, "day"))
	if err != nil {
		return "", web.WithDetail(err, "the day must have the form 2006-01-02")
	}
	return day, nil
}

// unsigned lets people read why a day was not signed.
func unsigned(err error) error {
	for _, known := range []error{
		reconcile.ErrDayNotClosed, reconcile.ErrDayDiffers, reconcile.ErrNotAcknowledged, reconcile.ErrSignature, reconcile.ErrClosingBusy,
	} {
		if errors.Is(err, known) {
			return web.WithDetail(err, err.Error())
		}
	}
	return err
}
