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
func FromMirror(ctx context.Context, db ledger.Querier, from, to, openingAt time.Time) (Claims, error) {
	claims := Claims{Source: SourceMirror, Header: mirrorHeader()}
	if to.After(openingAt) {
		to = openingAt
	}
	claims.Name = from.In(ledger.Seoul()).Format(time.DateTime) + " – " + to.In(ledger.Seoul()).Format(time.DateTime)
	rows, err := db.Query(ctx, `
		SELECT DISTINCT ON (g.payment_key) g.payment_key, g.order_id, g.currency, g.amount, g.at
		FROM mirror g
		WHERE g.at >= @from AND g.at < @to AND g.kind = 'capture' AND g.amount > 0 AND NOT g.is_foreign AND g.missing_since IS NULL
			AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.payment_key = g.payment_key)
		ORDER BY g.payment_key, g.at DESC`,
		pgx.StrictNamedArgs{"from": from, "to": to})
	if err != nil {
		return claims, fmt.Errorf("choose payments from the mirror: %w", err)
	}
	type listed struct {
		PaymentKey string          `db:"payment_key"`
		OrderID    string          `db:"order_id"`
		Currency   ledger.Currency `db:"currency"`
		Amount     int64           `db:"amount"`
		At         time.Time       `db:"at"`
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[listed])
	if err != nil {
		return claims, fmt.Errorf("choose payments from the mirror: %w", err)
	}
	digest := sha256.New()
	for n, l := range found {
		amount := ledger.Money{Minor: l.Amount, Currency: l.Currency}
		fmt.Fprintln(digest, l.PaymentKey)
		c := Claim{Line: n + 1, Amount: amount, Fields: []string{
			l.PaymentKey, l.OrderID, amount.Decimal(), string(l.Currency), l.At.In(ledger.Seoul()).Format(time.DateTime),
		}}
		if err := readPaymentKey(&c, l.PaymentKey); err != nil {
			c.Problem = "payment_key: " + err.Error()
		} else if err := readOrderID(&c, l.OrderID); err != nil {
			c.Problem = "order_id " + strconv.Quote(l.OrderID) + ": " + err.Error()
		}
		claims.Rows = append(claims.Rows, c)
	}
	digest.Sum(claims.Digest[:0])
	return claims, nil
}
