package main

import (
	"context"
	"fmt"
	"net/http"

	"daesa/pgclient/tosssim"
)

// healthyGateway measures what an answer takes us beside a gateway that takes its usual time.
func healthyGateway(ctx context.Context, l *lab) (r result, err error) {
	b, err := l.bench(ctx, "healthy", l.payments, quiet(l.budget))
	if err != nil {
		return r, err
	}
	defer func() { err = firstOf(err, b.close()) }()
	b.behave(tosssim.Delay, l.healthy)
	first, err := b.deliver(ctx, "healthy first", b.payments, evenly(len(b.payments), l.over), l.healthy)
	if err != nil {
		return r, err
	}
	again, err := b.deliver(ctx, "healthy again", b.payments, evenly(len(b.payments), l.over/2), l.healthy)
	if err != nil {
		return r, err
	}
	end, err := b.books(ctx)
	if err != nil {
		return r, err
	}
	r.columns = []string{"", "they", "we"}
	r.row("notices", "100 over 1m0s", fmt.Sprintf("%d over %s", len(first.sent), first.over()))
	r.row("the gateway takes", "300 ms", short(l.healthy))
	r.row("answers", "100 × 200", first.answers())
	r.row("whole time", "p95 478 ms, max 597 ms", spreadOf(first.whole(row.applied)).String())
	r.row("our own, on top of the gateway's", "60–300 ms", spreadOf(first.beyond()).String())
	r.row("our own, beside our question as we time it", "", spreadOf(first.share()).String())
	r.row("under way at once", "", fmt.Sprintf("%d (rate × time: %.1f)", first.overlap, first.littles()))
	r.row("database connections per waiting notice", "0", fmt.Sprintf("%.2f", first.connectionsPerNotice()))
	r.row("the same again", "100 duplicates", fmt.Sprintf("%d duplicates, %d questions", again.outcomes(duplicate), again.asked))
	r.row("their time", "", spreadOf(again.whole(duplicate)).String())
	r.row("identity in orders", "holds", end.identity())
	r.row("testers' credits at the end", "as before", end.creditsText())
	r.phase(first)
	r.phase(again)
	n := l.payments
	r.claim(first.statuses()[http.StatusOK] == n && first.outcomes(row.applied) == n, "all %d are applied: %s", n, first.answers())
	r.claim(first.asked == n, "the gateway was asked once for each notice")
	r.claim(again.outcomes(duplicate) == n && again.asked == 0,
		"the same again is %d duplicates and not one question (%d and %d)", n, again.outcomes(duplicate), again.asked)
	r.books("at the end", end, 0)
	return r, nil
}
