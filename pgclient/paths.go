package pgclient

import (
	"cmp"
	"fmt"
	"time"

	"daesa/ledger"
)

// PathName names one way to the gateway: its own cap, budget, connections and metrics.
type PathName string

// The paths.
const (
	PathConfirm PathName = "confirm"
	PathCancel  PathName = "cancel"
	PathQuery   PathName = "query"
	PathRecover PathName = "recover"
	PathList    PathName = "list"
)

// PathNames lists every path.
func PathNames() []PathName {
	return []PathName{PathConfirm, PathCancel, PathQuery, PathRecover, PathList}
}

// Path holds the limits of one path. A zero field takes the declared constant.
type Path struct {
	Cap        int           // calls at once, over all replicas
	Wait       time.Duration // for a slot; negative = none
	Patience   time.Duration // for an open breaker to let the call through, out of the call's own time; negative = none
	Comeback   time.Duration // for breaker and slot together, where the breaker has just closed, out of the call's own time; negative = none
	Connect    time.Duration // to open a connection
	Attempt    time.Duration // one attempt, connection to last byte
	Attempts   int
	BackoffMin time.Duration // before the second attempt, with jitter up to BackoffMax
	BackoffMax time.Duration
	Total      time.Duration // the whole call: wait, attempts and back-off
	BodyMax    int64         // bytes of one answer
}

// Paths holds the limits of every path.
type Paths struct {
	Confirm, Cancel, Query, Recover, List Path
}

const (
	paymentBodyMax = 1 << 20  // a payment object is some 3 KB; with hundreds of cancels, 100 KB
	listBodyMax    = 16 << 20 // 5,000 rows of some 600 bytes are 3 MB
)

// declaredPaths are the limits, each with its evidence. They are checked at start, defaults included.
func declaredPaths() Paths {
	return Paths{
		// Cap 40: at 30 approvals a second and a gateway p99 of 1 s, 30 are under way; a third to spare, and
		// most of a 100-request budget stays with everybody else. No wait: over the cap a customer is told at
		// once, before anything is sent. 15 s: a shorter limit turns slow approvals into unknown ones.
		Confirm: Path{
			Cap: 40, Wait: -1, Connect: 2 * time.Second, Attempt: 15 * time.Second, Attempts: 2,
			BackoffMin: 200 * time.Millisecond, BackoffMax: time.Second, Total: 31 * time.Second, BodyMax: paymentBodyMax,
		},
		// Cap 10: cancels come from people and back offices, a few a second at most, and can wait a moment.
		Cancel: Path{
			Cap: 10, Wait: time.Second, Connect: 2 * time.Second, Attempt: 15 * time.Second, Attempts: 2,
			BackoffMin: 200 * time.Millisecond, BackoffMax: time.Second, Total: 32 * time.Second, BodyMax: paymentBodyMax,
		},
		// The sender of a notice waits 10 s and comes back by itself, so one attempt of 3 s is all it gets: with
		// a silent gateway 100 notices a minute then overlap by 5 instead of 25. Cap 60: redeliveries come in
		// bursts of some 200 within seconds. Patience 1.5 s: an outage ends in the middle of a burst, and what meets
		// the breaker's second of rest then would be back minutes later; waiting costs a goroutine, and leaves 1.5 s.
		// Comeback 2 s: 150 that waited together take three turns in 60 slots, of 300 ms each with a healthy gateway.
		Query: Path{
			Cap: 60, Wait: -1, Patience: 1500 * time.Millisecond, Comeback: 2 * time.Second, Connect: 2 * time.Second,
			Attempt: 3 * time.Second, Attempts: 1, Total: 3 * time.Second, BodyMax: paymentBodyMax,
		},
		// Recovery has time but must never crowd out what customers wait for: 8 at once, and work comes again.
		Recover: Path{
			Cap: 8, Wait: 2 * time.Second, Connect: 3 * time.Second, Attempt: 10 * time.Second, Attempts: 1,
			Total: 12 * time.Second, BodyMax: paymentBodyMax,
		},
		// The gateway documents up to 60 s for a page of the list and refuses an abnormal number of calls.
		List: Path{
			Cap: 1, Wait: -1, Connect: 5 * time.Second, Attempt: 65 * time.Second, Attempts: 2,
			BackoffMin: 2 * time.Second, BackoffMax: 10 * time.Second, Total: 140 * time.Second, BodyMax: listBodyMax,
		},
	}
}

