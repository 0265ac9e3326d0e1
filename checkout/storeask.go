package checkout

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"daesa/checkout/store"
	"daesa/internal/web"
	"daesa/ledger"
)

// Store is what checkout asks of the client of the merchant's store.
type Store interface {
	Reserve(ctx context.Context) (*store.Permit, error)
	Ask(ctx context.Context, permit *store.Permit, a store.Acceptance) store.Answer
	Release(ctx context.Context, a store.Acceptance) error
}

// StorePolicy says what happens to a sale that the store neither accepted nor declined.
type StorePolicy string

// The policies.
const (
	// StoreRefuse turns the buyer away with a time to come back: a sale is lost rather than made in vain.
	StoreRefuse StorePolicy = "refuse"
	// StoreAccept goes on without the store's word, and tells the merchant to look when the order is paid.
	StoreAccept StorePolicy = "accept"
)

// StorePolicies lists every policy.
func StorePolicies() []StorePolicy { return []StorePolicy{StoreRefuse, StoreAccept} }

func (p StorePolicy) known() bool { return p == StoreRefuse || p == StoreAccept }

// askStore asks the store whether it takes the order on. It ends in an acceptance to go on with, which may be a word that
// only the policy lets pass, or in the refusal for the buyer; then nothing was sent to the gateway, and what the store may
// hold is on its way to be released.
func (h *Handler) askStore(ctx context.Context, wish ledger.Intent) (acceptance, error) {
	if h.cfg.Store == nil {
		return acceptance{}, nil
	}
	permit, err := h.cfg.Store.Reserve(ctx)
	if err != nil {
		unsent, ok := errors.AsType[*store.Unsent](err)
		if !ok || ctx.Err() != nil {
			return acceptance{}, errors.Join(ctx.Err(), err)
		}
		return h.heard(ctx, wish, acceptance{word: unsent.Word()}, "")
	}
	defer permit.Release()
	id := newAcceptanceID()
	writing, stop := context.WithDeadline(ctx, permit.Until())
	defer stop()
	if begun, err := h.begin(writing, id, wish); err != nil || !begun {
		return acceptance{}, unavailable(err)
	}
	answer := h.cfg.Store.Ask(ctx, permit, store.Acceptance{ID: id, OrderID: wish.OrderID, Amount: wish.Amount})
	permit.Release()
	a := acceptance{id: id, word: answer.Word, sent: answer.Sent}
	if err := ctx.Err(); err != nil { // the buyer has gone, and with them the wish to pay
		h.end(ctx, a)
		return acceptance{}, err
	}
	return h.heard(ctx, wish, a, answer.Reason)
}

// heard decides what follows from the store's word, or from its silence.
func (h *Handler) heard(ctx context.Context, wish ledger.Intent, a acceptance, reason string) (acceptance, error) {
	policy := h.policy(a.word)
	h.metrics.heard(a.word, policy, wish.Amount)
	if policy == StoreAccept {
		return a, nil
	}
	h.end(ctx, a)
	switch a.word {
	case store.Declined:
		r := &refusal{cause: ErrStoreDeclined, message: reason, extra: map[string]any{"order_id": wish.OrderID}}
		return acceptance{}, r
	case store.Late:
		return acceptance{}, storeLate()
	case store.Accepted, store.Unreachable:
	}
	return acceptance{}, web.WithRetryAfter(ErrStoreDown, spread())
}

// policy is what follows from a word.
func (h *Handler) policy(word store.Word) StorePolicy {
	switch word {
	case store.Accepted:
		return StoreAccept
	case store.Late:
		return h.cfg.StoreLate
	case store.Unreachable:
		return h.cfg.StoreUnreachable
	case store.Declined:
	}
	return StoreRefuse
}

// spread is when a buyer may come back whom the store had no time for: not all at once.
func spread() time.Duration { return time.Second + rand.N(2*time.Second) }

// storeLate refuses a buyer who would have to wait longer for the store than is any use.
func storeLate() error { return web.WithRetryAfter(ErrStoreLate, spread()) }

// errUnderWay refuses a press beside one whose question is at the store.
func errUnderWay() error { return web.WithRetryAfter(ErrUnderWay, time.Second) }
