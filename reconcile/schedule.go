package reconcile

import (
	"time"

	"daesa/ledger"
)

// overdueGrace is for a sweeper that runs late: a cancel still open this long after its last chance is a mismatch.
const overdueGrace = 15 * time.Minute

// nextDue says when a row of work is asked about again after the given number of questions. Each kind has its steps;
// the last one repeats for ever, because only evidence ends work. No step jumps over the deadline: at a cancel's last
// chance the gateway is always asked. Without eager, cancels that a notice may still bring wait for that moment alone.
func nextDue(kind ledger.WorkKind, attempts int, now, deadline time.Time, eager bool) time.Time {
	if !eager && awaitsNotice(kind) && now.Before(deadline) {
		return deadline
	}
	due := now.Add(stepAfter(stepsOf(kind), attempts))
	if now.Before(deadline) && due.After(deadline) && kind != ledger.WorkConfirmUnknown && kind != ledger.WorkCancelRequest {
		return deadline
	}
	return due
}

// nextAfterDenial is nextDue for a claim whose cancel the gateway does not show, after so many questions about its payment.
// A cancel that is real comes up by itself: in the gateway's list, which every poll reads, and by the sender's redeliveries.
// So the claim costs no more questions than the sender makes in all, and the last chance is one of them.
func nextAfterDenial(attempts int, now, deadline time.Time, eager bool) time.Time {
	if !eager && now.Before(deadline) {
		return deadline
	}
	due := now.Add(stepAfter([]time.Duration{time.Hour, 6 * time.Hour, day}, attempts))
	if now.Before(deadline) && due.After(deadline) {
		return deadline
	}
	return due
}

// stepAfter is the wait after the given number of questions.
func stepAfter(steps []time.Duration, attempts int) time.Duration {
	return steps[min(max(attempts, 1), len(steps))-1]
}

// awaitsNotice reports whether the gateway's own redeliveries may still settle the work.
func awaitsNotice(kind ledger.WorkKind) bool {
	return kind == ledger.WorkCancelClaimed || kind == ledger.WorkCancelListed
}

const (
	day    = 24 * time.Hour
	second = time.Second
)

// stepsOf lists the waits after the first, second, … question.
func stepsOf(kind ledger.WorkKind) []time.Duration {
	switch kind {
	case ledger.WorkConfirmUnknown:
		// The buyer waits: seconds first. From the second hour on a person looks too.
		return []time.Duration{
			3 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute,
			2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour,
			2 * time.Hour, 4 * time.Hour, 12 * time.Hour, day,
		}
	case ledger.WorkCancelClaimed:
		return []time.Duration{
			5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 80 * time.Minute, 3 * time.Hour, 6 * time.Hour,
		}
	case ledger.WorkCancelListed:
		return []time.Duration{
			time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
		}
	case ledger.WorkCancelInProgress:
		return []time.Duration{
			time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, time.Hour,
			time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day,
		}
	case ledger.WorkDepositWatch:
		// 3 minutes, 10 minutes, 1 hour and 6 hours after the deposit, then once more at the end.
		return []time.Duration{7 * time.Minute, 50 * time.Minute, 5 * time.Hour, day}
	case ledger.WorkCancelRequest:
		return []time.Duration{
			5 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
			30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day,
		}
	case ledger.WorkParked:
		return []time.Duration{day}
	}
	return []time.Duration{time.Hour}
}
