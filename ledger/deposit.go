package ledger

import (
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// dueGrace lets the gateway notice by itself that an account's time is over.
	dueGrace = 5 * time.Minute
	// accountTerm is how long an account is taken to wait when the gateway does not say until when.
	accountTerm = 7 * 24 * time.Hour
	// accountWatchFor is how long after its time an account may go on waiting before that is overdue.
	accountWatchFor = 7 * 24 * time.Hour
	// fallenDueAfter is when a deposit that was taken back is looked at again, in case that was wrong.
	fallenDueAfter = 15 * time.Minute
	// watchDueAfter is when a deposit is first looked at again.
	watchDueAfter = 3 * time.Minute
)

// reasonOverdue is why a payment failed whose deposit never came: the gateway has no word for it.
const reasonOverdue = "DEPOSIT_OVERDUE"

// overdue reports whether the observation is of an account that still waits and takes no deposit any more.
func (o Observation) overdue() bool { return o.Evidence == EvidenceDead && !o.DueAt.IsZero() }

// watchFor is how long a deposit is watched.
const watchFor = 30 * 24 * time.Hour

// nextDepositLook is when a deposit is looked at again, false when it is looked at no more. It can fall back, and the
// notice of that can be lost. Most do within minutes. Nothing says after how long none can, and how the gateway's list
// shows it is not documented, so the looks grow rare and end after a month.
func nextDepositLook(capturedAt, now time.Time) (time.Time, bool) {
	const day = 24 * time.Hour
	return nextLook(capturedAt, now, watchDueAfter, 10*time.Minute, time.Hour, 6*time.Hour, day, 2*day, 4*day, 8*day, 16*day, watchFor)
}

// nextCloseLook is when an account is looked at again of whose deposit the gateway's witnesses disagree since an instant:
// the copy that answered may be one that is behind. False when none can be behind for so long.
func nextCloseLook(since, now time.Time) (time.Time, bool) {
	return nextLook(since, now, fallbackConfirmAfter+time.Second, 2*time.Minute, 5*time.Minute, 10*time.Minute, 20*time.Minute,
		40*time.Minute, fallbackAloneAfter+time.Second)
}

// nextDoubtLook is when an account is looked at again that was first seen at an instant to contradict our books of its
// deposit: often enough that one copy of the gateway's that is behind does not answer each time.
func nextDoubtLook(first, now time.Time) time.Time {
	at, any := nextCloseLook(first, now)
	if !any {
		at = now.Add(10 * time.Minute)
	}
	return at
}

// nextLook is the first of some ages that is still to come.
func nextLook(since, now time.Time, ages ...time.Duration) (time.Time, bool) {
	for _, age := range ages {
		if at := since.Add(age); at.After(now) {
			return at, true
		}
	}
	return time.Time{}, false
}

// fallShownAt is since when more than the payment object says that the payment's last deposit fell back, by the newest that
// does; NULL when nothing does. The gateway's list has something without money for the payment that is later than the
// deposit, or shows the deposit's own row without money or no more; or a notice of the gateway's that bore the payment's
// secret was written after the deposit. None of them can be from before the deposit, whose time has whole seconds. One that
// was booked again is as old as the first of its key.
const fallShownAt = `(
			SELECT GREATEST(
				(SELECT max(CASE WHEN g.kind = 'none' THEN g.first_seen_at ELSE GREATEST(g.waiting_since, g.missing_since) END)
					FROM mirror g WHERE g.payment_key = p.payment_key
						AND ((g.kind = 'none' AND g.at > c.at)
							OR (g.transaction_key = c.transaction_key AND (g.kind = 'none' OR g.waiting_since IS NOT NULL OR g.missing_since IS NOT NULL)))),
				(SELECT max(w.told_at) FROM work w WHERE w.payment_key = p.payment_key AND w.closed_at IS NULL AND w.told_at >= c.at + interval '1 second'),
				(SELECT max(w.told_at) FROM work w WHERE w.payment_key = p.payment_key AND w.closed_at IS NOT NULL AND w.told_at >= c.at + interval '1 second'))
			FROM (SELECT k.transaction_key, COALESCE((SELECT min(f.captured_at) FROM captures f
					WHERE f.payment_key = k.payment_key AND f.transaction_key = k.transaction_key), k.captured_at) AS at
				FROM captures k WHERE k.payment_key = p.payment_key ORDER BY k.number DESC LIMIT 1) c)`

