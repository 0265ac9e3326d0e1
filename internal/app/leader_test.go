package app_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/app"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// pair is two running instances over one database and one gateway. The first leads.
type pair struct {
	*world

	first, second *instance
	wire          *line // of the first
}

// newPair starts the first alone, so that it leads and does what is held up for it, and the second once that is under
// way.
func newPair(t *testing.T, hold func(w *world), underWay func(w *world) bool) *pair {
	t.Helper()
	p := &pair{world: newWorld(t, hasty, listOften), wire: newLine()}
	p.app.stop()
	hold(p.world)
	p.first = p.run(p.wire.under, func(c *app.Config) {
		c.DialLimits = p.wire.Dial
		c.DatabaseURL = named(t, c.DatabaseURL, "first")
	})
	p.eventually("the first is in the middle of it", func() bool { return underWay(p.world) })
	p.second = p.run()
	p.app = p.second
	p.listen()
	return p
}

// named gives the sessions of who connects by address that name.
func named(tb testing.TB, address, name string) string {
	tb.Helper()
	named, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	query := named.Query()
	query.Set("application_name", name)
	named.RawQuery = query.Encode()
	return named.String()
}

func listOften(c *app.Config, _ *tosssim.Config) {
	c.ListEvery = 10 * time.Second
	c.Paths.List.Attempt, c.Paths.List.Total = 30*time.Second, 35*time.Second
}

// kill ends the first as a machine does that loses its power: it hears and says nothing any more. Time passes until the
// others may know: its leadership has run out, and its jobs count as lost.
func (p *pair) kill() {
	p.Helper()
	p.wire.Arm(0, breakage{Stays: true})
	p.eventually("the first has lost the database", func() bool {
		return p.number(`SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'first' AND wait_event_type IS DISTINCT FROM 'Lock'`) == 0 &&
			p.first.ready() == "503 database unreachable"
	})
	p.first.cutOff = true
	p.sim.Heal()
	p.first.stop()
	for _, sql := range []string{
		`UPDATE river.river_leader SET expires_at = now() - interval '1 second'`,
		`UPDATE river.river_job SET state = 'discarded', finalized_at = now() WHERE state = 'running' AND attempted_at < now() - interval '1 millisecond'`,
	} {
		_, err := p.db.Exec(p.Context(), sql)
		p.must(err)
	}
	p.clock.Advance(3 * time.Minute) // past every lease
}

// goesOn requires that the second does what the first left, and that everything was done exactly once.
func (p *pair) goesOn(kinds ...string) {
	p.Helper()
	for _, kind := range kinds {
		before := p.completed(kind)
		p.eventually("the second runs "+kind, func() bool { return p.completed(kind) > before })
	}
	p.second.stop()
	p.restart()
	p.quiesce()
	p.requireAgreed()
}

func (p *pair) completed(kind string) int64 {
	p.Helper()
	return p.number(`SELECT count(*) FROM river.river_job WHERE kind = $1 AND state = 'completed'`, kind)
}

// shopful sells some orders and cancels some in the dashboard, whose notices nobody delivers.
func shopful(w *world) (canceled int64) {
	for n := range 5 {
		key := w.sell(fmt.Sprintf("order-%d", n), 10_000)
		if n%2 == 0 {
			w.dashboard(key, 1_000)
			canceled += 1_000
		}
	}
	return canceled
}

// TestTwoInstances_TheLeaderDiesInAList: the read that was cut off proves nothing; the other instance reads the same
// window, and each cancel in it is asked about and booked once.
func TestTwoInstances_TheLeaderDiesInAList(t *testing.T) {
	t.Parallel()
	var canceled int64
	p := newPair(t, func(w *world) {
		w.app = w.start()
		canceled = shopful(w)
		w.app.stop()
		w.clock.Advance(time.Minute)
		w.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Hang, N: -1})
	}, func(w *world) bool {
		return w.sim.Count(tosssim.List) > 0 && w.number(`SELECT count(*) FROM list_runs WHERE result = 'running'`) == 1
	})
	p.kill()
	p.eventually("the second has read the list", func() bool { return p.number(`SELECT count(*) FROM list_covered`) == 1 })
	if got := p.text(`SELECT result FROM list_runs ORDER BY run_id LIMIT 1`); got == "complete" {
		t.Error("a read that was cut off counts as complete")
	}
	p.goesOn(reconcile.KindSweep)
	if got := p.number(`SELECT sum(amount) FROM cancels`); got != canceled {
		t.Errorf("the books have cancels of %d, want %d", got, canceled)
	}
}

// TestTwoInstances_TheLeaderDiesInASweep: the confirm that it sent again moved the money once; the row it held comes back
// when its lease is over.
func TestTwoInstances_TheLeaderDiesInASweep(t *testing.T) {
	t.Parallel()
	var key string
	p := newPair(t, func(w *world) {
		w.app = w.start()
		shopful(w)
		key = w.open("order-lost", 50_000)
		w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Reset, N: 2})
		w.app.shop.confirm(key, "order-lost", 50_000).want(w, "a confirm that never arrives", "202 unknown")
		w.app.stop()
		w.clock.Advance(2 * time.Minute)
		w.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LateReply, Delay: time.Minute, N: -1})
	}, func(w *world) bool { return w.sim.CountKey(tosssim.Confirm, key) > 2 })
	p.kill()
	p.goesOn(reconcile.KindSweep)
	if got := p.payment(key); got.Captured().Minor != 50_000 {
		t.Errorf("the payment is %s with %s taken", got.Status, got.Captured())
	}
}

// TestTwoInstances_TheLeaderDiesInAnAudit: an audit that was cut off left nothing; the other instance's finds the same
// contradiction, and there is one mismatch about it.
func TestTwoInstances_TheLeaderDiesInAnAudit(t *testing.T) {
	t.Parallel()
	held := make(chan pgx.Tx, 1)
	p := newPair(t, func(w *world) {
		w.app = w.start()
		shopful(w)
		w.clock.Advance(time.Minute)
		w.readList()
		w.sweep()
		_, err := w.db.Exec(w.Context(), `UPDATE captures SET amount = amount + 1 WHERE payment_key = (SELECT min(payment_key) FROM captures)`)
		w.must(err)
		w.app.stop()
		lock, err := w.db.Begin(w.Context()) //nolint:forbidigo // it stays open while everything else goes on
		w.must(err)
		_, err = lock.Exec(w.Context(), `LOCK TABLE audit_runs IN EXCLUSIVE MODE`)
		w.must(err)
		held <- lock
	}, func(w *world) bool {
		return w.number(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'audit_runs'::regclass`) > 0
	})
	p.kill()
	p.must((<-held).Rollback(t.Context()))
	before := p.number(`SELECT count(*) FROM audit_runs`)
	p.eventually("the second audits", func() bool { return p.number(`SELECT count(*) FROM audit_runs`) > before })
	p.eventually("the contradiction is found", func() bool { return p.number(`SELECT count(*) FROM mismatches`) > 0 })
	if n := p.number(`SELECT count(*) FROM mismatches`); n != 1 {
		t.Errorf("got %d mismatches about one contradiction", n)
	}
	_, err := p.db.Exec(t.Context(), `UPDATE captures SET amount = amount - 1 WHERE payment_key = (SELECT min(payment_key) FROM captures)`)
	p.must(err)
	p.goesOn(reconcile.KindSweep)
}
