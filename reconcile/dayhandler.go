package reconcile

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/internal/web"
	"daesa/ledger"
)

// ErrUnavailable means that the database cannot do the work now. Nothing was written.
var ErrUnavailable = errors.New("the database cannot do the work at present")

const (
	// daysListed is how many days are listed when nobody says from where.
	daysListed = 35
	// signBodyMax bounds the body of a signature: a digest and a note.
	signBodyMax = 8 << 10
	// retryBusy is when a closing run that was in the way may have ended.
	retryBusy = 10 * time.Second
)

// DayHandler serves the business days.
type DayHandler struct {
	auditor *Auditor
	reads   *Auditor // what is only looked up
}

// NewDayHandler serves what the auditor knows of the days. Look-ups are served by the pool of reads, so that a flood of
// them does not stand before payments. A signature is not: the run that it closes the day with holds several connections
// at once, and a few of those would wait for each other in a small pool.
func NewDayHandler(a *Auditor, reads *pgxpool.Pool) *DayHandler {
	return &DayHandler{auditor: a, reads: a.Over(reads)}
}

// Over is the auditor as a reader of what was found, over a pool for look-ups.
func (a *Auditor) Over(reads *pgxpool.Pool) *Auditor {
	cfg := a.cfg
	cfg.DB = reads
	return &Auditor{cfg: cfg}
}

// ListDays serves GET /v1/days?from=2026-05-01&to=2026-05-31, newest first; the last 35 days when nothing is said.
func (h *DayHandler) ListDays(w http.ResponseWriter, r *http.Request) error {
	to := LastEnded(h.auditor.cfg.now())
	from := ledger.DayOf(to.Start().Add(-(daysListed - 1) * day))
	for name, into := range map[string]*ledger.Day{"from": &from, "to": &to} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		parsed, err := ledger.ParseDay(text)
		if err != nil {
			return web.WithDetail(err, name+" is not a day of the form 2006-01-02")
		}
		*into = parsed
	}
	days, err := h.reads.Days(r.Context(), from, to)
	if err != nil {
		return unavailable(err)
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"days": days})
}

// GetDay serves GET /v1/days/{day}: the day's newest statement, its runs and its signatures.
func (h *DayHandler) GetDay(w http.ResponseWriter, r *http.Request) error {
	day, err := dayOf(r)
	if err != nil {
		return err
	}
	d, err := h.reads.Day(r.Context(), day)
	if err != nil {
		return unavailable(err)
	}
	return web.WriteJSON(w, http.StatusOK, d)
}

// ListApplied serves GET /v1/statement/applied?after=…&limit=…: the cancels that both books have, of all time.
func (h *DayHandler) ListApplied(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit := 0
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return web.WithDetail(ErrCursor, "limit must be a whole number above nothing")
		}
		limit = n
	}
	page, err := h.reads.Applied(r.Context(), query.Get("after"), limit)
	if err != nil {
		return unavailable(err)
	}
	return web.WriteJSON(w, http.StatusOK, page)
}

// signBody is what a signature is asked for with.
type signBody struct {
	Digest string `json:"digest"` // of the statement that was seen; without it the newest one's
	Note   string `json:"note"`
}

// SignDay serves POST /v1/days/{day}/sign. It needs no Idempotency-Key: the same caller signing the same statement again
// is answered with the first signature.
func (h *DayHandler) SignDay(w http.ResponseWriter, r *http.Request) error {
	day, err := dayOf(r)
	if err != nil {
		return err
	}
	body, err := web.Decode[signBody](r, signBodyMax)
	if err != nil {
		return err
	}
	by, err := ledger.APIActor(web.Actor(r.Context()))
	if err != nil {
		return err
	}
	signed, err := h.auditor.Sign(r.Context(), Signing{Day: day, By: by, Digest: body.Digest, Note: body.Note})
	if err != nil {
		return unavailable(err)
	}
	status := http.StatusCreated
	if signed.Again {
		status = http.StatusOK
	}
	return web.WriteJSON(w, status, signed)
}

func dayOf(r *http.Request) (ledger.Day, error) {
	day, err := ledger.ParseDay(chi.URLParam(r, "day"))
	if err != nil {
		return "", web.WithDetail(err, "the day must have the form 2006-01-02")
	}
	return day, nil
}

// unavailable marks the errors of a database that cannot answer now, and tells the caller what it may know of the others.
func unavailable(err error) error {
	switch {
	case errors.Is(err, ErrClosingBusy):
		return web.WithRetryAfter(err, retryBusy)
	case errors.Is(err, ErrDayNotClosed), errors.Is(err, ErrDayDiffers), errors.Is(err, ErrNotAcknowledged),
		errors.Is(err, ErrSignature):
		return web.WithDetail(err, err.Error())
	case postgres.IsUnavailable(err) && !errors.Is(err, postgres.ErrCommitUnknown):
		return web.WithRetryAfter(fmt.Errorf("%w: %w", ErrUnavailable, err), 2*time.Second)
	}
	return err
}
