package app

import (
	"daesa/checkout"
	"daesa/internal/people"
	"daesa/ledger"
	"daesa/ledger/seal"
	"daesa/reconcile"
	"daesa/reconcile/desk"
	"daesa/webhook"
)

// features are the domain and its three callers, wired over one database and one gateway.
type features struct {
	ledger          *ledger.Ledger
	notices         *checkout.Notices
	checkout        *checkout.Handler
	checkoutMetrics *checkout.Metrics
	settler         *checkout.Settler
	webhook         *webhook.Handler
	reconcile       *reconcile.Reconciler
	sealer          *seal.Sealer
	desk            *desk.Desk
	people          *people.Accounts
	keys            *people.Keyring
}

func newFeatures(a *App) (f features, err error) {
	ourOrders, err := a.cfg.ourOrders()
	if err != nil {
		return f, err
	}
	proxies, err := a.cfg.proxies()
	if err != nil {
		return f, err
	}
	if f.notices, err = checkout.NewNotices(a.log); err != nil {
		return f, err
	}
	f.ledger, err = ledger.New(ledger.Config{
		Notify: f.notices, Metrics: ledger.NewMetrics(a.registry), Now: a.cfg.Now, MerchantID: a.cfg.MerchantID,
	})
	if err != nil {
		return f, err
	}
	f.checkoutMetrics = checkout.NewMetrics(a.registry)
	f.checkout, err = checkout.New(checkout.Config{
		DB: a.db, Reads: a.reads, Ledger: f.ledger, Gateway: a.gateway, Notices: f.notices, TokenKey: a.cfg.tokenKey(),
		Store: a.storeOf(), StoreLate: a.cfg.StoreLate, StoreUnreachable: a.cfg.StoreUnreachable,
		MerchantID: a.cfg.MerchantID, OurOrders: ourOrders, Metrics: f.checkoutMetrics, Log: a.log, Now: a.cfg.Now,
	})
	if err != nil {
		return f, err
	}
	f.settler, err = checkout.NewSettler(checkout.SettlerConfig{
		DB: a.db, Notices: f.notices, Store: a.storeOf(), Metrics: f.checkoutMetrics, Log: a.log, Now: a.cfg.Now,
	})
	if err != nil {
		return f, err
	}
	f.webhook, err = webhook.New(webhook.Config{
		DB: a.deliveries, Ledger: f.ledger, Gateway: a.gateway, Metrics: webhook.NewMetrics(a.registry), Log: a.log, Now: a.cfg.Now,
		OurOrders: ourOrders, MerchantID: a.cfg.MerchantID, TrustedProxies: proxies, Eager: !a.cfg.Lazy, Replicas: a.cfg.Replicas,
		Deadline: a.cfg.WebhookDeadline, QueryBudget: a.cfg.WebhookQueryBudget, Keep: a.cfg.Retention.keep().webhook,
	})
	if err != nil {
		return f, err
	}
	if f.people, err = people.New(people.Config{DB: a.reads, Cost: a.cfg.PasswordCost, Now: a.cfg.Now}); err != nil {
		return f, err
	}
	// Those who move money must not wait for a connection behind those who look something up.
	if f.keys, err = people.NewKeyring(people.KeyringConfig{DB: a.db, Log: a.log, Now: a.cfg.Now}); err != nil {
		return f, err
	}
	if f.desk, err = desk.New(desk.Config{DB: a.reads, Now: a.cfg.Now}); err != nil {
		return f, err
	}
	f.reconcile, err = reconcile.New(reconcile.Config{
		DB: a.db, Ledger: f.ledger, Gateway: a.gateway, Metrics: reconcile.NewMetrics(a.registry), Log: a.log, Now: a.cfg.Now,
		DatabaseNow: a.cfg.DatabaseNow, Eager: !a.cfg.Lazy, OurOrders: ourOrders, OpeningAt: a.cfg.OpeningAt, ListLag: a.cfg.ListLag,
		Slots: reconcile.SlotsOf(a.cfg.Paths.Recover.Cap, a.cfg.Replicas), Replicas: a.cfg.Replicas, Keep: a.cfg.Retention.keep().reconcile,
	})
	return f, err
}
