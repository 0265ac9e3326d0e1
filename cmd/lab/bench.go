package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/cmd/lab/harness"
	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/internal/stage"
	"daesa/pgclient/tosssim"
)

const (
	testersN    = 10
	warmUps     = 4
	keptCredits = 7   // of a purchase that stays
	soldCredits = 100 // of a purchase that will be canceled
)

// bench is the stage of one run, with payments canceled at the gateway whose notices are held.
type bench struct {
	*stage.Stage
	options
	meter    *pgxpool.Pool // connections of our own, to look at the service's
	testers  map[string]int64
	payments []payment
}

// payment is one that was canceled at the gateway; its notice has not been sent.
type payment struct {
	key    string
	order  string
	notice int64
}

// quiet is what every run changes in the service: nothing but the notices themselves may apply a cancel. The sweeper
// asks only at a cancel's last chance, days later, and the gateway's list is read only when the run says so. All buyers
// come from one address.
func quiet(budget time.Duration) app.Config {
	const unlimited = 1_000_000
	return app.Config{Lazy: true, ConfirmRateLimit: unlimited, ListEvery: time.Hour, WebhookQueryBudget: budget}
}

// bench sets the stage, warms the service up, and cancels n sold payments in the gateway's dashboard.
func (l *lab) bench(ctx context.Context, name string, n int, service app.Config) (_ *bench, err error) {
	address, err := l.fresh(ctx, "lab_"+name)
	if err != nil {
		return nil, err
	}
	b := &bench{options: l.options, testers: map[string]int64{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.Stage, err = stage.Set(ctx, stage.Config{DatabaseURL: address, Service: service, Log: l.log}); err != nil {
		return nil, err
	}
	if err := harness.LoopbackOnly(b.App.URL()); err != nil {
		return nil, err
	}
	if b.meter, err = postgres.Open(ctx, postgres.Config{URL: address, MaxConns: 2, ApplicationName: "lab"}); err != nil {
		return nil, err
	}
	if err := b.wait(ctx, "the lists read at the start", b.listsRead); err != nil {
		return nil, err
	}
	if err := b.warmUp(ctx); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	b.payments, err = b.canceled(ctx, "lab-order", n, b.tester, soldCredits)
	return b, err
}

func (b *bench) close() error {
	if b.meter != nil {
		b.meter.Close()
	}
	if b.Stage == nil {
		return nil
	}
	return b.Close()
}

func (b *bench) tester(i int) string { return fmt.Sprintf("tester-%02d", i%testersN) }

// warmUp takes the first use of everything out of the figures, and gives every tester credits that stay.
func (b *bench) warmUp(ctx context.Context) error {
	for i := range testersN {
		sale := stage.Sale{OrderID: fmt.Sprintf("lab-kept-%02d", i), Won: 10_000, Customer: b.tester(i), Credits: keptCredits}
		if _, err := b.Sell(ctx, sale); err != nil {
			return err
		}
		balance, err := b.Shop.Credits(ctx, b.tester(i))
		if err != nil {
			return err
		}
		b.testers[b.tester(i)] = balance
	}
	early, err := b.canceled(ctx, "lab-warm", warmUps, func(int) string { return "warm-up" }, 0)
	if err != nil {
		return err
	}
	for _, p := range early {
		if status, err := b.Sim.Deliver(p.notice); err != nil || status != http.StatusOK {
			return errors.Join(err, fmt.Errorf("got %d for the notice of %s, want 200", status, p.order))
		}
	}
	return nil
}

// canceled sells n payments and cancels each in the gateway's dashboard.
func (b *bench) canceled(ctx context.Context, prefix string, n int, customer func(int) string, credits int64) ([]payment, error) {
	sold := make([]payment, n)
	at := make(map[string]int, n)
	for i := range sold {
		order := fmt.Sprintf("%s-%04d", prefix, i)
		key, err := b.Sell(ctx, stage.Sale{OrderID: order, Won: 10_000 + int64(i), Customer: customer(i), Credits: credits})
		if err != nil {
			return nil, err
		}
		sold[i], at[key] = payment{key: key, order: order}, i
	}
	for _, p := range sold {
		if _, err := b.Sim.CancelInDashboard(p.key, 0, "고객 변심"); err != nil {
			return nil, fmt.Errorf("cancel %s in the dashboard: %w", p.order, err)
		}
	}
	for _, notice := range b.Sim.Notices() { // oldest first: the last of a payment is its cancel's
		if i, ok := at[notice.PaymentKey]; ok {
			sold[i].notice = notice.ID
		}
	}
	return sold, nil
}

// wait looks again and again until something is so.
func (b *bench) wait(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	return harness.Until(ctx, what, so)
}

// behave makes the gateway answer every question in one way until it is healed.
func (b *bench) behave(kind tosssim.Kind, delay time.Duration) {
	b.Sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: kind, Delay: delay, N: -1})
}
