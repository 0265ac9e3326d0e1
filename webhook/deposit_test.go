package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// callbacks are the deposit callbacks that the gateway has sent, oldest first.
func (s *shop) callbacks() [][]byte {
	var all [][]byte
	for _, n := range s.sim.Notices() {
		if n.EventType == "DEPOSIT_CALLBACK" {
			all = append(all, n.Body)
		}
	}
	return all
}

// TestReceive_DepositCallbacks: a flat callback finds its payment by the order. One that says paid or fallen back makes
// somebody ask at once; one that says canceled is asked about and applied.
func TestReceive_DepositCallbacks(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paidBy(t, "order-0001", 70_000, tosssim.VirtualAccount)
	issued := s.callbacks()[0]
	s.send(t, issued).want(t, 200, webhook.OutcomeStatusIgnored)
	if got := s.work(t); len(got) != 1 || !strings.HasPrefix(got[0], "deposit_watch - due 7 days") {
		t.Errorf("got work %v, want the account's own watch alone: the books agree", got)
	}
	if err := s.sim.Deposit(key); err != nil {
		t.Fatal(err)
	}
	s.send(t, s.callbacks()[1]).want(t, 200, webhook.OutcomeStatusIgnored)
	if got := s.work(t); len(got) != 1 || !strings.HasPrefix(got[0], "deposit_watch - due 00:00:00") {
		t.Errorf("got work %v, want a question now", got)
	}
	s.wantBooks(t, key, ledger.StatusWaitingForDeposit, 0, 0)
	s.learn(t, key, ledger.ChannelSweep)
	s.wantBooks(t, key, ledger.StatusDone, 0, 0)

	s.cancel(t, key, 20_000)
	s.send(t, s.callbacks()[2]).want(t, 200, webhook.OutcomeAppliedPartial)
	s.wantBooks(t, key, ledger.StatusPartiallyCanceled, 20_000, 1)
	s.cancel(t, key, 0)
	s.send(t, s.callbacks()[3]).want(t, 200, webhook.OutcomeAppliedFull)
	s.send(t, s.callbacks()[3]).want(t, 200, webhook.OutcomeDuplicateSkipped)
	s.send(t, s.lastNotice(t)).want(t, 200, webhook.OutcomeDuplicateSkipped) // the same cancel in the other envelope
	s.wantBooks(t, key, ledger.StatusCanceled, 70_000, 2)
}

// TestReceive_VoidedAccount: an account canceled before anything was paid in is booked at nothing.
func TestReceive_VoidedAccount(t *testing.T) {
	t.Parallel()
	for _, envelope := range []string{"callback", "payment", "no cancels"} {
		s := open(t, options{})
		key := s.paidBy(t, "order-0001", 70_000, tosssim.VirtualAccount)
		s.cancel(t, key, 0)
		body := s.lastNotice(t)
		switch envelope {
		case "callback":
			body = s.callbacks()[1]
		case "no cancels":
			raw, _ := s.sim.Payment(key)
			raw = regexp.MustCompile(`"cancels":\[[^]]*\]`).ReplaceAll(raw, []byte(`"cancels":null`))
			s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Stale, Payment: raw})
		}
		s.send(t, body).want(t, 200, webhook.OutcomeAppliedFull)
		s.wantBooks(t, key, ledger.StatusCanceled, 0, 1)
		if got := one[int](t, s.db, `SELECT count(*)::integer FROM journal_entries`); got != 0 {
			t.Errorf("%s: got %d journal entries for no money", envelope, got)
		}
	}
}

// TestReceive_FallenDeposit: a callback that says waiting again, for a payment our books hold as paid, makes somebody
// ask at once.
func TestReceive_FallenDeposit(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paidBy(t, "order-0001", 70_000, tosssim.VirtualAccount)
	if err := s.sim.Deposit(key); err != nil {
		t.Fatal(err)
	}
	s.learn(t, key, ledger.ChannelSweep)
	if err := s.sim.RevertDeposit(key); err != nil {
		t.Fatal(err)
	}
	s.send(t, s.callbacks()[2]).want(t, 200, webhook.OutcomeStatusIgnored)
	if got := s.work(t); len(got) != 1 || !strings.HasPrefix(got[0], "deposit_watch - due 00:00:00") {
		t.Errorf("got work %v, want a question now", got)
	}
	s.wantBooks(t, key, ledger.StatusDone, 0, 0)
}

