package app_test

import (
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

// issue takes an order to the point where its buyer has a bank account to pay into.
func (w *world) issue(order string, won int64) (key string) {
	w.Helper()
	w.app.shop.order(order, won)
	key = w.authenticate(order, won, tosssim.VirtualAccount)
	w.app.shop.confirm(key, order, won).want(w, "confirm "+order, "200 waiting_for_deposit")
	return key
}

// tell delivers every notice that is not done.
func (w *world) tell() {
	w.Helper()
	for _, n := range w.sim.Notices() {
		if !n.Done {
			w.deliver(n)
		}
	}
}

// TestDeposit_FallsBackAndComesAgain follows a virtual account through a deposit that turns out to be the bank's error.
func TestDeposit_FallsBackAndComesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.issue("order-account", 50_000)
	w.tell()
	if got := w.app.shop.status("order-account"); got != "200 pending" {
		t.Errorf("got %s before the deposit", got)
	}
	w.must(w.sim.Deposit(key))
	w.tell()
	w.later(15 * time.Second)
	w.wantStanding("order-account", "200 paid", totals{1, 50_000, 0, 0})

	w.clock.Advance(time.Minute)
	w.must(w.sim.RevertDeposit(key)) // its notices are lost
	w.later(3 * time.Minute)         // one look sees it,
	w.readList()                     // the list says so too,
	w.later(10 * time.Minute)        // and a second, later look is believed
	w.wantStanding("order-account", "200 pending", totals{0, 0, 0, 0})
	if got := w.number(`SELECT count(*) FROM journal_transactions WHERE kind = 'deposit_reversal'`); got != 1 {
		t.Errorf("got %d reversals in the journal, want 1", got)
	}

	w.must(w.sim.Deposit(key))
	w.tell()
	w.later(15 * time.Second)
	w.wantStanding("order-account", "200 paid", totals{1, 50_000, 0, 0})
	if got := w.number(`SELECT count(*) FROM captures`); got != 2 {
		t.Errorf("got %d captures in all, want 2", got)
	}
	w.quiesce()
	w.requireAgreed()
}

// TestDeposit_FallsBackAndItsNoticeComes: a notice that bears the payment's secret and was written after the deposit is a
// second witness, so that nobody has to wait for the list.
func TestDeposit_FallsBackAndItsNoticeComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.issue("order-told", 50_000)
	w.tell()
	w.clock.Advance(time.Minute)
	w.must(w.sim.Deposit(key))
	w.tell()
	w.later(15 * time.Second)
	w.wantStanding("order-told", "200 paid", totals{1, 50_000, 0, 0})
	w.clock.Advance(time.Minute)
	w.must(w.sim.RevertDeposit(key))
	w.tell()
	w.later(15 * time.Second) // one look sees it,
	w.later(40 * time.Second) // and a second one is believed
	w.wantStanding("order-told", "200 pending", totals{0, 0, 0, 0})
	w.quiesce()
	w.requireAgreed()
}

func (w *world) wantStanding(order, status string, want totals) {
	w.Helper()
	if got := w.app.shop.status(order); got != status {
		w.Errorf("got order %s %s, want %s", order, got, status)
	}
	if got := w.bookTotals(); got != want {
		w.Errorf("got %+v in the books, want %+v", got, want)
	}
}

// TestDeposit_VoidBefore cancels an account before anybody paid into it: no money moves on either side.
func TestDeposit_VoidBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dashboard(w.issue("order-void-1", 50_000), 0)
	w.tell()
	w.wantStanding("order-void-1", "200 canceled", totals{})
	key := w.issue("order-void-2", 30_000)
	w.app.shop.cancel(key, "cancel-void", 0).want(t, "our void", "200 done")
	w.tell()
	w.wantStanding("order-void-2", "200 canceled", totals{})
	w.quiesce()
	w.requireAgreed()
}

// TestDeposit_Refund needs an account to send the money to.
func TestDeposit_Refund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.issue("order-refund", 50_000)
	w.must(w.sim.Deposit(key))
	w.tell()
	w.later(15 * time.Second)
	w.app.shop.cancel(key, "cancel-refund", 0).want(t, "without an account", "400 refund_account_required")
	body := cancellation(20_000)
	body["refund_account"] = map[string]string{"bank": "20", "account_number": "1234567890", "holder_name": "홍길동"}
	w.app.shop.call("POST", "/v1/payments/"+key+"/cancel", "cancel-refund-2", body).want(t, "with an account", "200 done")
	w.wantStanding("order-refund", "200 partially_canceled", totals{1, 50_000, 1, 20_000})
	w.quiesce()
	w.requireAgreed()
}

// TestDeposit_CallbackSecret refuses a deposit callback with a wrong secret.
func TestDeposit_CallbackSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.issue("order-secret", 50_000)
	status, err := w.sim.Send([]byte(`{"createdAt":"2026-04-15T10:01:02.5","secret":"ps_guessed","status":"DONE",
		"transactionKey":"guessed","orderId":"order-secret"}`), nil)
	w.must(err)
	if status != 401 {
		t.Errorf("got %d for a callback with a wrong secret, want 401", status)
	}
	w.later(15 * time.Second)
	w.wantStanding("order-secret", "200 pending", totals{})
	w.must(w.sim.Deposit(key))
	w.quiesce()
	w.requireAgreed()
}

// TestDeposit_FallsBackHoursLater loses every notice of a deposit that falls back late on its first day: the watch that
// the notice of the waiting account began must last as long as that of the deposit.
func TestDeposit_FallsBackHoursLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.issue("order-hours", 50_000)
	w.tell()
	w.clock.Advance(time.Minute)
	w.must(w.sim.Deposit(key))
	w.tell()
	w.later(15 * time.Second)
	w.wantStanding("order-hours", "200 paid", totals{1, 50_000, 0, 0})
	for range 8 {
		w.later(15 * time.Minute)
	}
	w.must(w.sim.RevertDeposit(key))
	for range 8 {
		w.later(3 * time.Hour)
	}
	w.readList()
	w.later(time.Minute)
	w.later(time.Minute)
	w.wantStanding("order-hours", "200 pending", totals{})
	w.quiesce()
	w.requireAgreed()
}
