package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// Querier runs a query: a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// paymentRow is a payment with its order and its money, as one query returns it.
type paymentRow struct {
	PaymentKey     string       `db:"payment_key"`
	OrderID        string       `db:"order_id"`
	MerchantID     string       `db:"merchant_id"`
	Status         Status       `db:"status"`
	Currency       Currency     `db:"currency"`
	Amount         int64        `db:"amount"`
	Surplus        bool         `db:"surplus"`
	Attempt        int          `db:"attempt"`
	Generation     int          `db:"generation"`
	KeyFirstUsedAt *time.Time   `db:"key_first_used_at"`
	IntendedAt     *time.Time   `db:"intended_at"`
	UndecidedSince *time.Time   `db:"undecided_since"`
	WaitingSeenAt  *time.Time   `db:"waiting_seen_at"`
	MoneySeenAt    *time.Time   `db:"money_seen_at"`
	FallShownAt    *time.Time   `db:"fall_shown_at"`
	VirtualAccount bool         `db:"virtual_account"`
	SecretDigest   []byte       `db:"secret_digest"`
	Reason         string       `db:"reason"`
	Method         string       `db:"method"`
	CreditsGranted int64        `db:"credits_granted"`
	CreditsRevoked int64        `db:"credits_revoked"`
	Supplied       *int64       `db:"supplied"`
	VAT            *int64       `db:"vat"`
	TaxFree        *int64       `db:"tax_free"`
	TaxExempt      *int64       `db:"tax_exempt"`
	UpdatedAt      time.Time    `db:"updated_at"`
	OrderStatus    OrderStatus  `db:"order_status"`
	OrderAmount    int64        `db:"order_amount"`
	OrderCurrency  Currency     `db:"order_currency"`
	CustomerID     *string      `db:"customer_id"`
	OrderName      string       `db:"order_name"`
	OrderCredits   int64        `db:"order_credits"`
	OrderCreatedAt time.Time    `db:"order_created_at"`
	OrderExpiresAt time.Time    `db:"order_expires_at"`
	Holder         *string      `db:"holder"`
	Captures       []captureRow `db:"captures"`
	Cancels        []cancelRow  `db:"cancels"`
	Elsewhere      []elsewhere  `db:"-"` // what was asked about besides
}

type captureRow struct {
	Number         int        `json:"number"`
	TransactionKey string     `json:"transaction_key"`
	Amount         int64      `json:"amount"`
	CapturedAt     time.Time  `json:"captured_at"`
	ReversedAt     *time.Time `json:"reversed_at"`
}

type cancelRow struct {
	TransactionKey string    `json:"transaction_key"`
	Amount         int64     `json:"amount"`
	TaxFree        *int64    `json:"tax_free"`
	TaxExempt      *int64    `json:"tax_exempt"`
	Reason         string    `json:"reason"`
	CanceledAt     time.Time `json:"canceled_at"`
	Channel        Channel   `json:"channel"`
	RecordedAt     time.Time `json:"recorded_at"`
	CreditsRevoked int64     `json:"credits_revoked"`
}

// paymentColumns selects a payment with everything Decide needs.
const paymentColumns = `
	SELECT p.payment_key, p.order_id, p.merchant_id, p.status, p.currency, p.amount, p.surplus, p.attempt, p.generation,
		p.key_first_used_at, p.intended_at, p.undecided_since, p.waiting_seen_at, p.money_seen_at, p.virtual_account, p.secret_digest,
		CASE WHEN p.virtual_account THEN ` + fallShownAt + ` END AS fall_shown_at,
		p.reason, p.method, p.credits_granted, p.credits_revoked, p.supplied, p.vat, p.tax_free, p.tax_exempt, p.updated_at,
		o.status AS order_status, o.amount AS order_amount, o.currency AS order_currency, o.customer_id, o.name AS order_name,
		o.credits AS order_credits, o.created_at AS order_created_at, o.expires_at AS order_expires_at,
		(SELECT h.payment_key FROM payments h
		 WHERE h.order_id = p.order_id AND h.payment_key <> p.payment_key AND NOT h.surplus
		   AND h.status IN ('confirming', 'unknown', 'waiting_for_deposit', 'done', 'partially_canceled', 'canceled')) AS holder,
		COALESCE((SELECT jsonb_agg(jsonb_build_object('number', c.number, 'transaction_key', COALESCE(c.transaction_key, ''),
				'amount', c.amount, 'captured_at', c.captured_at, 'reversed_at', c.reversed_at) ORDER BY c.number)
			FROM captures c WHERE c.payment_key = p.payment_key), '[]') AS captures,
		COALESCE((SELECT jsonb_agg(jsonb_build_object('transaction_key', c.transaction_key, 'amount', c.amount,
				'tax_free', c.tax_free, 'tax_exempt', c.tax_exempt, 'reason', c.reason, 'canceled_at', c.canceled_at,
				'channel', c.channel, 'recorded_at', c.recorded_at, 'credits_revoked', c.credits_revoked)
				ORDER BY c.recorded_at, c.canceled_at, c.transaction_key)
			FROM cancels c WHERE c.payment_key = p.payment_key), '[]') AS cancels
	FROM payments p
	JOIN orders o ON o.order_id = p.order_id
	WHERE p.payment_key = @payment_key`

