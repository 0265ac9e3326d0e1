package pgclient

import (
	"cmp"
	"time"

	"daesa/internal/guard"
)

// BreakerName names a circuit breaker.
type BreakerName string

// The breakers. Approvals and cancels share one; the list has none.
const (
	BreakerMoney   BreakerName = "money"
	BreakerQuery   BreakerName = "query"
	BreakerRecover BreakerName = "recover"
)

// BreakerNames lists every breaker.
func BreakerNames() []BreakerName { return []BreakerName{BreakerMoney, BreakerQuery, BreakerRecover} }

// BreakerLimits sets when a breaker opens and how it closes. A zero field takes the declared constant.
type BreakerLimits = guard.BreakerLimits

// Breakers holds the limits of every breaker.
type Breakers struct {
	Money, Query, Recover BreakerLimits
}

// declaredBreakers are the limits, with their evidence: ten calls pass within a second at peak, so an outage shows
// soon and chance does not; refused cards do not count, so half failing is the gateway, not the customers. The
// query breaker opens for 1 s only, and a question waits for it to close (see Path.Patience), so that the burst of
// redeliveries right after an outage is applied and not refused again.
func declaredBreakers() Breakers {
	declared := BreakerLimits{Window: 10, MinCalls: 10, FailurePercent: 50, OpenFor: 10 * time.Second, Trials: 3}
	query := declared
	query.OpenFor = time.Second
	return Breakers{Money: declared, Query: query, Recover: declared}
}

// NeverOpen are breakers that stay closed whatever comes of the calls.
func NeverOpen() Breakers {
	const never = 1 << 30
	shut := BreakerLimits{Window: never, MinCalls: never}
	return Breakers{Money: shut, Query: shut, Recover: shut}
}

func (b Breakers) or(d Breakers) Breakers {
	return Breakers{Money: b.Money.Or(d.Money), Query: b.Query.Or(d.Query), Recover: b.Recover.Or(d.Recover)}
}

func (b Breakers) validate() error {
	return cmp.Or(
		b.Money.Validate(string(BreakerMoney)), b.Query.Validate(string(BreakerQuery)),
		b.Recover.Validate(string(BreakerRecover)))
}