// TestReceive_FallenDepositIsTold: a callback that says waiting tells when the gateway wrote it, if it bears the payment's
// secret; the one of the account's issue, sent again, tells nothing newer.
func TestReceive_FallenDepositIsTold(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paidBy(t, "order-0001", 70_000, tosssim.VirtualAccount)
	s.clock.Advance(time.Minute)
	if err := s.sim.Deposit(key); err != nil {
		t.Fatal(err)
	}
	s.learn(t, key, ledger.ChannelSweep)
	s.clock.Advance(time.Minute)
	told := func() string {
		return one[string](t, s.db, `SELECT COALESCE(max(CASE WHEN told_at > (SELECT captured_at FROM captures) THEN 'after' ELSE 'before' END), 'nothing')
			FROM work WHERE kind = 'deposit_watch' AND closed_at IS NULL AND told_at IS NOT NULL`)
	}
	if err := s.sim.RevertDeposit(key); err != nil {
		t.Fatal(err)
	}
	fell := string(s.callbacks()[2])
	s.send(t, []byte(strings.Replace(fell, `"createdAt":"`, `"createdAt":"never`, 1))).want(t, 200, webhook.OutcomeStatusIgnored)
	s.send(t, []byte(regexp.MustCompile(`"secret":"[^"]*"`).ReplaceAllString(fell, `"secret":"ps_made_up"`)))
	if got := told(); got != "nothing" {
		t.Errorf("got told %s by a callback without its time, and by one with a wrong secret", got)
	}
	s.send(t, s.callbacks()[0]).want(t, 200, webhook.OutcomeStatusIgnored)
	if got := told(); got != "before" {
		t.Errorf("got told %s by the callback of the issue, want before", got)
	}
	s.send(t, []byte(strings.Replace(fell, `"createdAt":"2026`, `"createdAt":"2027`, 1))).want(t, 200, webhook.OutcomeStatusIgnored)
	s.send(t, s.callbacks()[0]).want(t, 200, webhook.OutcomeStatusIgnored)
	if got := told(); got != "after" {
		t.Errorf("got told %s, want after: what an older notice says takes nothing from it", got)
	}
	if _, err := s.db.Exec(t.Context(), `UPDATE payments SET secret_digest = NULL; UPDATE work SET told_at = NULL`); err != nil {
		t.Fatal(err)
	}
	s.send(t, []byte(fell)).want(t, 200, webhook.OutcomeStatusIgnored)
	if got := told(); got != "nothing" {
		t.Errorf("got told %s by a callback that nothing proves", got)
	}
}

