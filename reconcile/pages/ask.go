package pages

import (
	"context"
	"fmt"
	"net/http"
	"unicode/utf8"

	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile"
)

// Asker has the gateway asked about a payment of ours.
type Asker interface {
	Ask(ctx context.Context, paymentKey string) (reconcile.Asked, error)
}

// askedData is what the gateway said.
type askedData struct {
	reconcile.Asked

	PaymentKey string
	OrderID    string
}

// Ask serves POST /payments/{payment_key}/ask: the gateway is asked now, and what it says is recorded. The trail has the
// question before it is asked.
func (p *Pages) Ask(w http.ResponseWriter, r *http.Request, who people.Account) error {
	key, err := web.PathText(r, "payment_key")
	if err != nil || len(key) > 300 || !utf8.ValidString(key) {
		return ledger.ErrNotFound
	}
	_, order, err := ledger.Load(r.Context(), p.cfg.DB, key)
	if err != nil {
		return err
	}
	err = p.cfg.Accounts.Note(r.Context(), people.Deed{
		By: people.Person(who.Name), Action: people.ActionGatewayAsked, Subject: "payment " + key, Detail: "order " + order.ID, Source: p.source(r),
	})
	if err != nil {
		return err
	}
	asked, err := p.cfg.Asker.Ask(r.Context(), key)
	if err != nil {
		return web.WithDetail(fmt.Errorf("ask about %s: %w", key, err), err.Error())
	}
	return p.write(w, r, http.StatusOK, pageAsked, askedData{Asked: asked, PaymentKey: key, OrderID: order.ID})
}
