package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// Incident is a storm: the many mismatches that one run opened.
type Incident struct {
	ID       int64
	Run      string
	Status   MismatchStatus // open or resolved
	OpenedAt time.Time
	EndedAt  time.Time
	Found    int     // mismatches that the run opened
	Left     int     // of those, not resolved
	Unknown  int     // of what is left, with money at risk that nobody knows
	AtRisk   []Money // of what is left, by currency
	Proposed int     // of what is left, with a resolution proposed for the whole
}

type incidentRow struct {
	ID       int64              `db:"incident_id"`
	Run      string             `db:"run"`
	Status   MismatchStatus     `db:"status"`
	OpenedAt time.Time          `db:"opened_at"`
	EndedAt  *time.Time         `db:"ended_at"`
	Found    int                `db:"found"`
	Left     int                `db:"left_over"`
	Unknown  int                `db:"unknown"`
	Proposed int                `db:"proposed"`
	AtRisk   map[Currency]int64 `db:"at_risk"`
}

// incidentColumns reads incidents with what is left of them, each through the index of its own open mismatches.
const incidentColumns = `
	SELECT i.incident_id, i.run, i.status, i.opened_at, i.ended_at, i.found, l.left_over, l.unknown, l.proposed, l.at_risk
	FROM incidents i
	CROSS JOIN LATERAL (
		SELECT COALESCE(sum(c.n), 0)::integer AS left_over, COALESCE(sum(c.n) FILTER (WHERE c.currency IS NULL), 0)::integer AS unknown,
			COALESCE(sum(c.proposed), 0)::integer AS proposed,
			COALESCE(jsonb_object_agg(c.currency, c.amount) FILTER (WHERE c.currency IS NOT NULL), '{}') AS at_risk
		FROM (
			SELECT CASE WHEN m.amount IS NOT NULL THEN m.currency END AS currency, count(*) AS n, sum(m.amount) AS amount,
				count(*) FILTER (WHERE (m.proposal ->> 'incident')::bigint = i.incident_id) AS proposed
			FROM mismatches m
			WHERE m.incident_id = i.incident_id AND m.status <> 'resolved'
			GROUP BY 1) c) l`

func (r incidentRow) incident() Incident {
	i := Incident{
		ID: r.ID, Run: r.Run, Status: r.Status, OpenedAt: r.OpenedAt, EndedAt: postgres.Time(r.EndedAt), Found: r.Found, Left: r.Left,
		Unknown: r.Unknown, Proposed: r.Proposed,
	}
	for currency, minor := range r.AtRisk {
		i.AtRisk = append(i.AtRisk, Money{Minor: minor, Currency: currency})
	}
	slices.SortFunc(i.AtRisk, func(a, b Money) int { return strings.Compare(string(a.Currency), string(b.Currency)) })
	return i
}

