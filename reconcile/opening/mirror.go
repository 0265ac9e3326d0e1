package opening

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// mirrorHeader names what is known of a payment from the list.
func mirrorHeader() []string {
	return []string{"payment_key", "order_id", "amount", "currency", "approved_at"}
}

// FromMirror claims every payment of ours whose money the gateway's list shows as taken in a stretch of time before the
// books were opened, and that our books lack. The list must have been read for it: daesa reconcile does.
//
// The stretch, not what is still to be taken over of it, says which import it is: the next run goes on with the same one.
// A payment keeps the line it was noted with, and one that was not noted yet gets a line after those.
func FromMirror(ctx context.Context, db ledger.Querier, from, to, openingAt time.Time) (Claims, error) {
	claims := Claims{Source: SourceMirror, Header: mirrorHeader()}
	if to.After(openingAt) {
		to = openingAt
	}
	claims.Name = from.In(ledger.Seoul()).Format(time.DateTime) + " – " + to.In(ledger.Seoul()).Format(time.DateTime)
	claims.Digest = sha256.Sum256(fmt.Appendf(nil, "%d %d", from.UnixMicro(), to.UnixMicro()))
	last, err := lastLine(ctx, db, claims)
	if err != nil {
		return claims, err
	}
	rows, err := db.Query(ctx, `
		SELECT DISTINCT ON (g.payment_key) g.payment_key, g.order_id, g.currency, g.amount, g.at,
			COALESCE((SELECT min(r.line) FROM import_rows r JOIN imports i USING (import_id)
				WHERE r.payment_key = g.payment_key AND r.payment_key <> '' AND i.source = @source AND i.digest = @digest), 0) AS line
		FROM mirror g
		WHERE g.at >= @from AND g.at < @to AND g.kind = 'capture' AND g.amount > 0 AND NOT g.is_foreign AND g.missing_since IS NULL
			AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.payment_key = g.payment_key)
		ORDER BY g.payment_key, g.at DESC`,
		pgx.StrictNamedArgs{"from": from, "to": to, "source": string(claims.Source), "digest": claims.Digest[:]})
	if err != nil {
		return claims, fmt.Errorf("choose payments from the mirror: %w", err)
	}
	type listed struct {
		PaymentKey string          `db:"payment_key"`
		OrderID    string          `db:"order_id"`
		Currency   ledger.Currency `db:"currency"`
		Amount     int64           `db:"amount"`
		At         time.Time       `db:"at"`
		Line       int             `db:"line"`
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[listed])
	if err != nil {
		return claims, fmt.Errorf("choose payments from the mirror: %w", err)
	}
	for _, l := range found {
		if l.Line == 0 {
			last++
			l.Line = last
		}
		amount := ledger.Money{Minor: l.Amount, Currency: l.Currency}
		c := Claim{Line: l.Line, Amount: amount, Fields: []string{
			l.PaymentKey, l.OrderID, amount.Decimal(), string(l.Currency), l.At.In(ledger.Seoul()).Format(time.DateTime),
		}}
		if err := readPaymentKey(&c, l.PaymentKey); err != nil {
			c.Problem = "payment_key: " + err.Error()
		} else if err := readOrderID(&c, l.OrderID); err != nil {
			c.Problem = "order_id " + strconv.Quote(l.OrderID) + ": " + err.Error()
		}
		claims.Rows = append(claims.Rows, c)
	}
	return claims, nil
}

// lastLine is the last line that an import has noted; 0 when there is none.
func lastLine(ctx context.Context, db ledger.Querier, claims Claims) (int, error) {
	rows, err := db.Query(ctx, `
		SELECT COALESCE(max(r.line), 0) FROM import_rows r JOIN imports i USING (import_id)
		WHERE i.source = @source AND i.digest = @digest`,
		pgx.StrictNamedArgs{"source": string(claims.Source), "digest": claims.Digest[:]})
	if err != nil {
		return 0, fmt.Errorf("find the last line of the import: %w", err)
	}
	last, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return 0, fmt.Errorf("find the last line of the import: %w", err)
	}
	return last, nil
}
