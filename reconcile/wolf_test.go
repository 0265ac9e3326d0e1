package reconcile_test

import (
	"testing"
	"time"

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
