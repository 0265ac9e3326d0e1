package opening

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// begin writes the import's own row, or finds it when the same file or stretch was begun before.
func (i *Importer) begin(ctx context.Context, claims Claims) (id int64, err error) {
	rows, err := i.cfg.DB.Query(ctx, `
		INSERT INTO imports AS i (source, digest, name, opening_at, started_by, started_at, rows)
		VALUES (@source, @digest, left(@name, 300), @opening_at, @started_by, @now, @rows)
		ON CONFLICT (source, digest) DO UPDATE SET rows = i.rows
		RETURNING import_id`,
		pgx.StrictNamedArgs{
			"source": string(claims.Source), "digest": claims.Digest[:], "name": claims.Name, "opening_at": i.cfg.OpeningAt,
			"started_by": string(i.cfg.By), "now": i.now(), "rows": len(claims.Rows),
		})
	if err != nil {
		return 0, fmt.Errorf("begin the import: %w", err)
	}
	if id, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64]); err != nil {
		return 0, fmt.Errorf("begin the import: %w", err)
	}
	return id, nil
}

// queueRow notes what became of a row. What was imported stays so; a row that was rejected may fare better the next time.
func (i *Importer) queueRow(b *pgx.Batch, id int64, r Row) {
	b.Queue(`
		INSERT INTO import_rows AS r (import_id, line, payment_key, order_id, result, reason, recorded_at)
		VALUES (@import_id, @line, @payment_key, @order_id, @result, left(@reason, 500), @now)
		ON CONFLICT (import_id, line) DO UPDATE
		SET payment_key = excluded.payment_key, order_id = excluded.order_id, result = excluded.result, reason = excluded.reason,
			recorded_at = excluded.recorded_at
		WHERE r.result = 'rejected' AND (excluded.result, excluded.reason) IS DISTINCT FROM (r.result, r.reason)`,
		pgx.StrictNamedArgs{
			"import_id": id, "line": r.Claim.Line, "payment_key": r.Claim.PaymentKey, "order_id": r.Claim.OrderID,
			"result": string(r.Result), "reason": r.Reason, "now": i.now(),
		})
}

// end notes that every row has a result. The list may have shown more of a stretch meanwhile.
func (i *Importer) end(ctx context.Context, id int64) error {
	_, err := i.cfg.DB.Exec(ctx, `
		UPDATE imports
		SET ended_at = COALESCE(ended_at, @now), rows = greatest(rows, (SELECT count(*) FROM import_rows WHERE import_id = @id))
		WHERE import_id = @id`,
		pgx.StrictNamedArgs{"now": i.now(), "id": id})
	if err != nil {
		return fmt.Errorf("end the import: %w", err)
	}
	return nil
}
