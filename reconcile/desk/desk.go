package desk

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/reconcile"
)

// ErrRequest reports a field that is not what it should be.
var ErrRequest = errors.New("a field is not what the desk reads")

// Config is what the desk needs.
type Config struct {
	DB  *pgxpool.Pool
	Now func() time.Time
}

func (c Config) validate() error {
	switch {
	case c.DB == nil:
		return errors.New("desk: DB is required")
	case c.Now == nil:
		return errors.New("desk: Now is required")
	}
	return nil
}

// Desk reads and changes mismatches and incidents, and reads what is pending.
type Desk struct{ cfg Config }

// New makes a Desk.
func New(cfg Config) (*Desk, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Desk{cfg: cfg}, nil
}

// now is the clock at the precision of the database.
func (d *Desk) now() time.Time { return d.cfg.Now().Truncate(time.Microsecond) }

// List reads one page of mismatches, newest first.
func (d *Desk) List(ctx context.Context, f ledger.MismatchFilter) (MismatchList, error) {
	page, next, err := ledger.ListMismatches(ctx, d.cfg.DB, f)
	if err != nil {
		return MismatchList{}, err
	}
	list := MismatchList{Mismatches: make([]MismatchView, 0, len(page)), Next: next}
	for _, m := range page {
		list.Mismatches = append(list.Mismatches, viewOf(m))
	}
	return list, nil
}

// Show reads one mismatch with its evidence and everything that was ever done with it, in one snapshot.
func (d *Desk) Show(ctx context.Context, id int64) (Dossier, error) {
	var dossier Dossier
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := postgres.InTxWith(ctx, d.cfg.DB, options, func(tx pgx.Tx) error {
		m, err := ledger.LoadMismatch(ctx, tx, id)
		if err != nil {
			return err
		}
		dossier = Dossier{MismatchView: viewOf(m), Gateway: m.Gateway, Books: m.Books}
		two, err := ledger.LoadSecondPerson(ctx, tx)
		if err != nil {
			return err
		}
		dossier.NeedsTwo = m.Status != ledger.MismatchResolved && two.Needed(m.AtRisk)
		dossier.Trail, err = ledger.MismatchTrail(ctx, tx, id)
		return err
	})
	return dossier, err
}

// Change makes one step of a person's and returns the mismatch afterwards.
func (d *Desk) Change(ctx context.Context, id int64, c ledger.Change) (MismatchView, error) {
	var after ledger.Mismatch
	err := postgres.InTx(ctx, d.cfg.DB, func(tx pgx.Tx) error {
		two, err := ledger.LoadSecondPerson(ctx, tx)
		if err != nil {
			return err
		}
		after, err = ledger.ChangeMismatch(ctx, tx, id, c, two, d.now())
		return err
	})
	if err != nil {
		return MismatchView{}, err
	}
	return viewOf(after), nil
}

// Incidents reads one page of incidents, newest first.
func (d *Desk) Incidents(ctx context.Context, openOnly bool, before int64) (IncidentList, error) {
	page, next, err := ledger.ListIncidents(ctx, d.cfg.DB, openOnly, before)
	if err != nil {
		return IncidentList{}, err
	}
	list := IncidentList{Incidents: make([]IncidentView, 0, len(page)), Next: next}
	for _, i := range page {
		list.Incidents = append(list.Incidents, incidentOf(i))
	}
	return list, nil
}

// Incident reads one incident.
func (d *Desk) Incident(ctx context.Context, id int64) (IncidentView, error) {
	i, err := ledger.LoadIncident(ctx, d.cfg.DB, id)
	if err != nil {
		return IncidentView{}, err
	}
	return incidentOf(i), nil
}

// ChangeIncident makes one step with everything that is left of an incident.
func (d *Desk) ChangeIncident(ctx context.Context, id int64, c ledger.Change) (IncidentView, error) {
	var after ledger.Incident
	err := postgres.InTx(ctx, d.cfg.DB, func(tx pgx.Tx) error {
		two, err := ledger.LoadSecondPerson(ctx, tx)
		if err != nil {
			return err
		}
		after, err = ledger.ChangeIncident(ctx, tx, id, c, two, d.now())
		return err
	})
	if err != nil {
		return IncidentView{}, err
	}
	return incidentOf(after), nil
}

// Pending reads every cancel that is still owed an answer, soonest last chance first.
func (d *Desk) Pending(ctx context.Context, after reconcile.PendingCursor, limit int) (PendingList, error) {
	page, next, err := reconcile.ListPending(ctx, d.cfg.DB, d.now(), after, limit)
	if err != nil {
		return PendingList{}, err
	}
	list := PendingList{Pending: make([]PendingView, 0, len(page)), Next: next.String()}
	for _, p := range page {
		list.Pending = append(list.Pending, pendingOf(p))
	}
	return list, nil
}
