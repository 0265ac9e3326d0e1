package app

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"daesa/checkout"
	"daesa/internal/admission"
	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/reconcile"
	"daesa/reconcile/desk"
	"daesa/reconcile/pages"
	"daesa/webhook"
)

// routers are what the public listener and that of the pages serve, with what every request passes through around them.
func routers(a *App) (public, office http.Handler, err error) {
	adapter, gates, err := newGates(a)
	if err != nil {
		return nil, nil, err
	}
	publicRoutes := publicRoutes(a, adapter, gates)
	pages, sessions, err := newPages(a, adapter)
	if err != nil {
		return nil, nil, err
	}
	pageRoutes := pageRoutes(pages, sessions, adapter, gates)
	around, err := newAround(a, adapter, publicRoutes, pageRoutes)
	if err != nil {
		return nil, nil, err
	}
	return around(publicRoutes), pages.Around(around(pageRoutes)), nil
}

// publicRoutes is the whole public URL surface. Metrics, health and profiles are on the private listener.
func publicRoutes(a *App, adapter *web.Adapter, gates gates) chi.Router {
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
		r.Use(gates.money, gates.admit.Middleware(admission.ClassMoney), web.Timeout(moneyTimeout))
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
		r.Use(gates.read, gates.admit.Middleware(admission.ClassReading), web.Timeout(readingTimeout))
		r.Get("/v1/orders/{order_id}", handle(f.checkout.GetOrder))
		r.Get("/v1/cancels/{request_id}", handle(f.checkout.GetCancel))
		r.Get("/v1/customers/{customer_id}/credits", handle(f.checkout.GetCredits))
		r.Get("/v1/events", handle(f.checkout.ListEvents))
		r.Get("/v1/days", handle(days.ListDays))
		r.Get("/v1/days/{day}", handle(days.GetDay))
		r.Get("/v1/statement/applied", handle(days.ListApplied))
	})

	// The merchant's servers, by hand: an event once more.
	r.Group(func(r chi.Router) {
		r.Use(gates.money, gates.admit.Middleware(admission.ClassReading), web.Timeout(readingTimeout))
		r.Post("/v1/events/{event_id}/resend", handle(f.checkout.ResendEvent))
	})

	// Finance: a few signatures a day. The day is closed once more for each, which takes as long as the day is large.
	r.Group(func(r chi.Router) {
		r.Use(gates.books, gates.admit.Middleware(admission.ClassReading), web.Timeout(moneyTimeout))
		r.Post("/v1/days/{day}/sign", handle(days.SignDay))
	})

	deskRoutes(r, f.desk, handle, gates)
	return r
}

// deskRoutes are for whoever looks after the books: what is wrong, what is waiting, and what people do about it; by hand, or a
// few times a minute from a back office.
func deskRoutes(r chi.Router, d *desk.Desk, handle func(web.Handler) http.HandlerFunc, gates gates) {
	r.Group(func(r chi.Router) {
		r.Use(gates.read, gates.admit.Middleware(admission.ClassReading), web.Timeout(readingTimeout))
		r.Get("/v1/pending", handle(d.ListPending))
		r.Get("/v1/mismatches", handle(d.ListMismatches))
		r.Get("/v1/mismatches/{mismatch_id}", handle(d.GetMismatch))
		r.Get("/v1/incidents", handle(d.ListIncidents))
		r.Get("/v1/incidents/{incident_id}", handle(d.GetIncident))
	})
	r.Group(func(r chi.Router) {
		r.Use(gates.books, gates.admit.Middleware(admission.ClassReading), web.Timeout(readingTimeout))
		for _, step := range ledger.Steps() {
			r.Post("/v1/mismatches/{mismatch_id}/"+string(step), handle(d.Step(step)))
		}
		for _, step := range []ledger.Step{ledger.StepResolve, ledger.StepConfirm, ledger.StepWithdraw} {
			r.Post("/v1/incidents/{incident_id}/"+string(step), handle(d.StepIncident(step)))
		}
	})
}

