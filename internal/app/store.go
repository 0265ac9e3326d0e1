package app

import (
	"errors"

	"daesa/checkout"
	"daesa/checkout/store"
)

// storeSettings say which store takes orders on before money moves, and what happens when it does not answer.
type storeSettings struct {
	StoreURL         string `name:"store-url" env:"DAESA_STORE_URL" help:"Where the merchant's store is asked whether it takes an order on, before money moves."`
	StoreSecret      string `name:"store-secret" env:"DAESA_STORE_SECRET" help:"whsec_…, signs what the store is sent (Standard Webhooks)."`
	StoreLate        string `name:"store-late" env:"DAESA_STORE_LATE" enum:"refuse,accept" default:"refuse" help:"What happens to a sale that the store is late for: refuse it, or accept it and have the merchant look."`
	StoreUnreachable string `name:"store-unreachable" env:"DAESA_STORE_UNREACHABLE" enum:"refuse,accept" default:"refuse" help:"The same when the store cannot be reached."`
}

func (s storeSettings) apply(cfg *Config) {
	cfg.StoreURL, cfg.StoreSecret = s.StoreURL, s.StoreSecret
	cfg.StoreLate, cfg.StoreUnreachable = checkout.StorePolicy(s.StoreLate), checkout.StorePolicy(s.StoreUnreachable)
}

func (c Config) validateStore() error {
	switch {
	case c.StoreURL != "" && c.StoreSecret == "":
		return errors.New("set DAESA_STORE_SECRET (whsec_…): the store is asked signed or not at all")
	case c.StoreURL == "" && c.StoreSecret != "":
		return errors.New("set DAESA_STORE_URL to the store's address, or leave DAESA_STORE_SECRET out")
	}
	return nil
}

// openStore makes the client of the store, if there is one. Its figures are there in any case.
func (a *App) openStore() (err error) {
	metrics := store.NewMetrics(a.registry)
	if a.cfg.StoreURL == "" {
		return nil
	}
	a.store, err = store.New(store.Config{
		URL: a.cfg.StoreURL, Secret: a.cfg.StoreSecret, Replicas: a.cfg.Replicas, Limits: a.cfg.StoreLimits, Metrics: metrics,
		Log: a.log, Now: a.cfg.Now,
	})
	return err
}

// storeOf is the store as checkout asks it, nil when there is none.
func (a *App) storeOf() checkout.Store {
	if a.store == nil {
		return nil
	}
	return a.store
}
