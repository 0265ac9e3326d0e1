package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// many puts rows without money into the gateway's list, a second apart.
func (s *shop) many(name string, rows int) {
	s.t.Helper()
	for n := range rows {
		s.row(fmt.Sprintf("%s-%d", name, n), "pay-x", "x", "WAITING_FOR_DEPOSIT", "0")
		s.clock.Advance(time.Second)
	}
}

// requireWhole fails the test unless the mirror has that many rows, each of them counted as new once, and no read is
// left open.
func (s *shop) requireWhole(rows int) {
	s.t.Helper()
	if n := s.number(`SELECT count(*) FROM mirror`); n != rows {
		s.t.Errorf("the mirror has %d rows, want %d", n, rows)
	}
	if n := s.number(`SELECT COALESCE(sum(fresh), 0)::bigint FROM list_runs`); n != rows {
		s.t.Errorf("the reads count %d new rows, want each of %d once", n, rows)
	}
	if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'running'`); n != 0 {
		s.t.Errorf("%d reads were left open", n)
	}
}

// dying is a reader whose process ends before a page: nothing of it is written any more.
func (s *shop) dying(beforePage int, how func()) (*reconcile.Reconciler, context.Context) {
	s.t.Helper()
	ctx, die := context.WithCancel(s.t.Context())
	s.t.Cleanup(die)
	return s.another(func(c *reconcile.Config) {
		c.PageSize = 7
		c.Gateway = &moving{Gateway: s.client, between: func(page int) {
			if page == beforePage {
				how()
				die()
			}
		}}
	}), ctx
}

// TestPoll_GoesOnWhereAReaderDied: the pages written before the death stay, and the next is asked for after the last of
// their rows.
func TestPoll_GoesOnWhereAReaderDied(t *testing.T) {
	t.Parallel()
	for _, page := range []int{0, 1, 3, 4} {
		t.Run(fmt.Sprint("before page ", page), func(t *testing.T) {
			t.Parallel()
			s := setup(t, smallPages)
			s.many("row", 30)
			dead, ctx := s.dying(page, func() {})
			if _, err := dead.Mirror.Poll(ctx); err == nil {
				t.Fatal("no error")
			}
			if n := s.number(`SELECT count(*) FROM mirror`); n != 7*page {
				t.Errorf("the dead reader wrote %d rows, want %d", n, 7*page)
			}
			s.sim.ResetCalls()
			s.poll()
			s.requireWhole(30)
			first := s.sim.Calls()[0].RawQuery
			if want := fmt.Sprintf("startingAfter=row-%d", 7*page-1); page > 0 && !bytes.Contains([]byte(first), []byte(want)) {
				t.Errorf("got %s, want %s", first, want)
			}
			if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'complete' AND rows = 30 AND turn = 2`); n != min(page, 1) {
				t.Errorf("got %d reads that two readers made together, want %d", n, min(page, 1))
			}
			s.clock.Advance(time.Minute)
			if st := s.audit(reconcile.ScopeRecent); st.Verdict != reconcile.VerdictReconciled {
				t.Errorf("got %s %v", st.Verdict, st.Reasons)
			}
		})
	}
}

// TestPoll_LongDeadReadIsNotGoneOnWith: its window is read anew.
func TestPoll_LongDeadReadIsNotGoneOnWith(t *testing.T) {
	t.Parallel()
	s := setup(t, smallPages)
	s.many("row", 30)
	dead, ctx := s.dying(2, func() {})
	_, _ = dead.Mirror.Poll(ctx)
	s.clock.Advance(25 * time.Hour)
	s.sim.ResetCalls()
	s.poll()
	s.requireWhole(30)
	if first := s.sim.Calls()[0].RawQuery; bytes.Contains([]byte(first), []byte("startingAfter")) {
		t.Errorf("got %s, want the window from its beginning", first)
	}
}