// LoadIncident reads an incident. One that never was gives ErrNotFound.
func LoadIncident(ctx context.Context, db Querier, id int64) (Incident, error) {
	rows, err := db.Query(ctx, incidentColumns+` WHERE i.incident_id = @id`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return Incident{}, fmt.Errorf("read incident %d: %w", id, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[incidentRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return Incident{}, fmt.Errorf("incident %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return Incident{}, fmt.Errorf("read incident %d: %w", id, err)
	}
	return r.incident(), nil
}

// ListIncidents reads the newest incidents, those that are not over first asked for alone.
func ListIncidents(ctx context.Context, db Querier, openOnly bool, before int64) (page []Incident, next int64, err error) {
	const most = 50
	sql := incidentColumns + ` WHERE true`
	args := pgx.StrictNamedArgs{"limit": most + 1}
	if openOnly {
		sql += ` AND i.status = 'open'`
	}
	if before != 0 {
		sql += ` AND i.incident_id < @before`
		args["before"] = before
	}
	rows, err := db.Query(ctx, sql+` ORDER BY i.incident_id DESC LIMIT @limit`, args)
	if err != nil {
		return nil, 0, fmt.Errorf("list incidents: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[incidentRow])
	if err != nil {
		return nil, 0, fmt.Errorf("list incidents: %w", err)
	}
	if len(found) > most {
		found = found[:most]
		next = found[most-1].ID
	}
	page = make([]Incident, 0, len(found))
	for _, r := range found {
		page = append(page, r.incident())
	}
	return page, next, nil
}

// ChangeIncident resolves everything that is left of an incident, or proposes to, confirms that or withdraws it. The
// rules are those of one mismatch, with the money of all of them together. A mismatch about which somebody has proposed
// something of its own is left to that.
func ChangeIncident(ctx context.Context, tx pgx.Tx, id int64, c Change, two SecondPerson, now time.Time) (Incident, error) {
	c.Note = strings.TrimSpace(c.Note)
	if err := lockIncident(ctx, tx, id); err != nil {
		return Incident{}, err
	}
	before, err := LoadIncident(ctx, tx, id)
	if err != nil {
		return Incident{}, err
	}
	if err := changeIncident(ctx, tx, before, c, two, now); err != nil {
		return before, fmt.Errorf("%s incident %d: %w", c.Step, id, err)
	}
	b := &pgx.Batch{}
	QueueEndIncidents(b, now)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return before, fmt.Errorf("%s incident %d: %w", c.Step, id, err)
	}
	return LoadIncident(ctx, tx, id)
}

func lockIncident(ctx context.Context, tx pgx.Tx, id int64) error {
	b := &pgx.Batch{}
	args := pgx.StrictNamedArgs{"id": id}
	b.Queue(`SELECT i.incident_id FROM incidents i WHERE i.incident_id = @id FOR UPDATE`, args)
	b.Queue(`SELECT m.mismatch_id FROM mismatches m WHERE m.incident_id = @id AND m.status <> 'resolved' ORDER BY m.mismatch_id FOR UPDATE`, args)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("lock incident %d: %w", id, err)
	}
	return nil
}

func changeIncident(ctx context.Context, tx pgx.Tx, i Incident, c Change, two SecondPerson, now time.Time) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Request != nil {
		return fmt.Errorf("the end of a cancel request is stated of one mismatch: %w", ErrRequestEnd)
	}
	if i.Status == MismatchResolved {
		return fmt.Errorf("it is over: %w", ErrStep)
	}
	switch c.Step {
	case StepResolve:
		return resolveIncident(ctx, tx, i, c, two, now)
	case StepConfirm:
		return confirmIncident(ctx, tx, i, c, now)
	case StepWithdraw:
		return withdrawIncident(ctx, tx, i, c, now)
	case StepAcknowledge, StepAssign, StepReopen, StepNote:
	}
	return fmt.Errorf("an incident can be resolved, confirmed and withdrawn: %w", ErrStep)
}

func resolveIncident(ctx context.Context, tx pgx.Tx, i Incident, c Change, two SecondPerson, now time.Time) error {
	sum := Mismatch{Status: MismatchOpen}
	if i.Proposed > 0 {
		return fmt.Errorf("a resolution is proposed already; confirm or withdraw it: %w", ErrStep)
	}
	if err := sum.resolvable(c); err != nil {
		return err
	}
	fits := `m.proposal IS NULL`
	if c.As == ResolvedFixed {
		fits += ` AND ` + fixable
	}
	if i.Unknown > 0 || two.Needed(i.AtRisk...) {
		p := Proposal{As: c.As, By: c.By, At: now, Note: c.Note, Incident: i.ID}
		return sweepIncident(ctx, tx, i, c, `proposal = @proposal`, fits, pgx.StrictNamedArgs{"proposal": &p}, now)
	}
	return sweepIncident(ctx, tx, i, c,
		`status = 'resolved', resolved_as = @as, resolved_by = @by, resolved_at = @now, note = @remark`, fits,
		pgx.StrictNamedArgs{"as": c.As}, now)
}

const ofIncident = `(m.proposal ->> 'incident')::bigint = @id`

func confirmIncident(ctx context.Context, tx pgx.Tx, i Incident, c Change, now time.Time) error {
	rows, err := tx.Query(ctx, `
		SELECT DISTINCT m.proposal ->> 'by' AS proposer
		FROM mismatches m
		WHERE m.incident_id = @id AND m.status <> 'resolved' AND `+ofIncident, pgx.StrictNamedArgs{"id": i.ID})
	if err != nil {
		return err
	}
	proposers, err := pgx.CollectRows(rows, pgx.RowTo[Actor])
	if err != nil {
		return err
	}
	if len(proposers) == 0 {
		return fmt.Errorf("nobody has proposed a resolution: %w", ErrStep)
	}
	for _, by := range proposers {
		if c.By.Same(by) {
			return fmt.Errorf("%s: %w", by, ErrSecondPerson)
		}
	}
	return sweepIncident(ctx, tx, i, c,
		`status = 'resolved', resolved_as = m.proposal ->> 'as', resolved_by = @by, resolved_at = @now, note = m.proposal ->> 'note',
			proposal = NULL`, ofIncident+` AND (m.proposal ->> 'as' <> 'fixed' OR `+fixable+`)`, pgx.StrictNamedArgs{}, now)
}

func withdrawIncident(ctx context.Context, tx pgx.Tx, i Incident, c Change, now time.Time) error {
	if i.Proposed == 0 {
		return fmt.Errorf("nobody has proposed a resolution: %w", ErrStep)
	}
	return sweepIncident(ctx, tx, i, c, `proposal = NULL`, ofIncident, pgx.StrictNamedArgs{}, now)
}

// sweepIncident makes one change of everything that is left of an incident and fits. The rows are locked. What
// nobody can fix is left over by whoever would resolve it as fixed; where nothing else is left, that is an error.
func sweepIncident(ctx context.Context, tx pgx.Tx, i Incident, c Change, set, fits string, args pgx.StrictNamedArgs, now time.Time) error {
	args["id"], args["by"], args["now"], args["remark"] = i.ID, c.By, now, c.Note
	tag, err := tx.Exec(ctx, `
		UPDATE mismatches m
		SET `+set+`,
			revision = m.revision + 1, changed_at = @now, changed_by = @by, remark = @remark
		WHERE m.incident_id = @id AND m.status <> 'resolved' AND `+fits, args)
	if err == nil && tag.RowsAffected() == 0 && (c.As == ResolvedFixed || c.Step == StepConfirm) {
		return ErrUnfixable
	}
	return err
}
