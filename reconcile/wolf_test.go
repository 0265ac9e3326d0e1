package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient"
	"daesa/reconcile"
)

// TestAudit_NoFalseAlarmInTraffic: cancels come steadily, the list shows each minutes later, its notice comes before or
// after that, and an audit every few seconds finds nothing. A cancel of ours that the list never shows is found by the
// first audit of a list that is old enough to have it, and by none before.
func TestAudit_NoFalseAlarmInTraffic(t *testing.T) {
	t.Parallel()
	s := setup(t, patient, lagging)
	const (
		steps   = 100
		step    = 15 * time.Second
		cancels = 40
	)
	keys := make([]string, cancels)
	for n := range keys {
		keys[n] = s.paid(orderID(n), 1000)
	}
	planted := ""
	hides := s.another(func(c *reconcile.Config) {
		c.Gateway = &paged{Gateway: s.client, change: func(_ int, page *pgclient.Page) error {
			kept := page.Rows[:0]
			for _, r := range page.Rows {
				if r.TransactionKey != planted {
					kept = append(kept, r)
				}
			}
			page.Rows = kept
			return nil
		}}
	})
	var plantedAt time.Time
	notices := map[int][]string{} // by the step at which they come
	lines := make(map[reconcile.LineName]bool)
	for n := range steps {
		s.clock.Advance(step)
		if n < cancels {
			transaction := s.canceled(keys[n], 0)
			late := (n * 7) % 40 // up to ten minutes: before the list shows it, and after
			if n == 10 {
				planted, plantedAt, late = transaction, s.clock.Now(), 0
			}
			notices[n+late] = append(notices[n+late], keys[n])
		}
		for _, key := range notices[n] {
			s.record(s.ask(ledger.ChannelWebhook, key))
		}
		if n%3 == 0 {
			_, err := hides.Mirror.Poll(t.Context())
			s.must(err)
		}
		st := s.audit(reconcile.ScopeRecent)
		for _, l := range st.Lines {
			lines[l.Name] = true
		}
		for _, sum := range st.Sums {
			if !sum.Holds() || sum.Unexplained.Count > 0 {
				t.Fatalf("step %d: got %+v", n, sum)
			}
		}
		found := s.number(`SELECT count(*) FROM mismatches`)
		due := n >= 10 && !st.AsOf.Before(plantedAt.Add(10*time.Minute))
		if (st.Verdict == reconcile.VerdictBreaks) != due || (found == 1) != due || found > 1 {
			t.Fatalf("step %d, %s after the planted cancel, list as of %s: got %s and %d mismatches", n, s.clock.Now().Sub(plantedAt), st.AsOf, st.Verdict, found)
		}
	}
	if s.mismatches(ledger.KindCancelMissingThere) != 1 {
		t.Error("the planted cancel was not found")
	}
	for _, name := range []reconcile.LineName{reconcile.LineNotListed, reconcile.LineInFlight, reconcile.LineApplied} {
		if !lines[name] {
			t.Errorf("no audit ever saw anything on the line %s: the traffic was too tame", name)
		}
	}
	ledgertest.RequireSound(t, s.db)
}

