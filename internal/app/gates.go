package app

import (
	"net/http"

	"daesa/internal/admission"
	"daesa/internal/web"
)

// The names of the rules by which sources are limited.
const (
	ruleWebhook        = "webhook"
	ruleWebhookGateway = "webhook_gateway" // of the addresses that the gateway publishes
	ruleConfirm        = "confirm"
)

// gates are the middlewares that decide whether a request is let in.
type gates struct {
	admit    *admission.Gate
	notices  *admission.RateLimit
	confirms *admission.RateLimit
	bearer   func(http.Handler) http.Handler
	cors     func(http.Handler) http.Handler
}

// bearerOrToken asks for an API key unless the request carries the token of a status address, which the handler
// checks.
func (g gates) bearerOrToken(next http.Handler) http.Handler {
	keyed := g.bearer(next)
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
	metrics := admission.NewMetrics(a.registry, ruleWebhook, ruleWebhookGateway, ruleConfirm)
	g.admit, err = admission.NewGate(admission.GateConfig{
		Adapter: adapter, Metrics: metrics, Enforce: !a.cfg.RecordOnly, OneLine: a.cfg.OneLine,
	})
	if err != nil {
		return nil, g, err
	}
	if g.notices, g.confirms, err = newLimits(a, adapter, metrics); err != nil {
		return nil, g, err
	}
	keys, err := a.cfg.keys()
	if err != nil {
		return nil, g, err
	}
	if g.bearer, err = web.NewBearer(web.BearerConfig{Keys: keys, Adapter: adapter}); err != nil {
		return nil, g, err
	}
	g.cors, err = web.NewCORS(web.CORSConfig{Origins: a.cfg.CORSOrigins, Adapter: adapter})
	return adapter, g, err
}

// newLimits makes the rate limits of notices and of confirms.
func newLimits(a *App, adapter *web.Adapter, metrics *admission.Metrics) (notices, confirms *admission.RateLimit, err error) {
	proxies, err := a.cfg.proxies()
	if err != nil {
		return nil, nil, err
	}
	gateway, err := a.cfg.gatewayAddresses()
	if err != nil {
		return nil, nil, err
	}
	shared, err := admission.NewDatabase(admission.SharedConfig{DB: a.limits, Now: a.cfg.limitNow})
	if err != nil {
		return nil, nil, err
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
	if notices, err = limit(rules...); err != nil {
		return nil, nil, err
	}
	confirms, err = limit(admission.Rule{Name: ruleConfirm, PerMinute: a.cfg.ConfirmRateLimit, Burst: a.cfg.ConfirmRateLimit})
	return notices, confirms, err
}
