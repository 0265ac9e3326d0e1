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
)

// reasonOverdue is why a payment failed whose deposit never came: the gateway has no word for it.
const reasonOverdue = "DEPOSIT_OVERDUE"

// overdue reports whether the observation is of an account that still waits and takes no deposit any more.
func (o Observation) overdue() bool { return o.Evidence == EvidenceDead && !o.DueAt.IsZero() }

// queueAccountWork sees to it that somebody asks when an account's time is over. The gateway sends no notice of that,
// and until it is known the account holds its order. The watch ends with the wait; a deposit's own watch, which is for
// a deposit that falls back, is opened after it.
func (e *effects) queueAccountWork(b *pgx.Batch, o Observation, now time.Time) {
	waited, waits := e.before.Status == StatusWaitingForDeposit, e.after.Status == StatusWaitingForDeposit
	switch {
	case waited && !waits:
		QueueClose(b, e.after.Key, []WorkKind{WorkDepositWatch}, nil, ClosedSettled, now)
	case waits && !waited:
		due := o.DueAt
		if due.IsZero() {
			due = now.Add(accountTerm)
		}
		if due.Before(now) {
			due = now
		}
		QueueWork(b, Work{
			Kind: WorkDepositWatch, PaymentKey: e.after.Key, OrderID: e.after.OrderID, AtRisk: e.after.Amount,
			DueAt: due.Add(dueGrace), Deadline: due.Add(accountWatchFor),
		}, now)
	}
}
