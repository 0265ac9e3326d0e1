package pgclient

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"daesa/internal/guard"
	"daesa/ledger"
)

// TestConfirm_VerdictIsThatOfTheWorstKnownAttempt is the table of what two attempts can come to.
func TestConfirm_VerdictIsThatOfTheWorstKnownAttempt(t *testing.T) {
	t.Parallel()
	ok, hang, broken := shows(payment(nil)), step{hangs: true}, step{breaks: true}
	for _, test := range []struct {
		name     string
		steps    []step
		want     Verdict
		attempts int
	}{
		{"approved", []step{ok}, VerdictDone, 1},
		{"virtual account", []step{shows(payment(map[string]any{"status": "WAITING_FOR_DEPOSIT", "approvedAt": nil}))}, VerdictDone, 1},
		{"card refused", []step{says(403, "REJECT_CARD_PAYMENT")}, VerdictRefused, 1},
		{"already processed", []step{says(400, "ALREADY_PROCESSED_PAYMENT")}, VerdictAsk, 1},
		{"session gone", []step{says(404, "NOT_FOUND_PAYMENT_SESSION")}, VerdictAsk, 1},
		{"order number used", []step{says(400, "DUPLICATED_ORDER_ID")}, VerdictAsk, 1},
		{"ambiguous refusal is bound to the key", []step{says(400, "PROVIDER_ERROR"), ok}, VerdictAsk, 1},
		{"code never heard of", []step{says(400, "TOMORROWS_CODE"), ok}, VerdictAsk, 1},
		{"our key", []step{says(401, "UNAUTHORIZED_KEY")}, VerdictUnprocessed, 1},
		{"our request", []step{says(400, "INVALID_REQUEST")}, VerdictUnprocessed, 1},
		{"rate, twice", []step{says(429, "ANYTHING")}, VerdictUnprocessed, 2},
		{"rate, then refused", []step{says(429, ""), says(403, "REJECT_CARD_PAYMENT")}, VerdictRefused, 2},
		{"rate, then timeout", []step{says(429, ""), hang}, VerdictUnknown, 2},
		{"timeout, then approved", []step{hang, ok}, VerdictDone, 2},
		{"timeout twice", []step{hang}, VerdictUnknown, 2},
		{"timeout, then refused", []step{hang, says(403, "REJECT_CARD_PAYMENT")}, VerdictAsk, 2},
		{"timeout, then not found", []step{hang, says(404, "NOT_FOUND_PAYMENT")}, VerdictAsk, 2},
		{"timeout, then our key", []step{hang, says(401, "UNAUTHORIZED_KEY")}, VerdictUnknown, 2},
		{"timeout, then rate", []step{hang, says(429, "")}, VerdictUnknown, 2},
		{"broken connection, then approved", []step{broken, ok}, VerdictDone, 2},
		{"broken connection twice", []step{broken}, VerdictUnknown, 2},
		{"server error with the code of a refusal", []step{says(500, "REJECT_CARD_PAYMENT")}, VerdictUnknown, 2},
		{"server error, then already processed", []step{says(500, "UNKNOWN_PAYMENT_ERROR"), says(400, "ALREADY_PROCESSED_PAYMENT")}, VerdictAsk, 2},
		{"still running, then approved", []step{says(409, "IDEMPOTENT_REQUEST_PROCESSING"), ok}, VerdictDone, 2},
		{"still running twice", []step{says(409, "IDEMPOTENT_REQUEST_PROCESSING")}, VerdictUnknown, 2},
		{"page instead of an answer", []step{page(200)}, VerdictUnknown, 2},
		{"page of a proxy, then approved", []step{page(502), ok}, VerdictDone, 2},
		{"page of a firewall is not sent twice", []step{page(403), ok}, VerdictUnknown, 1},
		{"redirect", []step{page(302)}, VerdictUnknown, 2},
		{"another payment", []step{shows(payment(map[string]any{"paymentKey": "pk_2"}))}, VerdictAsk, 1},
		{"contradiction", []step{shows(payment(map[string]any{"balanceAmount": 1}))}, VerdictAsk, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				transport, calls := script(test.steps...)
				began := time.Now()
				got, err := confirm(t.Context(), mustNew(t, testConfig(transport)))
				if err != nil || got.Verdict != test.want || got.Attempts != test.attempts || int(calls.Load()) != test.attempts {
					t.Errorf("got %s after %d attempts and %d calls, want %s after %d: %v", got.Verdict, got.Attempts, calls.Load(), test.want, test.attempts, got.Err)
				}
				if took := time.Since(began); took > 31*time.Second {
					t.Errorf("took %s, over the path's total", took)
				}
				if (got.Verdict == VerdictDone) != (got.Err == nil) {
					t.Errorf("verdict %s with error %v", got.Verdict, got.Err)
				}
			})
		})
	}
}

