package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// stormMax is how many mismatches one run may open before they are taken for one incident. So many have one cause,
	// and nobody looks at them one by one.
	stormMax = 200
	// findingsChunk bounds one statement.
	findingsChunk = 1000
)

// Opened is what became of the findings of a run.
type Opened struct {
	New      int   // mismatches that the run opened, or opened again, so far
	Incident int64 // the incident that they are; 0 when they are few enough to be looked at one by one
}

// OpenMismatches keeps every finding of a run, as [QueueMismatch] does one, in a handful of statements however many
// they are. When the run has opened more than 200 they are one incident, with one alarm. A run may come with its
// findings in several transactions; its name tells it from every other.
func OpenMismatches(ctx context.Context, tx pgx.Tx, run string, findings []Finding, now time.Time) (Opened, error) {
	findings = onePerFingerprint(findings)
	if len(findings) == 0 {
		return Opened{}, nil
	}
	for chunk := range slices.Chunk(findings, findingsChunk) {
		if err := openChunk(ctx, tx, run, chunk, now); err != nil {
			return Opened{}, fmt.Errorf("open mismatches of %s: %w", run, err)
		}
	}
	opened, err := gather(ctx, tx, run, now)
	if err != nil {
		return Opened{}, fmt.Errorf("gather the mismatches of %s: %w", run, err)
	}
	return opened, nil
}

// onePerFingerprint keeps the last finding of each contradiction, in the order of fingerprints: two runs that write the
// same rows take their locks in the same order.
func onePerFingerprint(findings []Finding) []Finding {
	last := make(map[string]Finding, len(findings))
	for _, f := range findings {
		last[f.Fingerprint()] = f
	}
	kept := make([]Finding, 0, len(last))
	for _, f := range last {
		kept = append(kept, f)
	}
	slices.SortFunc(kept, func(a, b Finding) int { return strings.Compare(a.Fingerprint(), b.Fingerprint()) })
	return kept
}

// findingColumns are findings turned by a quarter, as the statement wants them.
type findingColumns struct {
	kinds, prints, payments, orders, keys, currencies, details []string
	amounts                                                    []*int64
	gateways, books                                            []*string
}

func columnsOf(findings []Finding) (findingColumns, error) {
	var c findingColumns
	for _, f := range findings {
		gateway, err := evidence(f.Gateway)
		if err != nil {
			return c, err
		}
		books, err := evidence(f.Books)
		if err != nil {
			return c, err
		}
		c.kinds, c.prints = append(c.kinds, string(f.Kind)), append(c.prints, f.Fingerprint())
		c.payments, c.orders, c.keys = append(c.payments, f.PaymentKey), append(c.orders, f.OrderID), append(c.keys, f.TransactionKey)
		c.currencies, c.amounts = append(c.currencies, string(f.AtRisk.Currency)), append(c.amounts, nullableMinor(f.AtRisk))
		c.details, c.gateways, c.books = append(c.details, f.Detail), append(c.gateways, gateway), append(c.books, books)
	}
	return c, nil
}

func evidence(side map[string]any) (*string, error) {
	if side == nil {
		return nil, nil //nolint:nilnil // no evidence is NULL
	}
	encoded, err := json.Marshal(side)
	if err != nil {
		return nil, fmt.Errorf("write evidence: %w", err)
	}
	text := string(encoded)
	return &text, nil
}

func openChunk(ctx context.Context, tx pgx.Tx, run string, findings []Finding, now time.Time) error {
	c, err := columnsOf(findings)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO mismatches AS m (kind, fingerprint, payment_key, order_id, transaction_key, currency, amount, detail,
			gateway, books, opened_at, last_seen_at, changed_at, opened_run)
		SELECT f.kind, f.fingerprint, NULLIF(f.payment_key, ''), NULLIF(f.order_id, ''), NULLIF(f.transaction_key, ''),
			NULLIF(f.currency, ''), f.amount, left(f.detail, 500), f.gateway::jsonb, f.books::jsonb, @now, @now, @now, @run
		FROM unnest(@kinds::text[], @prints::text[], @payments::text[], @orders::text[], @keys::text[], @currencies::text[],
			@amounts::bigint[], @details::text[], @gateways::text[], @books::text[])
			AS f (kind, fingerprint, payment_key, order_id, transaction_key, currency, amount, detail, gateway, books)`+seenAgain,
		pgx.StrictNamedArgs{
			"kinds": c.kinds, "prints": c.prints, "payments": c.payments, "orders": c.orders, "keys": c.keys,
			"currencies": c.currencies, "amounts": c.amounts, "details": c.details, "gateways": c.gateways, "books": c.books,
			"now": now, "run": run,
		})
	return err
}

// gather counts what a run has opened so far and makes it an incident when it is a storm.
func gather(ctx context.Context, tx pgx.Tx, run string, now time.Time) (Opened, error) {
	rows, err := tx.Query(ctx, `
		SELECT count(*)::integer AS new FROM mismatches WHERE opened_run = @run AND opened_run <> '' AND status <> 'resolved'`,
		pgx.StrictNamedArgs{"run": run})
	if err != nil {
		return Opened{}, err
	}
	opened := Opened{}
	if opened.New, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err != nil || opened.New <= stormMax {
		return opened, err
	}
	rows, err = tx.Query(ctx, `
		INSERT INTO incidents (run, opened_at) VALUES (@run, @now)
		ON CONFLICT (run) DO UPDATE SET status = 'open', ended_at = NULL
		RETURNING incident_id`, pgx.StrictNamedArgs{"run": run, "now": now})
	if err != nil {
		return opened, err
	}
	if opened.Incident, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64]); err != nil {
		return opened, err
	}
	b := &pgx.Batch{}
	args := pgx.StrictNamedArgs{"run": run, "incident": opened.Incident, "now": now}
	b.Queue(`
		UPDATE mismatches m
		SET incident_id = @incident, revision = m.revision + 1, changed_at = @now, changed_by = 'system', remark = ''
		WHERE m.opened_run = @run AND m.opened_run <> '' AND m.status <> 'resolved' AND m.incident_id IS NULL`, args)
	b.Queue(`
		UPDATE incidents i
		SET found = s.found, unknown = s.unknown, at_risk = s.at_risk
		FROM (
			SELECT COALESCE(sum(c.found), 0)::integer AS found, COALESCE(sum(c.found) FILTER (WHERE c.currency IS NULL), 0)::integer AS unknown,
				COALESCE(jsonb_object_agg(c.currency, c.amount) FILTER (WHERE c.currency IS NOT NULL), '{}') AS at_risk
			FROM (
				SELECT CASE WHEN m.amount IS NOT NULL THEN m.currency END AS currency, count(*) AS found, sum(m.amount) AS amount
				FROM mismatches m
				WHERE m.incident_id = @incident
				GROUP BY 1) c) s
		WHERE i.incident_id = @incident`, pgx.StrictNamedArgs{"incident": opened.Incident})
	return opened, tx.SendBatch(ctx, b).Close()
}

// QueueEndIncidents ends the incidents of which every mismatch is resolved.
func QueueEndIncidents(b *pgx.Batch, now time.Time) {
	b.Queue(`
		UPDATE incidents i
		SET status = 'resolved', ended_at = @now
		WHERE i.status = 'open' AND NOT EXISTS (SELECT 1 FROM mismatches m
			WHERE m.incident_id = i.incident_id AND m.status <> 'resolved' OFFSET 0)`,
		pgx.StrictNamedArgs{"now": now})
}
