package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// ErrCursor means that where a page begins is not what an earlier page named.
var ErrCursor = errors.New("not a cursor")

// AppliedMost bounds one page of what is applied.
const AppliedMost = 500

// AppliedPage is a page of the cumulative statement's applied line: the cancels that both books have, which the statement
// itself only counts.
type AppliedPage struct {
	Applied []AppliedCancel `json:"applied"`
	Next    string          `json:"next,omitempty"` // where the next page begins; empty: this is the last
}

// AppliedCancel is one cancel that both books have. Where they have it with two amounts, the booked one is on the line.
type AppliedCancel struct {
	OrderID        string          `json:"order_id"`
	PaymentKey     string          `json:"payment_key"`
	TransactionKey string          `json:"transaction_key"`
	Currency       ledger.Currency `json:"currency"`
	Amount         int64           `json:"amount"` // minor units
	At             time.Time       `json:"at"`     // by the gateway's list
	Channel        ledger.Channel  `json:"channel"`
}

// Applied reads one page of the cumulative applied line, in the order of its transaction keys, after a key. A transaction
// keeps its key, so pages neither skip nor repeat what stays applied. A page costs what it holds, however long the history.
func (a *Auditor) Applied(ctx context.Context, after string, limit int) (AppliedPage, error) {
	if !utf8.ValidString(after) || strings.ContainsRune(after, 0) {
		return AppliedPage{}, ErrCursor
	}
	if limit <= 0 || limit > AppliedMost {
		limit = AppliedMost
	}
	page := AppliedPage{Applied: []AppliedCancel{}}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := postgres.InTxWith(ctx, a.cfg.DB, options, func(tx pgx.Tx) error {
		page.Applied, page.Next = page.Applied[:0], ""
		err := a.appliedFrom(ctx, tx, after, limit+1, func(r Row) error {
			if len(page.Applied) == limit {
				page.Next = page.Applied[limit-1].TransactionKey
				return errPageFull
			}
			page.Applied = append(page.Applied, AppliedCancel{
				OrderID: r.OrderID, PaymentKey: r.PaymentKey, TransactionKey: r.TransactionKey, Currency: r.Currency, Amount: r.Amount,
				At: r.At.UTC(), Channel: r.Channel,
			})
			return nil
		})
		if errors.Is(err, errPageFull) {
			return nil
		}
		return err
	})
	if err != nil {
		return AppliedPage{}, fmt.Errorf("list what is applied: %w", err)
	}
	return page, nil
}

// errPageFull ends the reading of a page.
var errPageFull = errors.New("the page is full")

// AppliedIn hands every cancel of the cumulative applied line to visit, within a snapshot of the caller's and in the order
// of the transaction keys. They are read in pieces, so that a history of any length needs little memory. Its error ends
// the list and is returned.
func (a *Auditor) AppliedIn(ctx context.Context, tx pgx.Tx, visit func(Row) error) error {
	if err := a.appliedFrom(ctx, tx, "", keysAtOnce, visit); err != nil {
		return fmt.Errorf("list what is applied: %w", err)
	}
	return nil
}

// appliedFrom goes through the keys after one, so many at a time. What agrees does so at any time, so that no bounds are
// needed to judge it.
func (a *Auditor) appliedFrom(ctx context.Context, tx pgx.Tx, after string, atOnce int, visit func(Row) error) error {
	r := round{Auditor: a, tx: tx}
	for {
		keys, err := r.keysAfter(ctx, after, atOnce)
		if err != nil || len(keys) == 0 {
			return err
		}
		facts, err := a.facts(ctx, tx, keys)
		if err != nil {
			return err
		}
		for _, row := range facts {
			for _, on := range row.applied() {
				if err := visit(on); err != nil {
					return err
				}
			}
		}
		after = keys[len(keys)-1]
	}
}

// applied is what a key has on the applied line.
func (r factRow) applied() []Row {
	f := r.fact()
	if r.Excluded || !f.G.Present || !f.B.Present {
		return nil
	}
	return slices.DeleteFunc(f.seen(judgeBoth(f)).rows(), func(on Row) bool { return on.Line != LineApplied })
}
