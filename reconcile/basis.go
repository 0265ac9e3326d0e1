package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// state is what the running sums were last computed by.
type state struct {
	Basis    string    `db:"basis"`
	JudgedAt time.Time `db:"judged_at"`
	AsOf     time.Time `db:"as_of"`
}

// auditRules numbers the rules of the comparison: a change of judge, of remember, or of a text that they write is a new
// number, and everything is compared anew once.
const auditRules = 9

// clockSlack is how far behind the last run's clock this one's may be: two machines never agree exactly.
const clockSlack = time.Minute

// basis names the settings that decide what counts. Whose an order is stands in the rows of the mirror, which mark
// themselves as changed when a read corrects it.
func (w window) basis() string {
	return fmt.Sprintf("rules %d, opening %s, lag %s, list from %s", auditRules, w.from.UTC().Format(time.RFC3339Nano), w.listLag,
		w.since.UTC().Format(time.RFC3339Nano))
}

// lastState reads what the running sums were computed by; nil where nothing says so.
func (a *Auditor) lastState(ctx context.Context, tx pgx.Tx) (*state, error) {
	rows, err := tx.Query(ctx, `SELECT basis, judged_at, as_of FROM audit_state`)
	if err != nil {
		return nil, fmt.Errorf("read what the sums were computed by: %w", err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[state])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // nothing was computed yet
	}
	if err != nil {
		return nil, fmt.Errorf("read what the sums were computed by: %w", err)
	}
	return &s, nil
}

// steady is the instant to judge by: no earlier than that of the last run, where only two machines' clocks differ. What
// the clock made another thing then would otherwise be found otherwise now, and taken for an error of ours.
func (s *state) steady(now time.Time) time.Time {
	if s != nil && now.Before(s.JudgedAt) && !now.Before(s.JudgedAt.Add(-clockSlack)) {
		return s.JudgedAt
	}
	return now
}

// continues reports whether the running sums were computed by the settings of now, from no later a clock and no longer
// a list.
func (r *round) continues() bool {
	return r.last != nil && r.last.Basis == r.w.basis() && !r.w.now.Before(r.last.JudgedAt) && !r.w.asOf.Before(r.last.AsOf)
}

// settle keeps what the sums were computed by. Two runs in one snapshot both write this row, so that the database lets
// only one of them commit, even if the lock that keeps them apart was lost.
func (r *round) settle(ctx context.Context, rebuilt bool) error {
	_, err := r.tx.Exec(ctx, `
		INSERT INTO audit_state AS s (basis, judged_at, as_of, rebuilt_at)
		VALUES (@basis, @now, @as_of, @now)
		ON CONFLICT (only_row) DO UPDATE
		SET basis = excluded.basis, judged_at = CASE WHEN @rebuilt THEN excluded.judged_at ELSE GREATEST(s.judged_at, excluded.judged_at) END,
			as_of = excluded.as_of, rebuilt_at = CASE WHEN @rebuilt THEN excluded.rebuilt_at ELSE s.rebuilt_at END`,
		pgx.StrictNamedArgs{"basis": r.w.basis(), "now": r.w.now, "as_of": r.w.asOf, "rebuilt": rebuilt})
	if err != nil {
		return fmt.Errorf("keep what the sums were computed by: %w", err)
	}
	return nil
}
