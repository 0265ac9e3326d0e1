package browser_test

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"daesa/internal/app"
	"daesa/internal/people"
	"daesa/internal/postgres/postgrestest"
	"daesa/internal/stage"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

const (
	secretKey      = "test_sk_simulator"
	chosenPassword = "a password of one's own"
)

// opening is when every story begins: a Wednesday morning in Seoul.
func opening() time.Time { return time.Date(2026, 4, 15, 10, 0, 0, 0, ledger.Seoul()) }

// office is the service with its gateway, its shop and people who work at its pages. Nothing happens by itself.
type office struct {
	testing.TB

	app      *app.App
	gateway  string // where the simulator answers
	clock    *tosssim.ManualClock
	sim      *tosssim.Sim
	shop     stage.Shop
	accounts *people.Accounts
}

// open opens an office. At the end of the test its books must be sound.
func open(tb testing.TB) *office {
	tb.Helper()
	o := &office{TB: tb, clock: tosssim.NewManualClock(opening())}
	o.sim = tosssim.New(tosssim.Config{SecretKey: secretKey, Clock: o.clock})
	o.sim.SetDelivery(tosssim.DeliveryPlan{Hold: true})
	gateway := httptest.NewServer(o.sim.Handler())
	tb.Cleanup(func() {
		o.sim.Close()
		gateway.Close()
	})
	o.gateway = gateway.URL
	cost := people.Cost{Memory: 64, Passes: 1, Lanes: 1}
	const free = "127.0.0.1:0"
	var err error
	o.app, err = app.New(tb.Context(), app.Config{
		DatabaseURL: postgrestest.NewURL(tb), Listen: free, PrivateListen: free, PagesListen: free, PasswordCost: cost,
		TossURL: gateway.URL, TossSecretKey: secretKey, APIKeys: []string{"stage=" + stage.APISecret},
		OpeningAt: opening().Add(-time.Hour), DatabaseMax: 8, Now: o.clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	o.must(err)
	o.sim.SetWebhookURL(o.app.URL() + "/webhooks/toss")
	o.shop = stage.NewShop(o.app.URL())
	o.accounts, err = people.New(people.Config{DB: o.app.DB(), Cost: cost, Now: o.clock.Now})
	o.must(err)
	ended := make(chan error, 1)
	go func() { ended <- o.app.ServeWithoutJobs() }()
	tb.Cleanup(func() {
		if !tb.Failed() {
			ledgertest.RequireSound(tb, o.app.DB())
		}
		o.shop.Close()
		if err := o.app.Stop(); err != nil {
			tb.Errorf("stop: %v", err)
		}
		if err := <-ended; err != nil {
			tb.Errorf("serve: %v", err)
		}
	})
	return o
}

func (o *office) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// account makes an account and returns the password it was given.
func (o *office) account(name string, roles ...people.Role) string {
	o.Helper()
	given, err := o.accounts.Add(o.Context(), "os:root", name, roles)
	o.must(err)
	return given
}

// colleague makes an account whose owner has chosen a password.
func (o *office) colleague(name string, roles ...people.Role) {
	o.Helper()
	_, err := o.accounts.Choose(o.Context(), name, o.account(name, roles...), chosenPassword, "test")
	o.must(err)
}

// sell takes an order through checkout until it is paid, and returns the payment key.
func (o *office) sell(sale stage.Sale) string {
	o.Helper()
	o.must(o.shop.Order(o.Context(), sale))
	key := o.sim.Authenticate(tosssim.Checkout{OrderID: sale.OrderID, OrderName: "티셔츠", Amount: sale.Won, Method: tosssim.Card})
	reply, err := o.shop.Confirm(o.Context(), key, sale.OrderID, sale.Won)
	o.must(err)
	o.must(reply.Expect("confirming "+sale.OrderID, 200, "done"))
	return key
}

// canceled cancels at the gateway and has its notice delivered.
func (o *office) canceled(key string, won int64) {
	o.Helper()
	_, err := o.sim.CancelInDashboard(key, won, "고객 변심")
	o.must(err)
	o.deliver(200)
}

// deliver delivers the newest notice, which is answered like that.
func (o *office) deliver(want int) {
	o.Helper()
	notices := o.sim.Notices()
	status, err := o.sim.Deliver(notices[len(notices)-1].ID)
	o.must(err)
	if status != want {
		o.Fatalf("got %d for the notice, want %d", status, want)
	}
}

// spent leaves a mismatch behind: credits of an order that is canceled are spent already.
func (o *office) spent(order string, won int64) {
	o.Helper()
	key := o.sell(stage.Sale{OrderID: order, Won: won, Customer: "customer-" + order, Credits: won / 1000})
	reply, err := o.shop.Spend(o.Context(), "customer-"+order, "spend-"+order, won/1000)
	o.must(err)
	if reply.HTTP != 200 && reply.HTTP != 201 {
		o.Fatalf("got %d %s for the spend", reply.HTTP, reply.Code)
	}
	o.canceled(key, 0)
}

// night closes every business day that has ended when the day has.
func (o *office) night(day ledger.Day) {
	o.Helper()
	o.clock.Set(day.Next().Start().Add(20 * time.Minute))
	o.audit()
	o.must(o.app.CloseDays(o.Context()))
}

// audit compares the books with the gateway's list as it is now.
func (o *office) audit() {
	o.Helper()
	o.must(o.app.ReadList(o.Context()))
	_, err := o.app.Audit(o.Context(), reconcile.Scope{Name: reconcile.ScopeRecent})
	o.must(err)
}
