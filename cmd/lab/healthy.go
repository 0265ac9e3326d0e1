package main

import (
	"context"
	"fmt"
	"net/http"

	"daesa/cmd/lab/report"
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
	r.Columns = []string{"", "they", "we"}
	r.Row("notices", "100 over 1m0s", fmt.Sprintf("%d over %s", len(first.sent), first.over()))
	r.Row("the gateway takes", "300 ms", report.Short(l.healthy))
	r.Row("answers", "100 × 200", first.answers())
	r.Row("whole time", "p95 478 ms, max 597 ms", report.SpreadOf(first.whole(row.applied)).String())
	r.Row("our own, on top of the gateway's", "60–300 ms", report.SpreadOf(first.beyond()).String())
	r.Row("our own, beside our question as we time it", "", report.SpreadOf(first.share()).String())
	r.Row("under way at once", "", fmt.Sprintf("%d (rate × time: %.1f)", first.overlap, first.littles()))
	r.Row("database connections per waiting notice", "0", fmt.Sprintf("%.2f", first.connectionsPerNotice()))
	r.Row("the same again", "100 duplicates", fmt.Sprintf("%d duplicates, %d questions", again.outcomes(duplicate), again.asked))
	r.Row("their time", "", report.SpreadOf(again.whole(duplicate)).String())
	r.Row("identity in orders", "holds", end.identity())
	r.Row("testers' credits at the end", "as before", end.creditsText())
	keepPhase(&r, first)
	keepPhase(&r, again)
	n := l.payments
	r.Claim(first.statuses()[http.StatusOK] == n && first.outcomes(row.applied) == n, "all %d are applied: %s", n, first.answers())
	r.Claim(first.asked == n, "the gateway was asked once for each notice")
	r.Claim(again.outcomes(duplicate) == n && again.asked == 0,
		"the same again is %d duplicates and not one question (%d and %d)", n, again.outcomes(duplicate), again.asked)
	claimBooks(&r, "at the end", end, 0)
	return r, nil
}
