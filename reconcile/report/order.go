package report

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// Order reports everything that is known of one order, in the order in which it happened. Without anything it is
// [ledger.ErrNotFound]; money for an order that is not in the books is reported, too.
func (r *Reporter) Order(ctx context.Context, orderID string, write func(Report) error) error {
	return r.snapshot(ctx, func(tx pgx.Tx) error {
		order, err := findOrder(ctx, tx, orderID)
		if err != nil {
			return err
		}
		payments, err := paymentsOf(ctx, tx, order.Payments)
		if err != nil {
			return err
		}
		jobs, err := jobsOf(ctx, tx, order.Events)
		if err != nil {
			return err
		}
		return write(Report{
			Name: "order",
			Facts: []Fact{
				{"order_id", text(orderID)},
				{"name", text(order.Name)},
				{"status", word(order.Status)},
				{"currency", word(order.Currency)},
				{"amount", order.amount()},
				{"credits", Count(order.Credits)},
				{"created_at", moment(order.CreatedAt)},
				{"expires_at", moment(order.ExpiresAt)},
			},
			Tables: []Table{
				{Name: "payments", Columns: paymentColumns(), Rows: list(payments)},
				{Name: "timeline", Columns: timelineColumns(), Rows: timeline(ctx, tx, orderID, named{order.Payments, jobs})},
			},
		})
	})
}

// foundOrder is an order, and every payment key that anybody names together with it.
type foundOrder struct {
	Known     bool            `db:"known"`
	Name      string          `db:"name"`
	Status    string          `db:"status"`
	Currency  ledger.Currency `db:"currency"`
	Amount    *int64          `db:"amount"`
	Credits   int64           `db:"credits"`
	CreatedAt *time.Time      `db:"created_at"`
	ExpiresAt *time.Time      `db:"expires_at"`
	Payments  []string        `db:"payments"`
	Events    []string        `db:"events"`
}

func (o foundOrder) amount() Cell {
	if o.Amount == nil {
		return nil
	}
	return money(*o.Amount, o.Currency)
}

func findOrder(ctx context.Context, tx pgx.Tx, orderID string) (foundOrder, error) {
	found, err := postgres.Collect[foundOrder](ctx, tx, "the order", `
		SELECT o.order_id IS NOT NULL OR EXISTS (SELECT 1 FROM mismatches m WHERE m.order_id = @order_id) AS known,
			COALESCE(o.name, '') AS name, COALESCE(o.status, '') AS status, COALESCE(o.currency, '') AS currency, o.amount,
			COALESCE(o.credits, 0) AS credits, o.created_at, o.expires_at,
			ARRAY(SELECT p.payment_key FROM payments p WHERE p.order_id = @order_id
				UNION SELECT g.payment_key FROM mirror g WHERE g.order_id = @order_id
				UNION SELECT m.payment_key FROM mismatches m WHERE m.order_id = @order_id AND m.payment_key IS NOT NULL
				ORDER BY 1) AS payments,
			ARRAY(SELECT v.event_id FROM events v WHERE v.order_id = @order_id) AS events
		FROM (VALUES (1)) AS always (here)
		LEFT JOIN orders o ON o.order_id = @order_id`,
		pgx.StrictNamedArgs{"order_id": orderID})
	if err != nil {
		return foundOrder{}, err
	}
	if order := found[0]; order.Known || len(order.Payments) > 0 {
		return order, nil
	}
	return foundOrder{}, fmt.Errorf("order %.64q: %w", orderID, ledger.ErrNotFound)
}

// named is what the timeline looks up beside the order itself.
type named struct {
	Payments []string
	Jobs     []int64
}

// jobsOf finds the jobs that deliver events, each by itself: asked for all at once, the planner takes it that they are a
// hundredth of the queue and reads it whole.
func jobsOf(ctx context.Context, tx pgx.Tx, events []string) ([]int64, error) {
	type job struct {
		ID int64 `db:"id"`
	}
	jobs := []int64{}
	for _, event := range events {
		found, err := postgres.Collect[job](ctx, tx, "the order's jobs", `SELECT id FROM river.river_job WHERE args @> @args::jsonb`,
			pgx.StrictNamedArgs{"args": map[string]string{"event_id": event}})
		if err != nil {
			return nil, err
		}
		for _, j := range found {
			jobs = append(jobs, j.ID)
		}
	}
	return jobs, nil
}

func paymentColumns() []Column {
	return []Column{
		{"payment_key", TypeText},
		{"status", TypeWord},
		{"surplus", TypeWord},
		{"method", TypeText},
		{"currency", TypeWord},
		{"amount", TypeMoney},
		{"captured", TypeMoney},
		{"canceled", TypeMoney},
		{"balance", TypeMoney},
		{"attempt", TypeCount},
		{"reason", TypeText},
		{"credits_granted", TypeCount},
		{"credits_revoked", TypeCount},
		{"undecided_since", TypeInstant},
		{"created_at", TypeInstant},
		{"updated_at", TypeInstant},
	}
}

type paymentRow struct {
	PaymentKey     string          `db:"payment_key"`
	Status         ledger.Status   `db:"status"`
	Surplus        bool            `db:"surplus"`
	Method         string          `db:"method"`
	Currency       ledger.Currency `db:"currency"`
	Amount         int64           `db:"amount"`
	Captured       int64           `db:"captured"`
	Canceled       int64           `db:"canceled"`
	Attempt        int64           `db:"attempt"`
	Reason         string          `db:"reason"`
	CreditsGranted int64           `db:"credits_granted"`
	CreditsRevoked int64           `db:"credits_revoked"`
	UndecidedSince *time.Time      `db:"undecided_since"`
	CreatedAt      time.Time       `db:"created_at"`
	UpdatedAt      time.Time       `db:"updated_at"`
}

func paymentsOf(ctx context.Context, tx pgx.Tx, keys []string) ([]Row, error) {
	all, err := postgres.Collect[paymentRow](ctx, tx, "the order's payments", `
		SELECT payment_key, status, surplus, method, currency, amount, captured, canceled, attempt, reason,
			credits_granted, credits_revoked, undecided_since, created_at, updated_at
		FROM payments
		WHERE payment_key = ANY(@payments)
		ORDER BY created_at, payment_key`,
		pgx.StrictNamedArgs{"payments": keys})
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(all))
	for i, p := range all {
		rows[i] = Row{
			text(p.PaymentKey), word(p.Status), yes(p.Surplus), text(p.Method), word(p.Currency), money(p.Amount, p.Currency),
			money(p.Captured, p.Currency), money(p.Canceled, p.Currency), money(p.Captured-p.Canceled, p.Currency),
			Count(p.Attempt), text(p.Reason), Count(p.CreditsGranted), Count(p.CreditsRevoked),
			moment(p.UndecidedSince), instant(p.CreatedAt), instant(p.UpdatedAt),
		}
	}
	return rows, nil
}

// yes is a word for what is so, and nothing for what is not.
func yes(so bool) Cell {
	if so {
		return Word("yes")
	}
	return nil
}
