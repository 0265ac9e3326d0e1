package app

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"daesa/checkout"
	"daesa/internal/admission"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile"
	"daesa/webhook"
)

// publicRouter is the public routes with what every request passes through around them.
func publicRouter(a *App) (http.Handler, error) {
	router, adapter, err := publicRoutes(a)
	if err != nil {
		return nil, err
	}
	return around(a, adapter, router)
}

// publicRoutes is the whole public URL surface. Metrics, health and profiles are on the private listener.
func publicRoutes(a *App) (chi.Router, *web.Adapter, error) {
	adapter, gates, err := newGates(a)
	if err != nil {
		return nil, nil, err
	}
	f, handle := a.features, adapter.Handle
	days := reconcile.NewDayHandler(f.reconcile.Auditor, a.reads)
	r := chi.NewRouter()
	r.NotFound(adapter.NotFound)
	r.MethodNotAllowed(otherMethods(r, adapter))
	r.Use(web.SecurityHeaders(web.PolicyAPI))

	// Toss's webhook sender: rare, in bursts of hundreds after an outage; wants 200 within 10 s. The handler keeps
	// its own deadline. Anybody can send notices too, so the same holds as for confirms: first the source's limit, then the
	// body, and only then a slot of those that real notices need.
	r.Group(func(r chi.Router) {
		r.Use(gates.notices.Middleware, web.ReadAhead(webhook.BodyMax, webhook.BodyWithin),
			gates.admit.Middleware(admission.ClassNotification))
		r.Post("/webhooks/toss", handle(a.notices()))
	})

	// The buyer's browser, after the gateway's redirect: once per payment, a few times when it is reloaded. Anybody can
	// call it with keys of their own making, so each source has its limit, and only a request that is here whole has a slot
	// of those that the merchant's own requests need.
	r.Group(func(r chi.Router) {
		r.Use(gates.cors, gates.confirms.Middleware, web.ReadAhead(checkout.BodyMax, web.BodyMost),
			gates.admit.Middleware(admission.ClassMoney), web.Timeout(moneyTimeout))
		r.Post("/v1/payments/confirm", handle(f.checkout.Confirm))
		r.Options("/v1/payments/confirm", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	})

	// The merchant's servers and back office: orders and cancels.
	r.Group(func(r chi.Router) {
		r.Use(gates.bearer, gates.admit.Middleware(admission.ClassMoney), web.Timeout(moneyTimeout))
		r.Post("/v1/orders", handle(f.checkout.CreateOrder))
		r.Post("/v1/payments/{payment_key}/cancel", handle(f.checkout.CancelPayment))
		r.Post("/v1/customers/{customer_id}/credits/spend", handle(f.checkout.SpendCredits))
	})

	// The status address that a buyer was given with a 202, and look-ups of the merchant's servers: an API key or the
	// signed token of the address.
	r.Group(func(r chi.Router) {
		r.Use(gates.cors, gates.bearerOrToken, gates.admit.Middleware(admission.ClassReading), web.Timeout(readingTimeout))
		r.Get("/v1/payments/{payment_key}", handle(f.checkout.GetPayment))
	})

	// The merchant's servers: look-ups.
	r.Group(func(r chi.Router) {
		r.Use(gates.bearer, gates.admit.Middleware(admission.ClassReading), web.Timeout(readingTimeout))
		r.Get("/v1/orders/{order_id}", handle(f.checkout.GetOrder))
		r.Get("/v1/cancels/{request_id}", handle(f.checkout.GetCancel))
		r.Get("/v1/customers/{customer_id}/credits", handle(f.checkout.GetCredits))
		r.Get("/v1/events", handle(f.checkout.ListEvents))
		r.Post("/v1/events/{event_id}/resend", handle(f.checkout.ResendEvent))
		r.Get("/v1/days", handle(days.ListDays))
		r.Get("/v1/days/{day}", handle(days.GetDay))
		r.Get("/v1/statement/applied", handle(days.ListApplied))
	})

	// Finance: a few signatures a day. The day is closed once more for each, which takes as long as the day is large.
	r.Group(func(r chi.Router) {
		r.Use(gates.bearer, gates.admit.Middleware(admission.ClassReading), web.Timeout(moneyTimeout))
		r.Post("/v1/days/{day}/sign", handle(days.SignDay))
	})

	// Whoever looks after the books: what is wrong, what is waiting, and what people do about it; by hand, or a few times
	// a minute from a back office.
	r.Group(func(r chi.Router) {
		r.Use(gates.bearer, gates.admit.Middleware(admission.ClassReading), web.Timeout(readingTimeout))
		r.Get("/v1/pending", handle(f.desk.ListPending))
		r.Get("/v1/mismatches", handle(f.desk.ListMismatches))
		r.Get("/v1/mismatches/{mismatch_id}", handle(f.desk.GetMismatch))
		for _, step := range ledger.Steps() {
			r.Post("/v1/mismatches/{mismatch_id}/"+string(step), handle(f.desk.Step(step)))
		}
		r.Get("/v1/incidents", handle(f.desk.ListIncidents))
		r.Get("/v1/incidents/{incident_id}", handle(f.desk.GetIncident))
		for _, step := range []ledger.Step{ledger.StepResolve, ledger.StepConfirm, ledger.StepWithdraw} {
			r.Post("/v1/incidents/{incident_id}/"+string(step), handle(f.desk.StepIncident(step)))
		}
	})
	return r, adapter, nil
}

// notices is what answers a notice.
func (a *App) notices() web.Handler {
	if a.cfg.Notices != nil {
		return a.cfg.Notices
	}
	return a.features.webhook.Receive
}

// otherMethods answers a method that a path does not serve, and says which ones it does.
func otherMethods(router chi.Routes, adapter *web.Adapter) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodPost} {
			if router.Match(chi.NewRouteContext(), method, r.URL.Path) {
				w.Header().Add("Allow", method)
			}
		}
		adapter.MethodNotAllowed(w, r)
	}
}

// around puts what every request passes through around the finished router, so that it knows the routes.
func around(a *App, adapter *web.Adapter, r chi.Router) (http.Handler, error) {
	routes, err := web.Routes(r)
	if err != nil {
		return nil, err
	}
	metrics, err := web.NewMetrics(a.registry, routes)
	if err != nil {
		return nil, err
	}
	proxies, err := a.cfg.proxies()
	if err != nil {
		return nil, err
	}
	watched := web.WatchForwarded(metrics, proxies, a.log)(r)
	return web.WithRequestID(adapter.Recover(web.AccessLog(a.log, metrics)(web.InFlight(metrics)(watched)))), nil
}
