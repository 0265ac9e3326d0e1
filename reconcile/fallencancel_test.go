package reconcile_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// TestFallen_CanceledBeforeAnybodyKnows: the deposit falls back, and the account is canceled while our books still have
// the money. The gateway voids the account; nothing has moved, and everything ends by itself.
func TestFallen_CanceledBeforeAnybodyKnows(t *testing.T) {
	t.Parallel()
	part := ledger.Won(3_000)
	tests := []struct {
		name    string
		cancel  func(s *shop, key string)
		request ledger.CancelRequestStatus
		payment ledger.Status
	}{
		{"by us", func(s *shop, key string) { s.request("req-1", key, nil) }, ledger.CancelRequestDone, ledger.StatusCanceled},
		{"by us, and the answer is lost", func(s *shop, key string) {
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.LostReply})
			s.request("req-1", key, nil)
		}, ledger.CancelRequestDone, ledger.StatusCanceled},
		{"by us, and it never arrives", func(s *shop, key string) {
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Reset})
			s.request("req-1", key, nil)
		}, ledger.CancelRequestDone, ledger.StatusCanceled},
		{"a part by us", func(s *shop, key string) { s.request("req-1", key, &part) }, ledger.CancelRequestRefused, ledger.StatusWaitingForDeposit},
		{"in the dashboard", func(s *shop, key string) { s.canceled(key, 0) }, "", ledger.StatusCanceled},
		{"a part by us, and all of it in the dashboard", func(s *shop, key string) {
			s.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: tosssim.Reset})
			s.request("req-1", key, &part)
			s.canceled(key, 0)
		}, ledger.CancelRequestRefused, ledger.StatusCanceled},
	}
	for _, test := range tests {
		for _, way := range tosssim.FallenRows() {
			t.Run(test.name+", "+string(way), func(t *testing.T) {
				t.Parallel()
				s := setup(t, func(_ *reconcile.Config, c *tosssim.Config) { c.FallenRow = way })
				key := s.deposited("order-1", 10_000)
				s.pass(20 * time.Minute)
				s.must(s.sim.RevertDeposit(key))
				test.cancel(s, key)
				for _, minutes := range []int{1, 1, 1, 1, 1, 25, 25, 25} {
					if st := s.pass(time.Duration(minutes) * time.Minute); st.Verdict != reconcile.VerdictReconciled && st.Verdict != reconcile.VerdictPending {
						t.Fatalf("got %s with %+v", st.Verdict, st.Line(reconcile.LineBreaks, ledger.KRW).Entries)
					}
				}
				if p := s.payment(key); p.Status != test.payment || p.Captured().Positive() || p.Canceled().Positive() {
					t.Errorf("got the payment %s with %s captured and %s canceled, want %s", p.Status, p.Captured(), p.Canceled(), test.payment)
				}
				if test.request != "" && s.requested("req-1").Status != test.request {
					t.Errorf("got our cancel %s (%s), want %s", s.requested("req-1").Status, s.requested("req-1").Answer, test.request)
				}
				if n := s.number(`SELECT count(*) FROM mismatches WHERE status <> 'resolved'`); n != 0 {
					t.Errorf("got %d mismatches: %s", n, s.text(`SELECT string_agg(kind || ' ' || detail, ', ') FROM mismatches`))
				}
				s.agree()
				ledgertest.RequireSound(t, s.db)
			})
		}
	}
}

// agree requires that the audit of everything finds both books equal, and the running sums right, whatever amount the list
// writes beside a void.
func (s *shop) agree() {
	s.t.Helper()
	for _, amount := range []int{10_000, 0} {
		s.exec(`UPDATE mirror SET amount = $1 WHERE kind = 'cancel'`, amount)
		s.audit(reconcile.ScopeRecent)
		if st := s.audit(reconcile.ScopeAll); st.Verdict != reconcile.VerdictReconciled || len(st.Drift) > 0 {
			s.t.Errorf("got %s with %+v, drift %v, when the list writes %d", st.Verdict, st.Line(reconcile.LineBreaks, ledger.KRW).Entries, st.Drift, amount)
		}
	}
}
