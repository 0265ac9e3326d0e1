package pages

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/people"
	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/reconcile"
	"daesa/reconcile/desk"
)

const (
	// overviewDays is how many days the overview shows.
	overviewDays = 30
	// noticesLooked is how many of the newest notices the overview goes by: its cost must not follow how long the service
	// has run.
	noticesLooked = 2000
)

// overviewData is what the overview shows.
type overviewData struct {
	Standing *standing // nil: no audit was ever made
	Risks    []risk
	AtRisk   []ledger.Money
	Unknown  int                // mismatches whose amount nobody knows
	Open     int                // mismatches
	Pending  []desk.PendingView // the one whose last chance comes first, if any
	Notices  notices
	Today    ledger.Day
	Days     []reconcile.DaySummary
	Currency ledger.Currency // of the plot
}

// standing is what the newest audit said.
type standing struct {
	Verdict   reconcile.Verdict `db:"verdict"`
	AsOf      time.Time         `db:"as_of"`
	StartedAt time.Time         `db:"started_at"`
	Sums      []reconcile.Sum   `db:"sums"`
	Reasons   []string          `db:"reasons"`
}

// risk is the money at risk in open mismatches of one kind.
type risk struct {
	Kind     ledger.Kind     `db:"kind"`
	Currency ledger.Currency `db:"currency"`
	Count    int             `db:"count"`
	Amount   int64           `db:"amount"`
	Unknown  int             `db:"unknown"`
	Oldest   time.Time       `db:"oldest"`
}

// notices is how the gateway's notices are doing, by the newest of them.
type notices struct {
	Looked      int        `db:"looked"`
	Newest      *time.Time `db:"newest"`
	Applied     *time.Time `db:"applied"` // the newest that was applied, or had been before
	Failed      *time.Time `db:"failed"`  // the newest that has to come again
	FailedAs    string     `db:"failed_as"`
	FailedWhy   string     `db:"failed_why"`
	FailedHour  int        `db:"failed_hour"` // of the last hour
	AppliedHour int        `db:"applied_hour"`
}

// Silent is how long no notice has come.
func (n notices) Silent(now time.Time) time.Duration {
	if n.Newest == nil {
		return 0
	}
	silent := max(now.Sub(*n.Newest), 0)
	if silent < 2*time.Minute {
		return silent.Round(time.Second)
	}
	return silent.Round(time.Minute)
}

// Overview serves GET /: how the books stand now, and the last thirty days.
func (p *Pages) Overview(w http.ResponseWriter, r *http.Request, _ people.Account) error {
	d, err := p.readOverview(r.Context())
	if err != nil {
		return err
	}
	to := reconcile.LastEnded(p.cfg.Now())
	from := ledger.DayOf(to.Start().Add(-(overviewDays - 1) * 24 * time.Hour))
	if d.Days, err = p.cfg.Days.Days(r.Context(), from, to); err != nil {
		return err
	}
	soonest, err := p.cfg.Desk.Pending(r.Context(), reconcile.PendingCursor{}, 1)
	if err != nil {
		return err
	}
	d.Pending = soonest.Pending
	d.Today, d.Currency = to.Next(), plotted(d.Days)
	return p.write(w, r, http.StatusOK, pageOverview, d)
}

// plotted is the currency in which most of the days have something; won where there is nothing.
func plotted(days []reconcile.DaySummary) ledger.Currency {
	most, times := ledger.KRW, 0
	for _, currency := range []ledger.Currency{ledger.KRW, ledger.USD, ledger.JPY} {
		n := 0
		for _, day := range days {
			if sumIn(day, currency).Currency == currency && sumIn(day, currency).Gateway.Count > 0 {
				n++
			}
		}
		if n > times {
			most, times = currency, n
		}
	}
	return most
}

// readOverview reads how the books stand, in one snapshot.
func (p *Pages) readOverview(ctx context.Context) (d overviewData, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = postgres.InTxWith(ctx, p.cfg.DB, options, func(tx pgx.Tx) (err error) {
		d, err = overviewIn(ctx, tx, p.cfg.Now())
		return err
	})
	return d, err
}

