package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// story is one seed while it is being played.
type story struct {
	*town

	seed    uint64
	rng     *rand.Rand
	people  *rand.Rand // who signs what, so that it changes nothing else
	late    *rand.Rand // what happens after the last day
	owners  *rand.Rand // for whose order the list has what, at the end
	opening time.Time
	lines   []string

	sales    []*sale
	foreign  int
	cancels  int
	spends   int
	plan     tosssim.DeliveryPlan
	sent     int // notices sent, copies included
	weather  []*weather
	killed   []point // today
	nightly  []point // and when the day is over
	claims   []*claim
	aged     map[string]bool // payments that were in doubt for too long
	expired  map[string]int  // orders seen expired, with the captures their payments had then
	unbooked map[string]bool // cancels that the books can never have
	signed   map[ledger.Day]signature
	returned map[string]bool // orders that were paid twice, and whose second payment was given back
	mends    []mend
	storm    bool
	checked  int64 // the newest closing run that was held against what the list had said

	days     int
	kills    int
	accepts  int
	signs    int
	edited   bool      // the books were edited behind everybody's back
	readAt   time.Time // when the gateway last answered with its list
	verdicts map[string]int
	cells    map[cell]int
	breaks   map[string]int // injected, by name
}

// sale is an order and a payment that its buyer brought back from the window.
type sale struct {
	order, key, customer string
	won, credits, spent  int64
	method               tosssim.Method
	fell                 time.Time // when its deposit last fell back
	second               bool      // of an order that is paid already
	spoilt               bool      // something about it was made to contradict itself: nobody touches it any more
}

// begin is where a story may begin: an ordinary week, the end of a month, of a year, of a February that has 29 days.
func begin(rng *rand.Rand) time.Time {
	days := []ledger.Day{"2026-04-15", "2026-06-29", "2026-12-30", "2028-02-27"}
	return days[rng.IntN(len(days))].Start()
}

// newStory sets up what one seed is played on.
func newStory(tb testing.TB, seed uint64) *story {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 0x6461657361))
	opening := begin(rng)
	s := &story{
		town: newTown(tb, opening, listing(rng)), seed: seed, rng: rng, opening: opening, aged: map[string]bool{},
		expired: map[string]int{}, unbooked: map[string]bool{}, verdicts: map[string]int{}, cells: map[cell]int{},
		breaks: map[string]int{}, signed: map[ledger.Day]signature{}, returned: map[string]bool{},
		people: rand.New(rand.NewPCG(seed, 0x7369676e)), late: rand.New(rand.NewPCG(seed, 0x6c617465)),
		owners: rand.New(rand.NewPCG(seed, 0x77686f7365)),
	}
	tb.Cleanup(func() {
		if tb.Failed() || *storyFlag {
			tb.Logf("the story of seed %d:\n%s", seed, strings.Join(s.lines, "\n"))
		}
	})
	s.front.quirks = quirks{voidKey: rng.IntN(3) == 0, voidAmount: rng.IntN(3) == 0, presentStatus: rng.IntN(3) == 0}
	s.tell("the list: %+v, a deposit that fell back: %s", s.front.quirks, s.listing.FallenRow)
	return s
}

// listing draws what nobody documents of the gateway's list: the sign of cancels, and how it shows a deposit that fell back.
func listing(rng *rand.Rand) tosssim.Config {
	ways := tosssim.FallenRows()
	return tosssim.Config{CancelRowSign: 1 - 2*rng.IntN(2), FallenRow: ways[rng.IntN(len(ways))]}
}

// play plays the story from the opening of the books to the end, and holds it against what must be true.
func (s *story) play() {
	s.Helper()
	s.before()
	for range 2 + s.rng.IntN(2) {
		s.day()
		if s.Failed() {
			return
		}
	}
	s.afterwards()
	s.quiesce()
	s.lastNight()
	s.judge(true)
	s.tamper()
}

// tell adds a line to the story.
func (s *story) tell(format string, args ...any) {
	s.lines = append(s.lines, s.clock.Now().In(ledger.Seoul()).Format("01-02 15:04:05 ")+fmt.Sprintf(format, args...))
}

// ctx outlives the test that a failure ends.
func (s *story) ctx() context.Context { return context.WithoutCancel(s.Context()) }

// day is one business day: things happen at random times, the last one second before midnight; the day is judged as soon
// as the list had its time.
func (s *story) day() {
	s.Helper()
	today := ledger.DayOf(s.clock.Now())
	s.tell("=== %s", today)
	s.killed = nil
	acts := s.agenda()
	left := today.End().Sub(s.clock.Now())
	for n, act := range acts {
		if n == 1 {
			s.gather()
		}
		s.pass(time.Duration(s.rng.Int64N(int64(2*left) / int64(len(acts)+2))).Truncate(time.Second))
		if today.End().Sub(s.clock.Now()) < 10*time.Minute {
			break
		}
		act()
	}
	if midnight := today.End().Add(-time.Second); midnight.After(s.clock.Now()) {
		s.pass(midnight.Sub(s.clock.Now()))
	}
	s.buy()
	s.dashboard(s.any(), 0)
	if len(s.nightly) > 0 {
		s.clock.Advance(25 * time.Minute) // nothing has closed the day yet
	}
	for _, at := range s.nightly {
		s.kill(at)
	}
	s.nightly = nil
	s.count()
	s.heal()
	s.pass(25 * time.Minute)
	s.days++
	s.judge(false)
	if s.rng.IntN(2) == 0 {
		s.accept()
	}
	s.sign()
}

