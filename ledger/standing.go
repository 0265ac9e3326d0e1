package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// ToWrite leaves out the findings that say nothing new: their mismatch stands just as they say, or was accepted so, and
// was seen since an instant. What is found each minute is not written each minute.
func ToWrite(ctx context.Context, db Querier, findings []Finding, seenSince time.Time) ([]Finding, error) {
	var left []Finding
	for chunk := range slices.Chunk(onePerFingerprint(findings), findingsChunk) {
		stands, err := standing(ctx, db, chunk, seenSince)
		if err != nil {
			return nil, fmt.Errorf("look for mismatches that stand: %w", err)
		}
		for _, f := range chunk {
			if !stands[f.Fingerprint()] {
				left = append(left, f)
			}
		}
	}
	return left, nil
}

// standing gives the fingerprints of the findings that say nothing new. They are named as seenAgain names them.
func standing(ctx context.Context, db Querier, findings []Finding, seenSince time.Time) (map[string]bool, error) {
	c, err := columnsOf(findings)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, `
		SELECT excluded.fingerprint
		FROM (
			SELECT f.fingerprint, NULLIF(f.currency, '') AS currency, f.amount, left(f.detail, 500) AS detail,
				f.gateway::jsonb AS gateway, f.books::jsonb AS books
			FROM unnest(@prints::text[], @currencies::text[], @amounts::bigint[], @details::text[], @gateways::text[], @books::text[])
				AS f (fingerprint, currency, amount, detail, gateway, books)) AS excluded
		CROSS JOIN LATERAL (
			SELECT x.kind, x.status, x.resolved_as, x.currency, x.amount, x.detail, x.gateway, x.books
			FROM mismatches x
			WHERE x.fingerprint = excluded.fingerprint AND x.last_seen_at > @seen_since
			LIMIT 1) m
		WHERE `+standsAccepted+` OR (m.status <> 'resolved' AND (m.currency, m.amount, m.detail, m.gateway, m.books)
			IS NOT DISTINCT FROM (excluded.currency, excluded.amount, excluded.detail, excluded.gateway, excluded.books))`,
		pgx.StrictNamedArgs{
			"prints": c.prints, "currencies": c.currencies, "amounts": c.amounts, "details": c.details, "gateways": c.gateways,
			"books": c.books, "seen_since": seenSince,
		})
	if err != nil {
		return nil, err
	}
	prints, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	stands := make(map[string]bool, len(prints))
	for _, p := range prints {
		stands[p] = true
	}
	return stands, nil
}