func TestConfirm_BreakerOpeningBetweenAttemptsLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport, calls := script(step{hangs: true})
		c := mustNew(t, testConfig(transport))
		results := make(chan Result, 12)
		for range 12 {
			go func() {
				result, _ := confirm(t.Context(), c)
				results <- result
			}()
		}
		for range 12 {
			got := <-results
			if got.Verdict != VerdictUnknown || got.Err.Reason != ReasonTimeout || got.Attempts != 1 {
				t.Errorf("got %s (%v) after %d attempts", got.Verdict, got.Err, got.Attempts)
			}
		}
		if calls.Load() != 12 || c.money.State() != guard.Open {
			t.Errorf("%d calls, breaker %s", calls.Load(), c.money.State())
		}
		_, err := c.ReserveConfirm(t.Context())
		var unsent *Unsent
		if !errors.As(err, &unsent) || unsent.Reason != RefusalBreaker || unsent.RetryAfter < time.Second {
			t.Errorf("got %v", err)
		}
	})
}

// TestSlotSeconds_IsForHowLongASlotWasHeld: what a cap bears is bounded by that, whatever the gateway took of it.
func TestSlotSeconds_IsForHowLongASlotWasHeld(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		steps []step
		send  bool
		use   slotUse
		held  time.Duration
	}{
		{"approved", []step{shows(payment(nil))}, true, slotAnswered, time.Second},
		{"card refused", []step{says(403, "REJECT_CARD_PAYMENT")}, true, slotAnswered, time.Second},
		{"gateway silent", []step{{hangs: true}}, true, slotFailed, 31 * time.Second},
		{"the store said no", nil, false, slotUnsent, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				transport, _ := script(test.steps...)
				registry := prometheus.NewPedanticRegistry()
				cfg := testConfig(transport)
				cfg.Metrics = NewMetrics(registry)
				c := mustNew(t, cfg)
				permit, err := c.ReserveConfirm(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // a store is asked
				if test.send {
					c.Confirm(t.Context(), permit, ConfirmRequest{PaymentKey: "pk_1", OrderID: "o", Amount: ledger.Won(1), IdempotencyKey: "k"})
				}
				permit.Release()
				permit.Release()
				families, err := registry.Gather()
				if err != nil {
					t.Fatal(err)
				}
				for _, use := range slotUses() {
					count, held := slotsHeld(families, PathConfirm, use)
					switch {
					case use != test.use && count != 0:
						t.Errorf("%d slots %s, want none", count, use)
					case use == test.use && (count != 1 || held < test.held || held > test.held+time.Second):
						t.Errorf("%d slots %s for %s, want one for %s", count, use, held, test.held)
					}
				}
			})
		})
	}
}

// slotsHeld reads how many slots of a path ended so, and for how long they were held.
func slotsHeld(families []*dto.MetricFamily, path PathName, use slotUse) (count uint64, held time.Duration) {
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == "daesa_pgclient_slot_seconds" && labels["path"] == string(path) && labels["use"] == string(use) {
				return m.GetHistogram().GetSampleCount(), time.Duration(m.GetHistogram().GetSampleSum() * float64(time.Second))
			}
		}
	}
	return 0, 0
}

func TestReserve_RefusesOverTheCapAndGivesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport, calls := script(shows(payment(nil)))
		cfg := testConfig(transport)
		cfg.Paths.Confirm.Cap, cfg.Paths.Cancel.Cap, cfg.Replicas = 4, 2, 2
		c := mustNew(t, cfg)
		first, _ := c.ReserveConfirm(t.Context())
		second, _ := c.ReserveConfirm(t.Context())
		_, err := c.ReserveConfirm(t.Context())
		var unsent *Unsent
		if !errors.As(err, &unsent) || unsent.Reason != RefusalCap || unsent.RetryAfter == 0 {
			t.Errorf("got %v, want a refusal by the cap", err)
		}
		first.Release()
		first.Release()
		if _, err := c.ReserveConfirm(t.Context()); err != nil {
			t.Error("a slot given back could not be taken")
		}
		if _, err := c.ReserveConfirm(t.Context()); err == nil {
			t.Error("a double release freed two slots")
		}
		second.Release()
		if got := c.Confirm(t.Context(), second, ConfirmRequest{PaymentKey: "pk_1", OrderID: "o", Amount: ledger.Won(1), IdempotencyKey: "k"}); got.Verdict != VerdictUnprocessed {
			t.Error("sent under a permit that was given back")
		}
		held, _ := c.ReserveCancel(t.Context())
		go func() {
			time.Sleep(500 * time.Millisecond)
			held.Release()
		}()
		waited, err := c.ReserveCancel(t.Context())
		if err != nil {
			t.Error("the cancel path did not wait for a slot")
		}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if _, err := c.ReserveCancel(ctx); !errors.As(err, &unsent) || unsent.Reason != RefusalDeadline {
			t.Errorf("got %v, want a refusal by the deadline", err)
		}
		waited.Release()
		if calls.Load() != 0 {
			t.Error("reserving sent something")
		}
	})
}