// Load reads a payment and its order without locking them. A key never seen gives ErrNotFound.
func Load(ctx context.Context, db Querier, paymentKey string) (Payment, Order, error) {
	rows, err := db.Query(ctx, paymentColumns, postgres.Args{"payment_key": paymentKey})
	if err != nil {
		return Payment{}, Order{}, fmt.Errorf("load payment %s: %w", paymentKey, err)
	}
	row, err := collectPayment(rows)
	if err != nil {
		return Payment{}, Order{}, fmt.Errorf("load payment %s: %w", paymentKey, err)
	}
	return row.payment(), row.order(), nil
}

func (r paymentRow) payment() Payment {
	p := Payment{
		Key: r.PaymentKey, OrderID: r.OrderID, MerchantID: r.MerchantID, Status: r.Status,
		Amount: Money{Minor: r.Amount, Currency: r.Currency}, Surplus: r.Surplus, Attempt: r.Attempt, Generation: r.Generation,
		KeyFirstUsedAt: postgres.Time(r.KeyFirstUsedAt), IntendedAt: postgres.Time(r.IntendedAt), UndecidedSince: postgres.Time(r.UndecidedSince),
		WaitingSeenAt: postgres.Time(r.WaitingSeenAt), MoneySeenAt: postgres.Time(r.MoneySeenAt), FallShownAt: postgres.Time(r.FallShownAt), VirtualAccount: r.VirtualAccount, SecretDigest: r.SecretDigest,
		Reason: r.Reason, Method: r.Method, CreditsGranted: r.CreditsGranted, CreditsRevoked: r.CreditsRevoked,
		Tax: Tax{
			Supplied: r.money(r.Supplied), VAT: r.money(r.VAT), Free: r.money(r.TaxFree), Exempt: r.money(r.TaxExempt),
		},
		UpdatedAt: r.UpdatedAt,
	}
	for _, c := range r.Captures {
		p.Captures = append(p.Captures, Capture{
			Number: c.Number, TransactionKey: c.TransactionKey, Amount: r.money(&c.Amount),
			CapturedAt: c.CapturedAt, ReversedAt: postgres.Time(c.ReversedAt),
		})
	}
	for _, c := range r.Cancels {
		p.Cancels = append(p.Cancels, Cancel{
			TransactionKey: c.TransactionKey, PaymentKey: r.PaymentKey, Amount: r.money(&c.Amount),
			TaxFree: r.money(c.TaxFree), TaxExempt: r.money(c.TaxExempt), Reason: c.Reason, CanceledAt: c.CanceledAt,
			Channel: c.Channel, RecordedAt: c.RecordedAt, CreditsRevoked: c.CreditsRevoked,
		})
	}
	return p
}

func (r paymentRow) order() Order {
	o := Order{
		ID: r.OrderID, Status: r.OrderStatus, Amount: Money{Minor: r.OrderAmount, Currency: r.OrderCurrency},
		Name: r.OrderName, Credits: r.OrderCredits, CreatedAt: r.OrderCreatedAt, ExpiresAt: r.OrderExpiresAt,
	}
	if r.CustomerID != nil {
		o.CustomerID = *r.CustomerID
	}
	return o
}

func (r paymentRow) holder() string {
	if r.Holder == nil {
		return ""
	}
	return *r.Holder
}

func (r paymentRow) money(minor *int64) Money {
	if minor == nil {
		return Money{}
	}
	return Money{Minor: *minor, Currency: r.Currency}
}

// nullableMinor keeps an amount that the gateway did not tell as NULL: it is not nothing.
func nullableMinor(m Money) *int64 {
	if m.Currency == "" {
		return nil
	}
	return &m.Minor
}