// TestPoll_LockLostInTheMiddle: the session of the lock is cut while a page is read. Another instance takes the read
// over and ends it; the first one writes nothing more.
func TestPoll_LockLostInTheMiddle(t *testing.T) {
	t.Parallel()
	s := setup(t, smallPages)
	s.many("row", 30)
	cut := func(page int) {
		if page != 2 {
			return
		}
		if n := s.number(`
			SELECT count(pg_terminate_backend(pid)) FROM pg_locks
			WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); n != 1 {
			t.Errorf("cut %d sessions, want that of the lock", n)
		}
		for p := (reconcile.Polled{Busy: true}); p.Busy; {
			p = s.poll()
		}
	}
	r := s.another(func(c *reconcile.Config) {
		c.PageSize = 7
		c.Gateway = &moving{Gateway: s.client, between: cut}
	})
	if _, err := r.Mirror.Poll(t.Context()); err == nil {
		t.Error("the overtaken reader noticed nothing")
	}
	s.requireWhole(30)
	if n := s.number(`SELECT count(*) FROM list_runs WHERE result = 'complete' AND rows = 30 AND turn = 2`); n != 1 {
		t.Errorf("got %d reads ended by the second reader, want one", n)
	}
}

// readListArgument makes the test binary be a process that reads the list once.
const readListArgument = "read-the-list"

// readList is that process: it is killed before it ends.
func readList(databaseURL, gatewayURL string) error {
	db, err := postgres.Open(context.Background(), postgres.Config{URL: databaseURL, MaxConns: 4})
	if err != nil {
		return err
	}
	now := func() time.Time { return noon().Add(time.Minute) }
	reg, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	client, err := pgclient.New(pgclient.Config{
		BaseURL: gatewayURL, SecretKey: "test_sk_simulator", Metrics: pgclient.NewMetrics(reg), Log: log, Now: now,
	})
	if err != nil {
		return err
	}
	books, err := ledger.New(ledger.Config{Notify: silent{}, Metrics: ledger.NewMetrics(reg), Now: now})
	if err != nil {
		return err
	}
	r, err := reconcile.New(reconcile.Config{
		DB: db, Ledger: books, Gateway: client, Metrics: reconcile.NewMetrics(reg), Log: log, Now: now,
		DatabaseNow: func(context.Context) (time.Time, error) { return now(), nil },
		OpeningAt:   noon().Add(-time.Hour), PageSize: 7,
	})
	if err != nil {
		return err
	}
	_, err = r.Mirror.Poll(context.Background())
	return err
}

// TestPoll_ReaderIsKilled: SIGKILL in the middle of a list, of a real process with real sockets. Its lock is freed by
// its death, and the other instance goes on after the last page it wrote.
func TestPoll_ReaderIsKilled(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewURL(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s := setup(t, func(c *reconcile.Config, _ *tosssim.Config) { c.DB, c.PageSize = db, 7 })
	s.many("row", 30)
	s.clock.Set(noon().Add(time.Minute))
	var pages atomic.Int32
	third := make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pages.Add(1) == 3 {
			close(third)
			<-r.Context().Done()
			return
		}
		s.sim.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(gateway.Close)
	self, err := os.Executable()
	s.must(err)
	child := exec.CommandContext(t.Context(), self, readListArgument, url, gateway.URL)
	child.Stderr = os.Stderr
	s.must(child.Start())
	<-third
	s.must(child.Process.Kill())
	_ = child.Wait() // it was killed
	if n := s.number(`SELECT count(*) FROM mirror`); n != 14 {
		t.Fatalf("the killed process wrote %d rows, want two pages", n)
	}
	for p := (reconcile.Polled{Busy: true}); p.Busy; { // until the server has noticed the death
		p = s.poll()
	}
	s.requireWhole(30)
}

// TestPoll_CursorRefused: the row to continue after is gone at the gateway. The window is read from its beginning, some
// times; then the read has failed and the next poll begins again.
func TestPoll_CursorRefused(t *testing.T) {
	t.Parallel()
	for _, times := range []int{1, 3, 4} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			t.Parallel()
			s := setup(t, smallPages)
			s.many("row", 30)
			left := times
			r := s.another(func(c *reconcile.Config) {
				c.PageSize = 7
				c.Gateway = refusing{Gateway: s.client, refuse: func(after string) bool {
					if after == "" || left == 0 {
						return false
					}
					left--
					return true
				}}
			})
			_, err := r.Mirror.Poll(t.Context())
			if (err != nil) != (times > 3) {
				t.Errorf("got %v", err)
			}
			s.clock.Advance(time.Minute)
			s.poll()
			s.requireWhole(30)
		})
	}
}

// refusing is a gateway that refuses to continue after some rows.
type refusing struct {
	reconcile.Gateway
	refuse func(after string) bool
}

func (g refusing) Transactions(ctx context.Context, from, to time.Time, after string, limit int) (pgclient.Page, error) {
	if g.refuse(after) {
		return pgclient.Page{}, &pgclient.Error{Code: "INVALID_TRANSACTION_KEY", Status: 400, Reason: pgclient.ReasonCursorRefused}
	}
	return g.Gateway.Transactions(ctx, from, to, after, limit)
}

// TestPoll_LeavesARefusingGatewayAlone: after a refusal by rate nobody asks before the time it named, or before a time
// that grows with each refusal; all instances go by the same rows.
func TestPoll_LeavesARefusingGatewayAlone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	quiet := func(want time.Duration) {
		t.Helper()
		s.sim.ResetCalls()
		s.clock.Advance(want - time.Second)
		if _, err := s.another(func(*reconcile.Config) {}).Mirror.Poll(t.Context()); !errors.Is(err, reconcile.ErrPaused) {
			t.Errorf("after %s: got %v, want a pause", want-time.Second, err)
		}
		if n := s.sim.Count(tosssim.List); n != 0 {
			t.Errorf("the gateway was asked %d times in its pause", n)
		}
		s.clock.Advance(time.Second)
	}
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.TooMany})
		if _, err := s.Mirror.Poll(t.Context()); err == nil {
			t.Fatal("no error")
		}
		quiet(want)
	}
	s.clock.Advance(2 * time.Hour)
	s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.TooMany, Headers: map[string]string{"Retry-After": "1800"}})
	if _, err := s.Mirror.Poll(t.Context()); err == nil {
		t.Fatal("no error")
	}
	quiet(30 * time.Minute)
	s.poll()
}

// unreadable is a gateway that fails for windows which begin in a stretch of time.
type unreadable struct {
	reconcile.Gateway
	from, to time.Time
	asked    *int
}

func (g unreadable) Transactions(ctx context.Context, from, to time.Time, after string, limit int) (pgclient.Page, error) {
	if !from.Before(g.from) && from.Before(g.to) {
		*g.asked++
		return pgclient.Page{}, &pgclient.Error{Reason: pgclient.ReasonServerError, Status: 500}
	}
	return g.Gateway.Transactions(ctx, from, to, after, limit)
}

// TestPoll_UnreadableHistoryHoldsUpNothing: one day of the past cannot be read. What is new is read and counts, the rest
// of the past is made up for, and the day itself is tried again with longer and longer pauses.
func TestPoll_UnreadableHistoryHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.poll()
	opening, asked := noon().Add(-5*24*time.Hour), 0
	s.clock.Advance(time.Minute)
	r := s.another(func(c *reconcile.Config) {
		c.OpeningAt = opening
		c.Gateway = unreadable{Gateway: s.client, from: opening.Add(24 * time.Hour), to: opening.Add(48 * time.Hour), asked: &asked}
	})
	for minute := range 30 {
		s.row(fmt.Sprintf("new-%d", minute), "pay-x", "x", "WAITING_FOR_DEPOSIT", "0")
		s.clock.Advance(time.Minute)
		if _, err := r.Mirror.Poll(t.Context()); err != nil {
			t.Fatalf("minute %d: %v", minute, err)
		}
		if n := s.number(`SELECT count(*) FROM mirror`); n != minute+1 {
			t.Fatalf("minute %d: got %d rows", minute, n)
		}
	}
	if asked != 5 { // after 0, 1, 3, 7 and 15 minutes
		t.Errorf("the unreadable day was asked for %d times in half an hour, want 5", asked)
	}
	st, err := r.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeDay, Day: ledger.DayOf(noon().Add(-24 * time.Hour))})
	if s.must(err); st.Verdict != reconcile.VerdictReconciled {
		t.Errorf("a readable day: got %s %v", st.Verdict, st.Reasons)
	}
	st, err = r.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeAll})
	if s.must(err); st.Verdict != reconcile.VerdictIncomplete {
		t.Errorf("everything: got %s, want incomplete", st.Verdict)
	}
	if n := s.number(`SELECT count(*) FROM list_runs WHERE reason = 'make_up' AND result = 'failed'`); n != asked {
		t.Errorf("got %d failed reads of their own reason, want %d", n, asked)
	}
	_, err = s.another(func(c *reconcile.Config) { c.OpeningAt = opening }, s.cfg.Metrics).Sweeper.Sweep(t.Context())
	s.must(err)
	if got := s.metric("daesa_reconcile_never_read_seconds", nil); got != 24*60*60 {
		t.Errorf("the metric says %d seconds were never read, want a day", got)
	}
	s.clock.Advance(time.Hour)
	healed := s.another(func(c *reconcile.Config) { c.OpeningAt = opening })
	_, err = healed.Mirror.Poll(t.Context())
	s.must(err)
	if st, err = healed.Auditor.Run(t.Context(), reconcile.Scope{Name: reconcile.ScopeAll}); err != nil || st.Verdict != reconcile.VerdictReconciled {
		t.Errorf("healed: got %s %v %v", st.Verdict, st.Reasons, err)
	}
}

// unsteady is a list that misbehaves at random: it is what a list can be while it changes and its servers fail.
type unsteady struct {
	s      *shop
	random *rand.Rand
	next   http.Handler
	calm   bool
	added  int
	last   json.RawMessage // of the page before
}

func (u *unsteady) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/transactions" || u.calm {
		u.next.ServeHTTP(w, r)
		return
	}
	switch u.random.IntN(14) {
	case 0:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case 1:
		fmt.Fprint(w, "null")
		return
	case 2:
		fmt.Fprint(w, "[]")
		return
	case 3:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"code":"INVALID_TRANSACTION_KEY","message":"-"}`)
		return
	case 4: // a row appears behind what is being read
		at := u.s.clock.Now()
		u.s.clock.Set(at.Add(-time.Duration(u.random.IntN(600)) * time.Second))
		u.s.row(fmt.Sprintf("late-%d", u.added), "pay-x", "x", "WAITING_FOR_DEPOSIT", "0")
		u.s.clock.Set(at)
		u.added++
	case 5, 6:
		u.shift(w, r)
		return
	}
	u.next.ServeHTTP(w, r)
}

