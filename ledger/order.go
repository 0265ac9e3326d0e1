package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrOrderDiffers reports an order id that exists with other terms.
var ErrOrderDiffers = errors.New("the order exists with other terms")

// OrderMax bounds an order's amount, in minor units, and its credits; the database holds both to it. Sums over orders are
// 64 bits wide: a single order of 9 × 10¹⁸ would leave no room, and the next payment of that customer could never be booked.
const OrderMax = 1_000_000_000_000

type orderRow struct {
	OrderID    string      `db:"order_id"`
	Status     OrderStatus `db:"status"`
	Currency   Currency    `db:"currency"`
	Amount     int64       `db:"amount"`
	CustomerID *string     `db:"customer_id"`
	Name       string      `db:"name"`
	Credits    int64       `db:"credits"`
	CreatedAt  time.Time   `db:"created_at"`
	ExpiresAt  time.Time   `db:"expires_at"`
}

const orderColumns = `
	SELECT order_id, status, currency, amount, customer_id, name, credits, created_at, expires_at
	FROM orders WHERE order_id = @order_id`

func (r orderRow) order() Order {
	o := Order{
		ID: r.OrderID, Status: r.Status, Amount: Money{Minor: r.Amount, Currency: r.Currency}, Name: r.Name,
		Credits: r.Credits, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
	}
	if r.CustomerID != nil {
		o.CustomerID = *r.CustomerID
	}
	return o
}

// LoadOrder reads an order. An id never seen gives ErrNotFound.
func LoadOrder(ctx context.Context, db Querier, orderID string) (Order, error) {
	return readOrder(ctx, db, orderColumns, orderID)
}

func lockOrder(ctx context.Context, tx pgx.Tx, orderID string) (Order, error) {
	return readOrder(ctx, tx, orderColumns+` FOR UPDATE`, orderID)
}

func readOrder(ctx context.Context, db Querier, sql, orderID string) (Order, error) {
	rows, err := db.Query(ctx, sql, pgx.StrictNamedArgs{"order_id": orderID})
	if err != nil {
		return Order{}, fmt.Errorf("read order %s: %w", orderID, err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[orderRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return Order{}, fmt.Errorf("order %s: %w", orderID, ErrNotFound)
	}
	if err != nil {
		return Order{}, fmt.Errorf("read order %s: %w", orderID, err)
	}
	return row.order(), nil
}

// CreateOrder writes a new order. The same order again is fine; the id with other terms gives ErrOrderDiffers.
func (l *Ledger) CreateOrder(ctx context.Context, tx pgx.Tx, o Order) (Order, error) {
	rows, err := tx.Query(ctx, `
		INSERT INTO orders (order_id, status, currency, amount, customer_id, name, credits, created_at, expires_at)
		VALUES (@order_id, 'pending', @currency, @amount, NULLIF(@customer_id, ''), @name, @credits, @created_at, @expires_at)
		ON CONFLICT (order_id) DO NOTHING
		RETURNING order_id, status, currency, amount, customer_id, name, credits, created_at, expires_at`,
		pgx.StrictNamedArgs{
			"order_id": o.ID, "currency": o.Amount.Currency, "amount": o.Amount.Minor, "customer_id": o.CustomerID,
			"name": o.Name, "credits": o.Credits, "created_at": l.now(), "expires_at": o.ExpiresAt,
		})
	if err != nil {
		return Order{}, fmt.Errorf("create order %s: %w", o.ID, err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[orderRow])
	if err == nil {
		return row.order(), nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return Order{}, fmt.Errorf("create order %s: %w", o.ID, err)
	}
	known, err := LoadOrder(ctx, tx, o.ID)
	if err != nil {
		return Order{}, fmt.Errorf("create order %s: %w", o.ID, err)
	}
	if !sameTerms(known, o) {
		return known, fmt.Errorf("create order %s: %w", o.ID, ErrOrderDiffers)
	}
	return known, nil
}

// expireGrace lets an intent that was taken in an order's last moment commit before the order is looked at.
const expireGrace = time.Minute

// ExpireOrders expires pending orders whose time is over and that no payment holds. It returns how many. Intend
// turns an order down from the moment its time is over; this only writes it down a little later.
func (l *Ledger) ExpireOrders(ctx context.Context, tx pgx.Tx, limit int) (int64, error) {
	tag, err := tx.Exec(ctx, `
		UPDATE orders SET status = 'expired'
		WHERE order_id IN (
			SELECT o.order_id FROM orders o
			WHERE o.status = 'pending' AND o.expires_at <= @before
			  AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.order_id AND NOT p.surplus
				AND p.status IN ('confirming', 'unknown', 'waiting_for_deposit', 'done', 'partially_canceled', 'canceled'))
			ORDER BY o.expires_at
			LIMIT @limit
			FOR UPDATE SKIP LOCKED)`,
		pgx.StrictNamedArgs{"before": l.now().Add(-expireGrace), "limit": limit})
	if err != nil {
		return 0, fmt.Errorf("expire orders: %w", err)
	}
	return tag.RowsAffected(), nil
}

// holderOf names the payment, other than the one given, that holds an order; "" when none does.
func holderOf(ctx context.Context, db Querier, orderID, paymentKey string) (string, error) {
	rows, err := db.Query(ctx, `
		SELECT payment_key FROM payments
		WHERE order_id = @order_id AND payment_key <> @payment_key AND NOT surplus
			AND status IN ('confirming', 'unknown', 'waiting_for_deposit', 'done', 'partially_canceled', 'canceled')`,
		pgx.StrictNamedArgs{"order_id": orderID, "payment_key": paymentKey})
	if err != nil {
		return "", fmt.Errorf("find the payment that holds order %s: %w", orderID, err)
	}
	holders, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(holders) == 0 {
		return "", err
	}
	return holders[0], nil
}
