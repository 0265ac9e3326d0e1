package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// burst is one run of many notices within seconds against a limit, and what followed.
type burst struct {
	limit     int
	predicted int   // admitted: what the bucket holds, and what refills until the last arrival
	first     phase // all
	again     phase // those the limit refused, each as long after its refusal as the sender waits
	twice     phase // all, once more
	end       books
}

// redeliveryBurst runs with a limit that is too small and with one that is not.
func redeliveryBurst(ctx context.Context, l *lab) (r result, err error) {
	small, err := l.burstAgainst(ctx, l.small)
	if err != nil {
		return r, err
	}
	large, err := l.burstAgainst(ctx, l.large)
	if err != nil {
		return r, err
	}
	r.Columns = []string{
		"", "they, 100 a minute", fmt.Sprintf("we, %d a minute", l.small), "they, 300 a minute", fmt.Sprintf("we, %d a minute", l.large),
	}
	for _, line := range burstLines() {
		r.Row(line.name, line.small, line.of(small), line.large, line.of(large))
	}
	small.claims(&r, l.options)
	large.claims(&r, l.options)
	refused := small.first.statuses()[http.StatusTooManyRequests]
	r.Claim(refused > 0, "the small limit refuses part of the burst: %d", refused)
	r.Claim(large.first.statuses()[http.StatusTooManyRequests] == 0, "the large limit refuses none: %s", large.first.answers())
	return r, nil
}

func (l *lab) burstAgainst(ctx context.Context, limit int) (s burst, err error) {
	service := quiet(l.budget)
	service.RateLimit = limit
	b, err := l.bench(ctx, fmt.Sprintf("burst_%d", limit), l.burst, service)
	if err != nil {
		return s, err
	}
	defer func() { err = firstOf(err, b.close()) }()
	b.behave(tosssim.Delay, l.healthy)
	s.limit = limit
	arrivals := evenly(l.burst, l.burstIn)
	s.predicted = min(l.burst, limit+int(float64(limit)/60*arrivals[len(arrivals)-1].Seconds()))
	if err := b.refill(ctx, warmUps, limit); err != nil {
		return s, err
	}
	if s.first, err = b.deliver(ctx, fmt.Sprintf("burst at %d first", limit), b.payments, arrivals, l.healthy); err != nil {
		return s, err
	}
	list, at := comeAgain(s.first, l.patience)
	if s.again, err = b.deliver(ctx, fmt.Sprintf("burst at %d again", limit), list, at, l.healthy); err != nil {
		return s, err
	}
	if err := b.refill(ctx, l.burst, limit); err != nil {
		return s, err
	}
	if s.twice, err = b.deliver(ctx, fmt.Sprintf("burst at %d twice", limit), b.payments, b.unhurried(limit), l.healthy); err != nil {
		return s, err
	}
	s.end, err = b.books(ctx)
	return s, err
}

// refill waits until a bucket that lost so many tokens is full again, or would be if it had them.
func (b *bench) refill(ctx context.Context, lost, limit int) error {
	return harness.Wait(ctx, time.Duration(min(lost, limit))*time.Minute/time.Duration(limit))
}

// unhurried are arrivals of the whole burst that the limit admits: as fast as the first time if it bears that.
func (b *bench) unhurried(limit int) []time.Duration {
	over := b.burstIn
	if missing := len(b.payments) - limit; missing > 0 {
		over = max(over, time.Duration(missing+2)*time.Minute/time.Duration(limit))
	}
	return evenly(len(b.payments), over)
}

// comeAgain is when the sender comes again with what the limit refused: each notice the same time after its own
// refusal. What of that time has passed since the burst has passed.
func comeAgain(first phase, patience time.Duration) ([]payment, []time.Duration) {
	var refused []sent
	for _, s := range first.sent {
		if s.status == http.StatusTooManyRequests {
			refused = append(refused, s)
		}
	}
	slices.SortFunc(refused, func(a, b sent) int { return int(a.ended() - b.ended()) })
	list, at := make([]payment, len(refused)), make([]time.Duration, len(refused))
	for i, s := range refused {
		list[i], at[i] = s.payment, max(0, s.ended()+patience-first.wall)
	}
	return list, at
}

func (s burst) claims(r *result, o options) {
	for _, p := range []phase{s.first, s.again, s.twice} {
		keepPhase(r, p)
	}
	n, admitted := o.burst, s.first.statuses()[http.StatusOK]
	refused := s.first.statuses()[http.StatusTooManyRequests]
	r.Claim(admitted+refused == n && abs(admitted-s.predicted) <= 1,
		"at %d a minute the bucket admits %d of %d, give or take one: %s", s.limit, s.predicted, n, s.first.answers())
	r.Claim(s.first.outcomes(row.applied) == admitted, "at %d a minute everything admitted is applied", s.limit)
	r.Claim(s.again.outcomes(row.applied) == refused, "at %d a minute all %d refused are applied when they come again: %s",
		s.limit, refused, s.again.answers())
	r.Claim(s.twice.outcomes(duplicate) == n && s.twice.asked == 0,
		"at %d a minute the whole burst again is %d duplicates and not one question (%d and %d)", s.limit, n,
		s.twice.outcomes(duplicate), s.twice.asked)
	claimBooks(r, fmt.Sprintf("at %d a minute", s.limit), s.end, 0)
}

func abs(n int) int { return max(n, -n) }

// burstLine is one figure of a burst, and what they had for it with either limit.
type burstLine struct {
	name         string
	small, large string
	of           func(burst) string
}

func burstLines() []burstLine {
	limited := func(s burst) []time.Duration {
		var times []time.Duration
		for _, one := range s.first.sent {
			if one.status == http.StatusTooManyRequests {
				times = append(times, one.took)
			}
		}
		return times
	}
	return []burstLine{
		{"notices", "200 over 30s", "200 over 30s", func(s burst) string { return fmt.Sprintf("%d over %s", len(s.first.sent), s.first.over()) }},
		{"admitted, predicted", "150", "", func(s burst) string { return fmt.Sprint(s.predicted) }},
		{"answers", "149 × 200, 51 × 429", "200 × 200", func(s burst) string { return s.first.answers() }},
		{"time of a refusal", "9 ms", "", func(s burst) string {
			if len(limited(s)) == 0 {
				return "none"
			}
			return report.SpreadOf(limited(s)).String()
		}},
		{"under way at once", "3", "5", func(s burst) string { return fmt.Sprint(s.first.overlap) }},
		{"time of what was applied", "max 445 ms", "max 658 ms", func(s burst) string { return report.SpreadOf(s.first.whole(row.applied)).String() }},
		{"refused notices once more", "51 applied, 1–3 minutes late", "", func(s burst) string {
			if s.again.wanted == 0 {
				return "none"
			}
			return fmt.Sprintf("%d applied", s.again.outcomes(row.applied))
		}},
		{"the whole burst again", "", "200 duplicates", func(s burst) string {
			return fmt.Sprintf("%d duplicates, %d questions", s.twice.outcomes(duplicate), s.twice.asked)
		}},
		{"their time", "", "p50 17 ms, max 38 ms", func(s burst) string { return report.SpreadOf(s.twice.whole(duplicate)).String() }},
		{"identity in orders", "holds", "holds", func(s burst) string { return s.end.identity() }},
		{"testers' credits at the end", "as before", "as before", func(s burst) string { return s.end.creditsText() }},
	}
}
