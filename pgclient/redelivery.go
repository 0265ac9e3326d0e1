package pgclient

import "time"

// RedeliverySchedule is how long after each failed delivery the gateway sends a notice again: seven times, growing
// fourfold, 3 days 19 hours and 1 minute in all.
func RedeliverySchedule() []time.Duration {
	return []time.Duration{
		1 * time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute,
		256 * time.Minute, 1024 * time.Minute, 4096 * time.Minute,
	}
}

// lastChanceGrace is for a sender that runs late.
const lastChanceGrace = 15 * time.Minute

// LastChance is when a notice that first failed then will not come again by itself.
func LastChance(firstFailure time.Time) time.Time {
	end := firstFailure
	for _, wait := range RedeliverySchedule() {
		end = end.Add(wait)
	}
	return end.Add(lastChanceGrace)
}