// TestAudit_NoFalseAlarmWhileEverythingMoves: four people cancel a hundred payments, each three seconds of the shop's
// clock after the one before, while the list is read, work is swept and the identity is proven over and over, all at once. No
// audit sees a difference, however the two books stand at its moment, because it reads both in one snapshot and says of
// when each is. The one cancel of ours that the list never shows is found as soon as the list is old enough, and by then
// alone.
func TestAudit_NoFalseAlarmWhileEverythingMoves(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const (
		people = 4
		each   = 25
		step   = 3 * time.Second
	)
	keys := make([]string, people*each)
	for n := range keys {
		keys[n] = s.paid(orderID(n), 1000)
	}
	hidden := keys[10]
	hides := s.another(func(c *reconcile.Config) {
		c.Gateway = &paged{Gateway: s.client, change: func(_ int, page *pgclient.Page) error {
			kept := page.Rows[:0]
			for _, r := range page.Rows {
				if r.PaymentKey != hidden || r.Kind != pgclient.TransactionCancel {
					kept = append(kept, r)
				}
			}
			page.Rows = kept
			return nil
		}}
	})
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	audited := make(chan struct{}) // whoever waits hears of an audit that ended while they waited
	var selling, watching sync.WaitGroup
	for person := range people {
		selling.Go(func() {
			for n := range each {
				s.clock.Advance(step)
				if err := s.cancelsAndHears(ctx, keys[person*each+n], n%3 != 0 || keys[person*each+n] == hidden); err != nil {
					stop(err)
					return
				}
				if n%5 != 4 {
					continue
				}
				select {
				case <-audited:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	again := func(act func() error) {
		watching.Go(func() {
			for ctx.Err() == nil {
				if err := act(); err != nil && ctx.Err() == nil {
					stop(err)
				}
			}
		})
	}
	again(func() error { _, err := hides.Mirror.Poll(ctx); return err })
	again(func() error { _, err := s.Sweeper.Sweep(ctx); return err })
	again(func() error {
		st, err := s.Auditor.Run(ctx, reconcile.Scope{Name: reconcile.ScopeRecent})
		if err != nil {
			return err
		}
		if err := calm(st); err != nil {
			return err
		}
		select {
		case audited <- struct{}{}:
		default:
		}
		return nil
	})
	selling.Wait()
	stop(errSoldOut)
	watching.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errSoldOut) {
		t.Fatal(err)
	}
	if n := s.number(`SELECT count(*) FROM mismatches`); n != 0 {
		t.Fatalf("got %d mismatches while everything moved", n)
	}
	s.clock.Advance(15 * time.Minute)
	_, err := hides.Mirror.Poll(t.Context())
	s.must(err)
	s.sweep()
	st := s.audit(reconcile.ScopeRecent)
	if st.Verdict != reconcile.VerdictBreaks || s.number(`SELECT count(*) FROM mismatches`) != 1 || s.mismatches(ledger.KindCancelMissingThere) != 1 {
		t.Errorf("afterwards: got %s %+v", st.Verdict, st.Lines)
	}
	if got := st.Line(reconcile.LineApplied, ledger.KRW).Count; got != people*each-1 {
		t.Errorf("got %d applied, want all but the hidden one", got)
	}
	ledgertest.RequireSound(t, s.db)
}

var errSoldOut = errors.New("everything is sold")

// cancelsAndHears is a cancel in the dashboard, whose notice is applied at once, or never comes.
func (s *shop) cancelsAndHears(ctx context.Context, key string, hears bool) error {
	if _, err := s.sim.CancelInDashboard(key, 0, "dashboard"); err != nil || !hears {
		return err
	}
	seen, err := s.client.Recover(ctx, ledger.ChannelWebhook, key)
	if err != nil {
		return err
	}
	return postgres.InTx(ctx, s.db, func(tx pgx.Tx) error {
		_, err := s.books.Record(ctx, tx, seen)
		return err
	})
}

// calm reports what in a statement would have woken somebody, or that it does not say of when it is.
func calm(st reconcile.Statement) error {
	if st.Verdict == reconcile.VerdictBreaks || st.Verdict == reconcile.VerdictError {
		return fmt.Errorf("got %s %+v", st.Verdict, st.Lines)
	}
	if st.StartedAt.IsZero() || st.AsOf.IsZero() || st.AsOf.After(st.StartedAt) {
		return fmt.Errorf("the books of %s beside a list of %s", st.StartedAt, st.AsOf)
	}
	for _, sum := range st.Sums {
		if !sum.Holds() || sum.Unexplained.Count > 0 {
			return fmt.Errorf("got %+v", sum)
		}
	}
	return nil
}
