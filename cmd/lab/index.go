package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"daesa/cmd/lab/capacity"
	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/overload"
	"daesa/cmd/lab/report"
)

// experiments lists all there are.
func experiments() []experiment { return slices.Concat(within(), loaded(), measured()) }

// within are those that run the service within this process.
func within() []experiment {
	return []experiment{
		{
			"silent-pg", "0001-silent-gateway", "the gateway never answers while notices come",
			"Every notice is answered 502 within our own budget, none past 10 s; no connection to the database is held " +
				"meanwhile; one redelivery applies all, and one more applies none and asks nobody.",
			silentGateway, false,
		},
		{
			"slow-pg", "0002-slow-gateway", "the gateway answers too late for us",
			"A gateway slower than our question's budget is a silent one: every notice 502, nothing applied until it is fast again.",
			slowGateway, false,
		},
		{
			"healthy-pg", "0003-healthy-gateway", "the gateway answers: what is our own share of the time?",
			"Everything is applied at once, and beyond the gateway's own time an answer takes us a few milliseconds.",
			healthyGateway, false,
		},
		{
			"redelivery", "0004-redelivery-burst", "a burst of redeliveries against a limit per minute",
			"A token bucket admits its size and what refills during the burst; what it refuses is applied when it comes " +
				"again; a limit sized for the burst refuses none of it.",
			redeliveryBurst, false,
		},
		{
			"audit-scale", "0006-audit-scale", "what an audit and a verification cost as the history grows",
			"A run of the audit costs what changed since the last, however long the history; a verification reads the " +
				"books nearly as fast as PostgreSQL hands them out, in constant memory.",
			auditScale, true,
		},
	}
}

// loaded are those that put load on the real programs, in processes of their own. 0015 is kept for the store system that
// is asked before money moves.
func loaded() []experiment {
	return []experiment{
		{
			"brownout", "0007-brownout", "the gateway becomes slow while buyers pay and servers look orders up",
			"A cap on approvals under way refuses 1 − cap ÷ (rate × latency) of them and nothing else, and whatever the " +
				"gateway takes, look-ups stay as fast as before.",
			underLoad(overload.Brownout), false,
		},
		{
			"webhook-brownout", "0008-webhook-brownout", "the gateway becomes slow while notices come",
			"Payments that wait for the gateway keep no notice waiting: each is stored and answered in time, and a cancel whose " +
				"question fails is refused at once, to come again.",
			underLoad(overload.WebhookBrownout), false,
		},
		{
			"timeout-debt", "0009-timeout-debt", "the limit on an approval is shorter than the gateway takes",
			"A shorter limit buys availability with doubt: every payment that was sent must be asked about afterwards.",
			underLoad(overload.TimeoutDebt), false,
		},
		{
			"breaker", "0010-breaker", "the gateway times out throughout while buyers pay and servers look orders up",
			"Look-ups stay as fast as before, the first seconds of the outage included, in which no breaker can have opened yet.",
			underLoad(overload.Breaker), false,
		},
		{
			"read-flood", "0011-read-flood", "far more look-ups than can be answered, beside payments and notices",
			"Look-ups are what is shed: payments and notices keep their places and their time.",
			underLoad(overload.ReadFlood), false,
		},
		{
			"forged-storm", "0012-forged-storm", "made-up cancel notices of payments that exist, from many addresses",
			"They cost the gateway no more questions than are allowed; recovery, payments and real notices go on.",
			underLoad(overload.ForgedStorm), false,
		},
		{
			"goroutines", "0013-goroutines", "the gateway misbehaves in every way, one after the other",
			"No fault leaves a goroutine, a socket or memory behind.",
			underLoad(overload.Goroutines), false,
		},
		{
			"burst", "0014-burst", "a burst of redeliveries against a limit that several instances share",
			"One bucket admits its size and what refills, however many instances there are; what it refuses is applied when it comes again.",
			underLoad(overload.Burst), false,
		},
		{
			"store-knee", "0015-store-knee", "more orders than the store that takes them on bears",
			"A cap below the store's knee keeps its round trip as it is off the peak, nobody waits for it past 800 ms, and there are as " +
				"many goroutines as rate × time explains.",
			underLoad(overload.StoreKnee), false,
		},
		{
			"comeback", "0017-comeback", "the service was down, and all that it missed comes at once",
			"Buyers are served as before, what is too much is refused at once, and each cancel is in the books once, asked about a few times at most.",
			underLoad(overload.Comeback), false,
		},
	}
}

// measured are those that measure what the real programs cost.
func measured() []experiment {
	return []experiment{
		{
			"limit", "0016-limit", "how many cancels a second, and what each costs",
			"The service applies at least 0.6 of the cancels that pgbench does with the very same statements one by one on the " +
				"same server, the question to the gateway included; what leads to nothing costs little more than being let in.",
			underLoad(capacity.Limit), false,
		},
	}
}

// underLoad is an experiment on the real programs, in processes of their own.
func underLoad(run func(context.Context, *harness.Lab) (report.Result, error)) func(context.Context, *lab) (result, error) {
	return func(ctx context.Context, l *lab) (r result, err error) {
		folder, err := os.MkdirTemp("", "daesa-lab-")
		if err != nil {
			return r, fmt.Errorf("make a folder for what is printed: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		programs, err := l.programs()
		if err != nil {
			return r, err
		}
		return run(ctx, &harness.Lab{Programs: programs, Fresh: l.fresh, Drop: l.drop, Folder: folder, Quick: l.quick, Say: l.say})
	}
}

// buildOnce builds the programs into a folder when they are first asked for.
func buildOnce(ctx context.Context, folder string) func() (harness.Programs, error) {
	return sync.OnceValues(func() (harness.Programs, error) { return harness.Build(ctx, folder) })
}