// agenda draws what happens today, and in which order.
func (s *story) agenda() []func() {
	acts := make([]func(), 0, 20)
	for range 2 {
		at := points()[s.rng.IntN(len(points()))]
		if at == pointClosing || at == pointSeal {
			s.nightly = append(s.nightly, at)
			continue
		}
		acts = append(acts, func() { s.kill(at) })
	}
	for range s.rng.IntN(3) {
		b := breaks()[s.rng.IntN(len(breaks()))]
		acts = append(acts, func() { s.contradict(b) })
	}
	for range 9 + s.rng.IntN(4) {
		act := s.common()
		acts = append(acts, act)
	}
	s.rng.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
	return append([]func(){s.buy, s.buy}, acts...)
}

// pass lets time go by, and everything happen that the service and the gateway do by themselves: a tick soon, then
// whatever falls due at its own time, and a tick at the end.
func (s *story) pass(d time.Duration) {
	s.Helper()
	end := s.clock.Now().Add(d)
	if d > 5*time.Minute {
		s.clock.Advance(time.Minute)
		s.tick()
		if s.front.moving() { // a young row is seen to come and go
			s.clock.Advance(2 * time.Minute)
			s.tick()
		}
	}
	for range eventsMax {
		next, any := s.next()
		if !any || !next.Before(end) {
			break
		}
		if next.After(s.clock.Now()) {
			s.clock.Set(next)
		}
		s.sent += s.gateway.DeliverDue(s.ctx())
		s.sweep()
	}
	s.clock.Set(end)
	s.tick()
}

// eventsMax bounds what happens between two ticks.
const eventsMax = 60

// next is when a notice or a question falls due.
func (s *story) next() (next time.Time, any bool) {
	s.Helper()
	type due struct {
		At time.Time `db:"at"`
	}
	for _, d := range rowsOf[due](s.town, `SELECT min(due_at) AS at FROM work WHERE closed_at IS NULL AND kind <> 'parked' HAVING min(due_at) IS NOT NULL`) {
		next, any = d.At.Add(-time.Duration(s.skew.Load())).Add(time.Second).Truncate(time.Second), true
	}
	for _, n := range s.gateway.Notices() {
		if !n.Done && !n.Lost && (!any || n.NextAt.Before(next)) {
			next, any = n.NextAt, true
		}
	}
	return next, any
}

// tick does what the service's jobs do, and lets the gateway send what is due. What fails because the gateway does is
// done again by the next tick.
func (s *story) tick() {
	s.Helper()
	s.must(s.app.Tidy(s.ctx()))
	s.observe()
	s.sent += s.gateway.DeliverDue(s.ctx())
	read := s.front.reads()
	_ = s.app.ReadList(s.ctx())
	_ = s.app.RereadList(s.ctx())
	if s.front.reads() > read {
		s.readAt = s.clock.Now()
	}
	s.sweep()
	statement, err := s.app.Audit(s.ctx(), reconcile.Scope{Name: reconcile.ScopeRecent})
	s.must(err)
	s.verdicts[string(statement.Verdict)]++
	s.requireExplained("an audit of the last days", statement)
	if s.clock.Now().Sub(s.readAt) > listLag+2*time.Minute {
		s.requireUnsure(statement)
	}
	s.closeDays()
	s.must(s.app.Seal(s.ctx()))
	if s.Failed() {
		s.FailNow() // what follows says nothing more
	}
}

func (s *story) sweep() {
	s.Helper()
	s.observe()
	s.must(s.app.Sweep(s.ctx()))
}

// quiesce lets all trouble end and time pass: the sender's whole plan of redelivery, every last chance and watch.
func (s *story) quiesce() {
	s.Helper()
	s.tell("=== quiet")
	s.heal()
	s.finishAll()
	pauses := append([]time.Duration{45 * time.Second}, tosssim.RedeliverySchedule()...)
	pauses = append(pauses, time.Hour, 25*time.Hour, 25*time.Hour)
	for n, pause := range pauses {
		if s.rng.IntN(8) == 0 {
			s.accept()
		}
		if s.people.IntN(3) == 0 {
			s.sign()
		}
		switch n {
		case len(pauses) - 4: // the list of the last days is read again some more times
			s.putRight(false)
			s.pass(8 * time.Hour)
		case len(pauses) - 2: // what was owed for too long is known
			s.putRight(true)
		}
		s.pass(pause)
	}
}

// closeDays closes the days that are over.
func (s *story) closeDays() {
	s.Helper()
	s.must(s.app.CloseDays(s.ctx()))
	s.requireRead()
}