func TestReserve_AnUnusedTrialGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport, _ := script(shows(payment(nil)))
		c := mustNew(t, testConfig(transport))
		for range 10 {
			failOnce(c.money)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for range 20 { // the caller's intent could not be committed, twenty times
			permit, err := c.ReserveConfirm(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			permit.Release()
		}
		for range 3 {
			if result, err := confirm(t.Context(), c); err != nil || result.Verdict != VerdictDone {
				t.Fatal(result, err)
			}
		}
		if c.money.State() != guard.Closed {
			t.Error("three good trials did not close the breaker")
		}
	})
}

func TestBreaker_DeclinedCardsDoNotOpenIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		steps := []step{}
		for range 50 {
			steps = append(steps, says(400, "INVALID_STOPPED_CARD"))
		}
		transport, _ := script(append(steps, shows(payment(nil)))...)
		c := mustNew(t, testConfig(transport))
		for range 50 {
			if got, _ := confirm(t.Context(), c); got.Verdict != VerdictRefused {
				t.Fatal(got)
			}
		}
		if got, _ := confirm(t.Context(), c); got.Verdict != VerdictDone {
			t.Error(got)
		}
	})
}

func TestRecover_AnAnswerClosesTheQueryBreakerEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		steps := []step{}
		for range 10 {
			steps = append(steps, step{hangs: true})
		}
		transport, calls := script(append(steps, shows(payment(nil)))...)
		cfg := testConfig(transport)
		cfg.Paths.Query.Patience = -1
		recovered := 0
		cfg.OnRecovered = func() { recovered++ }
		c := mustNew(t, cfg)
		began := time.Now()
		for range 10 {
			_, err := c.Query(t.Context(), ledger.ChannelWebhook, "pk_1")
			wantReason(t, err, ReasonTimeout)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("ten queries took %s", took)
		}
		_, err := c.Query(t.Context(), ledger.ChannelWebhook, "pk_1")
		wantReason(t, err, ReasonBreakerOpen)
		if calls.Load() != 10 || recovered != 0 {
			t.Errorf("%d calls, recovered %d", calls.Load(), recovered)
		}
		seen, err := c.Recover(t.Context(), ledger.ChannelSweep, "pk_1")
		if err != nil || seen.Channel != ledger.ChannelSweep || recovered != 1 {
			t.Fatal(seen, err, recovered)
		}
		if _, err := c.Query(t.Context(), ledger.ChannelWebhook, "pk_1"); err != nil {
			t.Errorf("still refused: %v", err)
		}
	})
}

func TestQuery_TheCallersEndIsNotTheGatewaysFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport, _ := script(step{hangs: true})
		c := mustNew(t, testConfig(transport))
		for range 20 {
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, stop)
			_, err := c.Query(ctx, ledger.ChannelWebhook, "pk_1")
			wantReason(t, err, ReasonCanceled)
		}
		if c.queries.State() != guard.Closed {
			t.Error("hang-ups opened the breaker")
		}
	})
}

func TestTransactions_AsksAgainAfterTheTimeTheGatewayNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := step{status: http.StatusTooManyRequests, retryAfter: "7"}
		transport, calls := script(slow, shows("[]"))
		c := mustNew(t, testConfig(transport))
		began := time.Now()
		_, err := c.Transactions(t.Context(), began.Add(-time.Hour), began, "", 100)
		took := time.Since(began)
		if err != nil || calls.Load() != 2 || took < 7*time.Second || took > 10*time.Second {
			t.Errorf("%v after %d calls in %s", err, calls.Load(), took)
		}
	})
}

func wantReason(t *testing.T, err error, want Reason) {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) || failure.Reason != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