func overviewIn(ctx context.Context, tx pgx.Tx, now time.Time) (d overviewData, err error) {
	runs, err := postgres.Collect[standing](ctx, tx, "the newest audit", `
		SELECT verdict, as_of, started_at,
			CASE WHEN jsonb_typeof(statement->'sums') = 'array' THEN statement->'sums' ELSE '[]' END AS sums,
			CASE WHEN jsonb_typeof(statement->'reasons') = 'array' THEN statement->'reasons' ELSE '[]' END AS reasons
		FROM audit_runs
		WHERE scope = 'recent'
		ORDER BY started_at DESC
		LIMIT 1`, pgx.StrictNamedArgs{})
	if err != nil {
		return d, err
	}
	if len(runs) > 0 {
		d.Standing = &runs[0]
	}
	if err := d.readRisks(ctx, tx); err != nil {
		return d, err
	}
	all, err := postgres.Collect[notices](ctx, tx, "how notices are doing", `
		WITH newest AS MATERIALIZED (
			SELECT received_at, outcome, reason,
				outcome IN ('applied_full', 'applied_partial', 'duplicate_skipped') AS applied,
				outcome IN ('payment_not_found', 'query_failed', 'state_mismatch', 'apply_failed', 'db_failed') AS failed
			FROM deliveries
			ORDER BY received_at DESC
			LIMIT @looked)
		SELECT count(*)::integer AS looked, max(received_at) AS newest,
			max(received_at) FILTER (WHERE applied) AS applied, max(received_at) FILTER (WHERE failed) AS failed,
			COALESCE((SELECT outcome FROM newest WHERE failed ORDER BY received_at DESC LIMIT 1), '') AS failed_as,
			COALESCE((SELECT reason FROM newest WHERE failed ORDER BY received_at DESC LIMIT 1), '') AS failed_why,
			(count(*) FILTER (WHERE failed AND received_at > @hour))::integer AS failed_hour,
			(count(*) FILTER (WHERE applied AND received_at > @hour))::integer AS applied_hour
		FROM newest`, pgx.StrictNamedArgs{"looked": noticesLooked, "hour": now.Add(-time.Hour)})
	if err != nil {
		return d, err
	}
	d.Notices = all[0]
	return d, nil
}

// readRisks adds up what open mismatches put at risk.
func (d *overviewData) readRisks(ctx context.Context, tx pgx.Tx) (err error) {
	d.Risks, err = postgres.Collect[risk](ctx, tx, "the money at risk", `
		SELECT kind, COALESCE(currency, '') AS currency, count(*)::integer AS count, COALESCE(sum(amount), 0)::bigint AS amount,
			(count(*) FILTER (WHERE amount IS NULL))::integer AS unknown, min(opened_at) AS oldest
		FROM mismatches
		WHERE status <> 'resolved'
		GROUP BY kind, COALESCE(currency, '')
		ORDER BY amount DESC, count DESC, kind`, pgx.StrictNamedArgs{})
	if err != nil {
		return err
	}
	for _, r := range d.Risks {
		d.Open += r.Count
		d.Unknown += r.Unknown
		if r.Currency != "" {
			d.atRisk(ledger.Money{Minor: r.Amount, Currency: r.Currency})
		}
	}
	slices.SortFunc(d.AtRisk, func(a, b ledger.Money) int { return cmpCurrency(a.Currency, b.Currency) })
	return nil
}

// atRisk adds an amount to those of its currency.
func (d *overviewData) atRisk(m ledger.Money) {
	for i := range d.AtRisk {
		if d.AtRisk[i].Currency == m.Currency {
			d.AtRisk[i].Minor += m.Minor
			return
		}
	}
	d.AtRisk = append(d.AtRisk, m)
}

// cmpCurrency puts won first.
func cmpCurrency(a, b ledger.Currency) int {
	switch {
	case a == b:
		return 0
	case a == ledger.KRW || b != ledger.KRW && a < b:
		return -1
	}
	return 1
}