// doubted reports whether the last look at the payment contradicted our books of its deposit.
func (p Payment) doubted() bool { return !p.WaitingSeenAt.IsZero() || !p.MoneySeenAt.IsZero() }

// NextLook is when a virtual account is to be looked at again for its deposit's sake; false when it need not be. One that
// waits for a deposit is another matter.
func (p Payment) NextLook(now time.Time) (time.Time, bool) {
	current, paid := p.capture()
	switch {
	case !p.WaitingSeenAt.IsZero():
		return nextDoubtLook(p.WaitingSeenAt, now), true
	case !p.MoneySeenAt.IsZero():
		return nextDoubtLook(p.MoneySeenAt, now), true
	case paid && p.Status == StatusDone:
		at, any := nextDepositLook(current.CapturedAt, now)
		if again, shown := nextCloseLook(p.FallShownAt, now); shown && (!any || again.Before(at)) {
			return again, true
		}
		return at, any
	}
	return time.Time{}, false
}

// TimeOver is when to ask whether the time of an account that waits is over; zero when the answer does not say.
func (o Observation) TimeOver() time.Time {
	if o.Evidence != EvidenceWaiting || o.DueAt.IsZero() {
		return time.Time{}
	}
	return o.DueAt.Add(dueGrace)
}

// queueAccountWork sees to it that somebody asks when an account's time is over. The gateway sends no notice of that,
// and until it is known the account holds its order. The watch ends with the wait; a deposit's own watch, which is for
// a deposit that falls back, is opened after it, and ends with the deposit.
func (e *effects) queueAccountWork(b *pgx.Batch, o Observation, now time.Time) {
	waited, waits := e.before.Status == StatusWaitingForDeposit, e.after.Status == StatusWaitingForDeposit
	if waited && !waits || e.decision.Reversed != nil && e.decision.Capture == nil {
		QueueClose(b, e.after.Key, []WorkKind{WorkDepositWatch}, nil, ClosedSettled, now)
	}
	if e.decision.Reversed != nil {
		// A cancel of ours that is in doubt may have been refused because the money was gone.
		b.Queue(`
			UPDATE work SET due_at = LEAST(due_at, @now)
			WHERE payment_key = @payment_key AND kind = 'cancel_request' AND closed_at IS NULL`,
			pgx.StrictNamedArgs{"payment_key": e.after.Key, "now": now})
	}
	if !waits || waited {
		return
	}
	due := o.DueAt
	if due.IsZero() {
		due = now.Add(accountTerm)
	}
	if due.Before(now) {
		due = now
	}
	account := Work{
		Kind: WorkDepositWatch, PaymentKey: e.after.Key, OrderID: e.after.OrderID, AtRisk: e.after.Amount,
		DueAt: due.Add(dueGrace), Deadline: due.Add(accountWatchFor),
	}
	if again := now.Add(fallenDueAfter); e.decision.Reversed != nil && again.Before(account.DueAt) {
		account.DueAt = again
	}
	QueueWork(b, account, now)
}

// queueDepositWork keeps asking about a deposit, and soon about one that a look contradicted.
func (e *effects) queueDepositWork(b *pgx.Batch, now time.Time) {
	p := e.after
	watch := Work{Kind: WorkDepositWatch, PaymentKey: p.Key, OrderID: p.OrderID, AtRisk: p.Amount}
	switch c := e.decision.Capture; {
	case p.VirtualAccount && c != nil && !e.settled:
		watch.DueAt, watch.Deadline = now.Add(watchDueAfter), now.Add(watchFor)
		if at, any := nextDepositLook(c.CapturedAt, now); any && at.After(watch.DueAt) {
			watch.DueAt = at
		}
		QueueWork(b, watch, now)
	case p.doubted() && !e.before.doubted():
		watch.DueAt, watch.Deadline = now.Add(fallbackConfirmAfter+time.Second), now.Add(fallbackAloneAfter)
		QueueWork(b, watch, now)
	}
}
