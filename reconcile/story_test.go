package reconcile_test

import (
	"testing"
	"time"

	"daesa/ledger"
	"daesa/reconcile"
)

// TestStory_CancelWithoutNotice: a cancel made in the gateway's dashboard, of which no notice ever comes, is listed,
// becomes work, is swept and booked, and the identity holds before, during and after.
func TestStory_CancelWithoutNotice(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := s.paid("order-1", 50_000)
	s.clock.Advance(time.Minute)
	transaction := s.canceled(key, 0)
	s.clock.Advance(time.Minute)
	at := s.clock.Now()
	if p := s.poll(); p.Fresh != 2 {
		t.Errorf("got %d fresh rows, want the capture and the cancel", p.Fresh)
	}
	before := s.audit(reconcile.ScopeRecent)
	if before.Verdict != reconcile.VerdictPending || before.Line(reconcile.LineInFlight, ledger.KRW).Count != 1 {
		t.Errorf("before the sweep: got %s %+v", before.Verdict, before.Lines)
	}
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusCanceled || !p.HasCancel(transaction) {
		t.Errorf("got %s, want the cancel booked", p.Status)
	}
	if got := s.text(`SELECT channel FROM cancels`); got != string(ledger.ChannelSweep) {
		t.Errorf("got channel %s", got)
	}
	if n := s.number(`SELECT count(*) FROM cancels WHERE canceled_at < $1`, at); n != 1 {
		t.Error("the cancel's time is not the gateway's")
	}
	if after := s.audit(reconcile.ScopeAll); after.Verdict != reconcile.VerdictReconciled || after.Sums[0].Canceled.Amount != 50_000 {
		t.Errorf("after the sweep: got %s %+v %v", after.Verdict, after.Sums, after.Reasons)
	}
	if late := s.record(s.ask(ledger.ChannelWebhook, key)); late.Outcome != ledger.OutcomeUnchanged {
		t.Errorf("a late notice: got %s, want unchanged", late.Outcome)
	}
}

// TestStory_PatientWaitsForTheLastChance: without eager the sender's redeliveries get their whole time.
func TestStory_PatientWaitsForTheLastChance(t *testing.T) {
	t.Parallel()
	s := setup(t, patient)
	key := s.paid("order-1", 50_000)
	s.canceled(key, 0)
	s.clock.Advance(time.Minute)
	s.poll()
	s.clock.Advance(80 * time.Hour)
	if swept := s.sweep(); swept.Asked != 0 || s.payment(key).Status != ledger.StatusDone {
		t.Errorf("asked %d times before the last chance", swept.Asked)
	}
	s.clock.Advance(12 * time.Hour)
	s.sweep()
	if p := s.payment(key); p.Status != ledger.StatusCanceled {
		t.Errorf("got %s at the last chance, want canceled", p.Status)
	}
	if got := s.text(`SELECT channel FROM cancels`); got != string(ledger.ChannelLastChance) {
		t.Errorf("got channel %s", got)
	}
}