// TestReceive_DepositSecret: with a digest in the books a callback has to prove itself; without one it is a hint like
// any other notice, and the gateway decides.
func TestReceive_DepositSecret(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	key := s.paidBy(t, "order-0001", 70_000, tosssim.VirtualAccount)
	if err := s.sim.Deposit(key); err != nil {
		t.Fatal(err)
	}
	s.learn(t, key, ledger.ChannelSweep)
	s.cancel(t, key, 0)
	right := string(s.callbacks()[2])
	s.sim.ResetCalls()
	for name, secret := range map[string]string{"wrong": `"secret":"ps_made_up"`, "empty": `"secret":""`, "none": `"other":"x"`, "null": `"secret":null`} {
		forged := regexp.MustCompile(`"secret":"[^"]*"`).ReplaceAllString(right, secret)
		if got := s.send(t, []byte(forged)); got.status != 401 || got.outcome != "signature_rejected" {
			t.Errorf("%s secret: got %d %s, want 401", name, got.status, got.body)
		}
		done := strings.Replace(forged, `"CANCELED"`, `"WAITING_FOR_DEPOSIT"`, 1)
		if got := s.send(t, []byte(done)); got.status != 401 {
			t.Errorf("%s secret, other status: got %d, want 401", name, got.status)
		}
	}
	if got := s.sim.Calls(); len(got) != 0 {
		t.Errorf("got %d questions for forged callbacks, want none", len(got))
	}
	s.wantBooks(t, key, ledger.StatusDone, 0, 0)

	if _, err := s.db.Exec(t.Context(), `UPDATE payments SET secret_digest = NULL`); err != nil {
		t.Fatal(err)
	}
	s.send(t, []byte(regexp.MustCompile(`"secret":"[^"]*"`).ReplaceAllString(right, `"secret":"ps_unknown"`))).
		want(t, 200, webhook.OutcomeAppliedFull)
	unknown := `{"orderId":"order-never","status":"%s","secret":"ps_1","transactionKey":"tx_1"}`
	s.send(t, fmt.Appendf(nil, unknown, "CANCELED")).want(t, 404, webhook.OutcomePaymentNotFound)
	s.send(t, fmt.Appendf(nil, unknown, "DONE")).want(t, 200, webhook.OutcomeStatusIgnored)
	if got := text(t, s.db, `SELECT kind FROM work WHERE kind = 'parked'`); len(got) != 0 {
		t.Error("got a parked claim without a payment to park it under")
	}
}

// TestReceive_SignedEvents: a signature is checked where there is one and a key is configured.
func TestReceive_SignedEvents(t *testing.T) {
	t.Parallel()
	s := open(t, options{})
	body := []byte(`{"eventType":"payout.changed","entityType":"payout","entityBody":{"id":"p1"}}`)
	at := "2026-04-15T10:00:00+09:00"
	key, _ := hex.DecodeString(securityKey)
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	mac.Write([]byte(":" + at))
	right := "v1:" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, test := range []struct {
		name, signature string
		status          int
		outcome         webhook.Outcome
	}{
		{"right", right, 200, webhook.OutcomeEventIgnored},
		{"right and old", "v1:AAAA," + right, 200, webhook.OutcomeEventIgnored},
		{"wrong", "v1:AAAA", 401, webhook.OutcomeSignatureRejected},
		{"no signature", "", 200, webhook.OutcomeEventIgnored},
	} {
		headers := map[string]string{"tosspayments-webhook-transmission-time": at}
		if test.signature != "" {
			headers["tosspayments-webhook-signature"] = test.signature
		}
		if got := s.sendWith(t, bytes.NewReader(body), headers); got.status != test.status || got.outcome != string(test.outcome) {
			t.Errorf("%s: got %d %s, want %d %s", test.name, got.status, got.body, test.status, test.outcome)
		}
	}
}

// TestReceive_OtherSystems: where the merchant id is shared, orders of others are ignored instead of refused for days;
// a payment in our books is ours whatever its order is called.
func TestReceive_OtherSystems(t *testing.T) {
	t.Parallel()
	s := open(t, options{config: func(c *webhook.Config) {
		c.OurOrders, c.MerchantID = regexp.MustCompile(`^order-`), "tsimshop01"
	}})
	theirs := whole("pk_theirs", "other-0001", nil)
	s.send(t, encoded(t, notice(theirs, nil))).want(t, 200, webhook.OutcomeEventIgnored)
	theirs["status"] = "DONE"
	s.send(t, encoded(t, notice(theirs, nil))).want(t, 200, webhook.OutcomeEventIgnored)
	s.send(t, encoded(t, notice(whole("pk_x", "order-0009", fields{"mId": "tothershop"}), nil))).want(t, 200, webhook.OutcomeEventIgnored)
	s.send(t, encoded(t, notice(whole("pk_x", "order-0009", nil), nil))).want(t, 404, webhook.OutcomePaymentNotFound)
	key := s.paid(t, "adopted-0001", 50_000)
	_, body := s.cancel(t, key, 0)
	s.send(t, body).want(t, 200, webhook.OutcomeAppliedFull)
}