// shift answers a page that has lost its end, or that begins with a row of the page before.
func (u *unsteady) shift(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	u.next.ServeHTTP(answer, r)
	var rows []json.RawMessage
	if json.Unmarshal(answer.Body.Bytes(), &rows) == nil && len(rows) > 1 {
		if u.random.IntN(2) == 0 {
			rows = rows[:1+u.random.IntN(len(rows)-1)]
		} else if u.last != nil {
			rows = append([]json.RawMessage{u.last}, rows[:len(rows)-1]...)
		}
	}
	if len(rows) > 0 {
		u.last = rows[0]
	}
	w.WriteHeader(answer.Code)
	_ = json.NewEncoder(w).Encode(rows)
}

// TestPoll_UnsteadyList: whatever the list does while it is read, by readers of whom some die, the mirror has the
// gateway's rows in the end, each once, and nobody is alarmed.
func TestPoll_UnsteadyList(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := setup(t, smallPages)
			random := rand.New(rand.NewPCG(seed, 7))
			list := &unsteady{s: s, random: random, next: s.sim.Handler()}
			gateway := httptest.NewServer(list)
			t.Cleanup(gateway.Close)
			client := s.clientOf(gateway.URL)
			rows := 0
			for round := range 10 {
				n := random.IntN(15)
				s.many(fmt.Sprint("row-", round), n)
				rows += n
				s.clock.Advance(time.Duration(1+random.IntN(8)) * time.Minute)
				ctx, die := context.WithCancel(t.Context())
				dies := random.IntN(3)
				r := s.another(func(c *reconcile.Config) {
					c.PageSize = 7
					c.Gateway = &moving{Gateway: client, between: func(page int) {
						if dies == 0 && page == 1 {
							die()
						}
					}}
				})
				_, _ = r.Mirror.Poll(ctx)
				die()
			}
			list.calm = true
			s.clock.Advance(20 * time.Minute)
			s.poll()
			_, err := s.Mirror.Reread(t.Context())
			s.must(err)
			s.poll()
			s.requireWhole(rows + list.added)
			if n := s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`) + s.number(`SELECT count(*) FROM work`); n != 0 {
				t.Errorf("got %d mismatches and rows of work about rows without money", n)
			}
			ledgertest.RequireSound(t, s.db)
		})
	}
}

// clientOf is a client of a gateway at another address.
func (s *shop) clientOf(url string) *pgclient.Client {
	s.t.Helper()
	client, err := pgclient.New(pgclient.Config{
		BaseURL: url, SecretKey: "test_sk_simulator", Metrics: pgclient.NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.DiscardHandler), Now: s.clock.Now, Paths: pgclient.Paths{List: fast()},
	})
	s.must(err)
	s.t.Cleanup(client.Close)
	return client
}

// TestRereadNightly_GoesOn: a nightly read that failed in its third window goes on with that one.
func TestRereadNightly_GoesOn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	windows := 0
	r := s.another(func(c *reconcile.Config) {
		c.Gateway = &moving{Gateway: s.client, between: func(int) {
			if windows++; windows == 3 {
				s.sim.Fail(tosssim.Fault{Op: tosssim.List, Kind: tosssim.Status, Code: 500})
			}
		}}
	})
	if _, err := r.Mirror.RereadNightly(t.Context()); err == nil {
		t.Fatal("no error")
	}
	s.clock.Advance(10 * time.Minute)
	if p, err := r.Mirror.RereadNightly(t.Context()); err != nil || p.Windows != 3 {
		t.Errorf("got %+v and %v, want the two windows that are left and the ten minutes since", p, err)
	}
	if p, err := r.Mirror.RereadNightly(t.Context()); err != nil || p.Windows != 0 {
		t.Errorf("got %+v and %v, want nothing left", p, err)
	}
}
