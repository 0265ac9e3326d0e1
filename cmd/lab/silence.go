package main

import (
	"context"
	"net/http"
	"time"

	"daesa/pgclient"
	"daesa/pgclient/tosssim"
)

// silence is one run against a gateway that gives no answer in time, and what followed when it was back.
type silence struct {
	name  string
	first phase // no answer in time
	again phase // the gateway is back: all that were refused, once
	twice phase // all, once more
	after books // of the first
	end   books
}

// neverOpen holds the query breaker closed, so that every notice reaches the gateway as it did theirs.
func neverOpen() pgclient.Breakers {
	const never = 1 << 20
	return pgclient.Breakers{Query: pgclient.BreakerLimits{Window: never, MinCalls: never}}
}

func silentGateway(ctx context.Context, l *lab) (result, error) {
	return l.silences(ctx, "silent", tosssim.Hang, 0, func(line silenceLine) string { return line.silent })
}

func slowGateway(ctx context.Context, l *lab) (result, error) {
	return l.silences(ctx, "slow", tosssim.Delay, l.slow, func(line silenceLine) string { return line.slow })
}

// silences runs twice: like for like, and as the service ships.
func (l *lab) silences(
	ctx context.Context, name string, kind tosssim.Kind, delay time.Duration, theirs func(silenceLine) string,
) (r result, err error) {
	held, err := l.silence(ctx, name+"_held", kind, delay, neverOpen())
	if err != nil {
		return r, err
	}
	shipped, err := l.silence(ctx, name+"_shipped", kind, delay, pgclient.Breakers{})
	if err != nil {
		return r, err
	}
	r.Columns = []string{"", "they", "we, breaker held closed", "we, as shipped"}
	for _, line := range silenceLines() {
		r.Row(line.name, theirs(line), line.of(held), line.of(shipped))
	}
	held.claims(&r, l.options)
	shipped.claims(&r, l.options)
	r.Claim(held.first.asked == l.payments, "%s: the gateway was asked once for each notice", held.name)
	return r, nil
}

// silence cancels payments while the gateway answers too late or never, and lets it come back.
func (l *lab) silence(
	ctx context.Context, name string, kind tosssim.Kind, delay time.Duration, breakers pgclient.Breakers,
) (s silence, err error) {
	s.name = name
	service := quiet(l.budget)
	service.Breakers = breakers
	b, err := l.bench(ctx, name, l.payments, service)
	if err != nil {
		return s, err
	}
	defer func() { err = firstOf(err, b.close()) }()
	b.behave(kind, delay)
	if s.first, err = b.deliver(ctx, name+" first", b.payments, evenly(len(b.payments), l.over), 0); err != nil {
		return s, err
	}
	if s.after, err = b.books(ctx); err != nil {
		return s, err
	}
	b.Sim.Heal()
	// The sender leaves our breaker a whole minute to try again.
	if err := b.wait(ctx, "the breaker to let a question through", b.breakerLets); err != nil {
		return s, err
	}
	refused := s.first.refused()
	if s.again, err = b.deliver(ctx, name+" again", refused, evenly(len(refused), l.over/2), 0); err != nil {
		return s, err
	}
	if s.twice, err = b.deliver(ctx, name+" twice", refused, evenly(len(refused), l.over/2), 0); err != nil {
		return s, err
	}
	s.end, err = b.books(ctx)
	return s, err
}

func (s silence) claims(r *result, o options) {
	for _, p := range []phase{s.first, s.again, s.twice} {
		keepPhase(r, p)
	}
	n := o.payments
	r.Claim(s.first.statuses()[http.StatusBadGateway] == n, "%s: all %d are answered 502: %s", s.name, n, s.first.answers())
	r.Claim(s.first.overBudget() == 0, "%s: no answer comes past 10 s (%d did)", s.name, s.first.overBudget())
	r.Claim(s.first.outcomes(row.applied) == 0, "%s: nothing is applied while the gateway is silent", s.name)
	r.Claim(s.first.connectionsPerNotice() < 0.5, "%s: a waiting notice holds no connection (%.2f on average)",
		s.name, s.first.connectionsPerNotice())
	claimBooks(r, s.name+", silent", s.after, n)
	r.Claim(s.again.statuses()[http.StatusOK] == n && s.again.outcomes(row.applied) == n,
		"%s: one redelivery applies all %d: %s", s.name, n, s.again.answers())
	r.Claim(s.twice.statuses()[http.StatusOK] == n && s.twice.outcomes(duplicate) == n && s.twice.asked == 0,
		"%s: the same once more is %d duplicates and not one question (%d and %d)", s.name, n, s.twice.outcomes(duplicate), s.twice.asked)
	claimBooks(r, s.name+", back", s.end, 0)
}

// firstOf is the first error that is one: what went wrong says more than what closing said of it.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