// or fills zero fields from the declared path. What follows from a limit on the attempt that is not the declared one
// goes along with it: a connection is part of an attempt, and the total is that of its parts.
func (p Path) or(d Path) Path {
	full := Path{
		Cap: cmp.Or(p.Cap, d.Cap), Wait: cmp.Or(p.Wait, d.Wait), Connect: cmp.Or(p.Connect, d.Connect),
		Attempt: cmp.Or(p.Attempt, d.Attempt), Attempts: cmp.Or(p.Attempts, d.Attempts),
		BackoffMin: cmp.Or(p.BackoffMin, d.BackoffMin), BackoffMax: cmp.Or(p.BackoffMax, d.BackoffMax),
		Total: cmp.Or(p.Total, d.Total), BodyMax: cmp.Or(p.BodyMax, d.BodyMax),
	}
	if p.Attempt > 0 && p.Connect == 0 {
		full.Connect = min(full.Connect, full.Attempt)
	}
	if p.Attempt > 0 && p.Total == 0 {
		full.Total = full.parts()
	}
	full.Patience = cmp.Or(p.Patience, min(d.Patience, full.Total/2))
	full.Comeback = cmp.Or(p.Comeback, min(d.Comeback, full.Total*2/3))
	return full
}

// DeclaredCap is the cap of a path where nobody set another, over all instances; 0 for a path that there is not.
func DeclaredCap(name PathName) int { return declaredPaths().named(name).Cap }

// or fills zero fields of every path.
func (p Paths) or(d Paths) Paths {
	return Paths{
		Confirm: p.Confirm.or(d.Confirm), Cancel: p.Cancel.or(d.Cancel), Query: p.Query.or(d.Query),
		Recover: p.Recover.or(d.Recover), List: p.List.or(d.List),
	}
}

func (p Paths) named(name PathName) Path {
	switch name {
	case PathConfirm:
		return p.Confirm
	case PathCancel:
		return p.Cancel
	case PathQuery:
		return p.Query
	case PathRecover:
		return p.Recover
	case PathList:
		return p.List
	}
	return Path{}
}

// share is the part of the cap that is ours when several instances run.
func (p Path) share(replicas int) int { return max(1, p.Cap/replicas) }

// lookUpsAtOnce is how many of recovery's slots those may hold together who wait for the answer: three quarters.
func lookUpsAtOnce(slots int) int { return max(1, slots*3/4) }

// validate checks that the parts fit the whole: a budget that its own parts overrun would cut the second attempt
// short, and an attempt cut short is an outcome nobody knows.
func (p Path) validate(name PathName) error {
	switch {
	case p.Cap < 1:
		return fmt.Errorf("the %s path needs a cap of at least 1", name)
	case p.Attempts < 1 || p.Attempts > 2:
		return fmt.Errorf("the %s path may make 1 or 2 attempts, not %d", name, p.Attempts)
	case p.Attempt <= 0 || p.Connect <= 0 || p.BodyMax <= 0:
		return fmt.Errorf("the %s path needs positive time and size limits", name)
	case p.Connect > p.Attempt:
		return fmt.Errorf("the %s path cannot spend %s connecting within an attempt of %s", name, p.Connect, p.Attempt)
	case p.Patience > p.Total/2:
		return fmt.Errorf("the %s path cannot wait %s for its breaker within a total of %s: half of it is for the call", name, p.Patience, p.Total)
	case p.Comeback > p.Total*2/3:
		return fmt.Errorf("the %s path cannot wait %s for breaker and slot within a total of %s: a third of it is for the call", name, p.Comeback, p.Total)
	case p.BackoffMin < 0 || p.BackoffMin > p.BackoffMax:
		return fmt.Errorf("the %s path needs a back-off between 0 and its maximum", name)
	case (name == PathConfirm || name == PathCancel) && commitMax+p.Total >= ledger.ConfirmBudget:
		return fmt.Errorf("the %s path may take %s, but after %s the books let the same call be sent again",
			name, p.Total, ledger.ConfirmBudget-commitMax)
	case p.parts() > p.Total:
		return fmt.Errorf("the %s path needs %s for its wait, attempts and back-off, but its total is %s", name, p.parts(), p.Total)
	}
	return nil
}

// commitMax is the longest that an intent takes to commit, before its call is sent.
const commitMax = 10 * time.Second

// parts is the longest the path can take by its parts.
func (p Path) parts() time.Duration {
	total := max(0, p.Wait) + p.Attempt
	for range p.Attempts - 1 {
		total += p.BackoffMax + p.Attempt
	}
	return total
}

// call is what is left of the budget once a slot is held.
func (p Path) call() time.Duration { return p.Total - max(0, p.Wait) }
