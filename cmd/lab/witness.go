package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/reconcile"
)

// row is what the service's own table says of one delivery.
type row struct {
	PaymentKey string `db:"payment_key"`
	Outcome    string `db:"outcome"`
	Reason     string `db:"reason"`
	Status     int    `db:"status"`
	QueryMS    int64  `db:"query_ms"` // of our question, rounded down; 0 when none was asked
}

// query is what our question to the gateway took.
func (r row) query() time.Duration { return time.Duration(r.QueryMS) * time.Millisecond }

// applied reports whether the delivery applied a cancel.
func (r row) applied() bool { return r.Outcome == "applied_full" || r.Outcome == "applied_partial" }

// unsent are the reasons of a failed question that never left us.
func (r row) unsent() bool { return r.Reason == "breaker_open" || r.Reason == "cap" }

// questioned reports whether the gateway was asked on behalf of the delivery.
func (r row) questioned() bool {
	switch r.Outcome {
	case "applied_full", "applied_partial", "state_mismatch", "apply_failed":
		return true
	case "query_failed":
		return !r.unsent()
	}
	return false
}

// lastDelivery marks how far the table of deliveries goes.
func (b *bench) lastDelivery(ctx context.Context) (id int64, err error) {
	rows, err := b.meter.Query(ctx, `SELECT COALESCE(max(delivery_id), 0) FROM deliveries`)
	if err == nil {
		id, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	}
	if err != nil {
		return 0, fmt.Errorf("find the last delivery: %w", err)
	}
	return id, nil
}

// deliveries reads what the service stored after the mark, by payment. A payment has one notice in each phase.
func (b *bench) deliveries(ctx context.Context, mark int64) (map[string]row, error) {
	rows, err := b.meter.Query(ctx, `
		SELECT COALESCE(payment_key, '') AS payment_key, outcome, reason, COALESCE(status, 0) AS status,
			COALESCE(query_ms, 0)::bigint AS query_ms
		FROM deliveries
		WHERE delivery_id > @mark`, pgx.StrictNamedArgs{"mark": mark})
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	found := make(map[string]row, len(list))
	for _, r := range list {
		if _, twice := found[r.PaymentKey]; twice {
			return nil, fmt.Errorf("payment %s has two deliveries in one phase", r.PaymentKey)
		}
		found[r.PaymentKey] = r
	}
	return found, nil
}

// counters are the service's own metrics, as far as they are a witness here.
type counters struct {
	outcomes    map[string]int
	overBudget  int
	answered    int
	rateRefused int
}

func (c counters) minus(earlier counters) counters {
	left := counters{
		outcomes: maps.Clone(c.outcomes), overBudget: c.overBudget - earlier.overBudget,
		answered: c.answered - earlier.answered, rateRefused: c.rateRefused - earlier.rateRefused,
	}
	for outcome, n := range earlier.outcomes {
		left.outcomes[outcome] -= n
	}
	maps.DeleteFunc(left.outcomes, func(_ string, n int) bool { return n == 0 })
	return left
}

func (b *bench) counters() (counters, error) {
	families, err := b.App.Registry().Gather()
	if err != nil {
		return counters{}, fmt.Errorf("read the service's metrics: %w", err)
	}
	c, known := counters{outcomes: map[string]int{}}, 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			label := ""
			if pairs := m.GetLabel(); len(pairs) > 0 {
				label = pairs[0].GetValue()
			}
			switch family.GetName() {
			case "daesa_webhook_outcomes_total":
				c.outcomes[label] = int(m.GetCounter().GetValue())
			case "daesa_webhook_seconds":
				n := int(m.GetHistogram().GetSampleCount()) //nolint:gosec // far below the limit: a run has at most thousands
				c.answered += n
				if label == "yes" {
					c.overBudget += n
				}
			case "daesa_admission_rate_refused_total":
				c.rateRefused += int(m.GetCounter().GetValue())
			default:
				continue
			}
			known++
		}
	}
	if known == 0 || len(c.outcomes) == 0 {
		return counters{}, fmt.Errorf("the service exports none of the metrics that the lab reads")
	}
	return c, nil
}

// breakerLets reports whether our breaker lets a question through.
func (b *bench) breakerLets() (bool, error) {
	const open = 2
	state, err := b.gauge("daesa_pgclient_breaker_state", "query")
	return state != open, err
}

// listsRead reports whether the jobs that read the gateway's list at every start have done so. One that reads while
// payments are being sold finds some a moment before we have recorded them, asks about them, and may so learn of a
// cancel before its notice is sent.
func (b *bench) listsRead() (bool, error) {
	for _, kind := range []string{reconcile.ListArgs{}.Kind(), reconcile.RereadArgs{}.Kind()} {
		if at, err := b.gauge("daesa_job_last_success_timestamp_seconds", kind); err != nil || at == 0 {
			return false, err
		}
	}
	return true, nil
}

// gauge reads one of the service's metrics by its only label.
func (b *bench) gauge(name, label string) (float64, error) {
	families, err := b.App.Registry().Gather()
	if err != nil {
		return 0, fmt.Errorf("read the service's metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == label {
				return m.GetGauge().GetValue(), nil
			}
		}
	}
	return 0, fmt.Errorf("the service does not export %s of %s", name, label)
}
