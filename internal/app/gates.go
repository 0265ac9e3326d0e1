package app

import (
	"net/http"

	"daesa/internal/admission"
	"daesa/internal/people"
	"daesa/internal/web"
)

// The names of the rules by which sources are limited.
const (
	ruleWebhook        = "webhook"
	ruleWebhookGateway = "webhook_gateway" // of the addresses that the gateway publishes
	ruleConfirm        = "confirm"
	ruleSignIn         = "sign_in"
)

// gates are the middlewares that decide whether a request is let in.
type gates struct {
	admit    *admission.Gate
	notices  *admission.RateLimit
	confirms *admission.RateLimit
	signIns  *admission.RateLimit
	money    func(http.Handler) http.Handler // API keys of that scope, and so on
	read     func(http.Handler) http.Handler
	books    func(http.Handler) http.Handler
	cors     func(http.Handler) http.Handler
}

// bearerOrToken asks for an API key unless the request carries the token of a status address, which the handler
// checks.
func (g *gates) bearerOrToken(next http.Handler) http.Handler {
	keyed := g.read(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("token") {
			next.ServeHTTP(w, r)
			return
		}
		keyed.ServeHTTP(w, r)
	})
}

func newGates(a *App) (*web.Adapter, gates, error) {
	var g gates
	table, err := web.NewProblems(problems())
	if err != nil {
		return nil, g, err
	}
	adapter, err := web.New(web.Config{Problems: table, Log: a.log})
	if err != nil {
		return nil, g, err
	}
	metrics := admission.NewMetrics(a.registry, ruleWebhook, ruleWebhookGateway, ruleConfirm, ruleSignIn)
	g.admit, err = admission.NewGate(admission.GateConfig{
		Adapter: adapter, Metrics: metrics, Enforce: !a.cfg.RecordOnly, OneLine: a.cfg.OneLine,
	})
	if err != nil {
		return nil, g, err
	}
	if err := g.limit(a, adapter, metrics); err != nil {
		return nil, g, err
	}
	bearer, err := newBearer(a, adapter)
	if err != nil {
		return nil, g, err
	}
	g.money, g.read, g.books = bearer(string(people.ScopeMoney)), bearer(string(people.ScopeRead)), bearer(string(people.ScopeBooks))
	g.cors, err = web.NewCORS(web.CORSConfig{Origins: a.cfg.CORSOrigins, Adapter: adapter})
	return adapter, g, err
}

// signInsPerMinute is how many passwords one source may try in a minute, and at once: a house full of people comes from one
// address in the morning, and each look at a password costs as much as many pages.
const signInsPerMinute = 30

// limit makes the rate limits of notices, of confirms and of passwords.
func (g *gates) limit(a *App, adapter *web.Adapter, metrics *admission.Metrics) error {
	proxies, err := a.cfg.proxies()
	if err != nil {
		return err
	}
	gateway, err := a.cfg.gatewayAddresses()
	if err != nil {
		return err
	}
	shared, err := admission.NewDatabase(admission.SharedConfig{DB: a.limits, Now: a.cfg.limitNow})
	if err != nil {
		return err
	}
	limit := func(rules ...admission.Rule) (*admission.RateLimit, error) {
		return admission.NewRateLimit(admission.RateConfig{
			Adapter: adapter, Metrics: metrics, Rules: rules, Shared: shared, Timeout: a.cfg.LimitTimeout, Replicas: a.cfg.Replicas, Trusted: proxies,
			Enforce: !a.cfg.RecordOnly, Now: a.cfg.limitNow,
		})
	}
	rules := []admission.Rule{{Name: ruleWebhook, PerMinute: a.cfg.RateLimit, Burst: a.cfg.RateLimit}}
	if len(gateway) > 0 {
		perMinute := a.cfg.GatewayRateLimit
		rules = append([]admission.Rule{{Name: ruleWebhookGateway, PerMinute: perMinute, Burst: perMinute, Addresses: gateway}}, rules...)
	}
	if g.notices, err = limit(rules...); err != nil {
		return err
	}
	if g.confirms, err = limit(admission.Rule{Name: ruleConfirm, PerMinute: a.cfg.ConfirmRateLimit, Burst: a.cfg.ConfirmRateLimit}); err != nil {
		return err
	}
	g.signIns, err = limit(admission.Rule{Name: ruleSignIn, PerMinute: signInsPerMinute, Burst: signInsPerMinute})
	return err
}