// pageRoutes is the whole URL surface of the pages, which have a listener of their own: whoever sends notices or pays has no
// business there, and a merchant can keep it within the house.
func pageRoutes(p *pages.Pages, sessions *people.Sessions, adapter *web.Adapter, gates gates) chi.Router {
	handle := adapter.Handle
	r := chi.NewRouter()
	r.NotFound(adapter.NotFound)
	r.MethodNotAllowed(otherMethods(r, adapter))
	r.Use(web.SecurityHeaders(pages.Policy), sameOrigin(adapter), gates.admit.Middleware(admission.ClassReading))

	r.Get("/static/{file}", handle(p.Static))

	// Somebody who comes in, a few times a day; or a stranger who tries passwords, as often as the limit lets them.
	r.Group(func(r chi.Router) {
		r.Use(web.Timeout(readingTimeout), sessions.Middleware)
		r.Post("/language", handle(p.SetLanguage))
		r.Get("/sign-in", handle(p.SignInPage))
		r.With(gates.signIns.Middleware).Post("/sign-in", handle(p.SignIn))
		r.Post("/sign-out", p.Signed(p.SignOut))
		r.Get("/password", p.Signed(p.PasswordPage))
		r.With(gates.signIns.Middleware).Post("/password", p.Signed(p.ChoosePassword))
	})

	// Finance and on-call, by hand: some pages a minute.
	r.Group(func(r chi.Router) {
		r.Use(web.Timeout(readingTimeout), sessions.Middleware)
		r.Get("/", p.May(people.MayView, p.Overview))
		r.Get("/days/{day}", p.May(people.MayView, p.Day))
		r.Get("/mismatches", p.May(people.MayView, p.Mismatches))
		r.Post("/mismatches", p.May(people.MayWork, p.StepMismatches))
		r.Get("/mismatches/{mismatch_id}", p.May(people.MayView, p.Mismatch))
		r.Post("/mismatches/{mismatch_id}/{step}", p.May(people.MayView, p.StepMismatch)) // each step asks for more
		r.Post("/payments/{payment_key}/ask", p.May(people.MayAsk, p.Ask))
		r.Get("/deliveries", p.May(people.MayView, p.Deliveries))
		r.Get("/deliveries/{delivery_id}", p.May(people.MayView, p.Delivery))
		r.Get("/orders/{order_id}", p.May(people.MayView, p.Order))
	})

	// Operators, a few times a year.
	r.Group(func(r chi.Router) {
		r.Use(web.Timeout(readingTimeout), sessions.Middleware)
		r.Get("/accounts", p.May(people.MayManage, p.AccountList))
		r.Post("/accounts", p.May(people.MayManage, p.AddAccount))
		r.Post("/accounts/{name}/{step}", p.May(people.MayManage, p.StepAccount))
	})

	// Reports, a few a day, each as long as it takes to read what it is of.
	r.Group(func(r chi.Router) {
		r.Use(web.Timeout(reportTimeout), sessions.Middleware)
		r.Get("/reports/{kind}", p.May(people.MayView, p.Report))
	})

	// On-call, after an outage: a question to the gateway, and what its answer changes in the books.
	r.Group(func(r chi.Router) {
		r.Use(web.Timeout(moneyTimeout), sessions.Middleware)
		r.Post("/deliveries/{delivery_id}/rehearse", p.May(people.MayReplay, p.RehearseDelivery))
		r.Post("/deliveries/{delivery_id}/replay", p.May(people.MayReplay, p.ReplayDelivery))
	})

	// A signature closes its day once more, which takes as long as the day is large.
	r.Group(func(r chi.Router) {
		r.Use(web.Timeout(moneyTimeout), sessions.Middleware)
		r.Post("/days/{day}/sign", p.May(people.MaySign, p.SignDay))
	})
	return r
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

// newAround puts what every request passes through around the finished routers, so that it knows their routes.
func newAround(a *App, adapter *web.Adapter, routers ...chi.Router) (func(http.Handler) http.Handler, error) {
	var all []string
	for _, r := range routers {
		routes, err := web.Routes(r)
		if err != nil {
			return nil, err
		}
		all = append(all, routes...)
	}
	metrics, err := web.NewMetrics(a.registry, all)
	if err != nil {
		return nil, err
	}
	proxies, err := a.cfg.proxies()
	if err != nil {
		return nil, err
	}
	watch := web.WatchForwarded(metrics, proxies, a.log)
	return func(next http.Handler) http.Handler {
		return web.WithRequestID(adapter.Recover(web.AccessLog(a.log, metrics)(web.InFlight(metrics)(watch(next)))))
	}, nil
}
