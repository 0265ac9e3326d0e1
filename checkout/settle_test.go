package checkout

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/checkout/store"
	"daesa/checkout/store/storesim"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// TestStore_NotReleasedWhileNobodyKnows: the outcome decides, however late it is known.
func TestStore_NotReleasedWhileNobodyKnows(t *testing.T) {
	t.Parallel()
	for name, took := range map[string]bool{"approved in the end": true, "came to nothing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openKitchen(t, shopOptions{paths: quickPaths()})
			orderID, key := k.order(50000)
			fault := tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Hang}
			if took {
				fault.Kind = tosssim.LostReply
			}
			k.sim.Fail(fault)
			k.confirm(key, orderID, 50000).wants(t, http.StatusAccepted, "unknown")
			for range 30 {
				k.later(time.Minute)
			}
			k.wantAcceptances(orderID, 1, acceptanceHeld)
			if took {
				k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
				k.later(5 * time.Minute)
				k.wantAcceptances(orderID, 1, acceptanceKept)
				return
			}
			must(t, k.sim.Expire(key))
			k.confirm(key, orderID, 50000)
			k.wantBooks(key, ledger.StatusFailed, ledger.OrderPending)
			k.later(5 * time.Minute)
			k.wantAcceptances(orderID, 0, acceptanceReleased)
		})
	}
}

// TestStore_LeftBehind: a process that died between the store's yes and the intent leaves a row, and the row a release.
// Should the process be alive after all, its intent finds the acceptance taken away.
func TestStore_LeftBehind(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	wish := ledger.Intent{PaymentKey: key, OrderID: orderID, Amount: ledger.Won(50000)}
	a, err := k.handler.askStore(t.Context(), wish)
	must(t, err)
	k.confirm(key, orderID, 50000).wants(t, http.StatusConflict, "confirm_under_way")
	k.later(abandonedAfter - time.Second)
	k.wantAcceptances(orderID, 1, acceptanceAsking)
	k.later(2 * time.Second)
	k.wantAcceptances(orderID, 0, acceptanceReleasing)
	if _, err := k.handler.intend(t.Context(), wish, a); !strings.Contains(fmt.Sprint(err), ErrStoreLate.Error()) {
		t.Errorf("got %v: an intent was committed over a release", err)
	}
	if k.count(`SELECT count(*) FROM payments`) != 0 {
		t.Error("the intent stands")
	}
	k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
	k.later(5 * time.Minute)
	k.wantAcceptances(orderID, 1, acceptanceReleased, acceptanceKept)
}

// TestStore_LeftBehindDoesNotBlockTheOrder: the next press takes an abandoned question away by itself.
func TestStore_LeftBehindDoesNotBlockTheOrder(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	_, err := k.handler.askStore(t.Context(), ledger.Intent{PaymentKey: key, OrderID: orderID, Amount: ledger.Won(50000)})
	must(t, err)
	k.ahead.Store(int64(abandonedAfter + time.Second))
	k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
	k.wantAcceptances(orderID, 2, acceptanceReleasing, acceptanceHeld)
	k.later(2 * time.Second)
	k.later(5 * time.Minute)
	k.wantAcceptances(orderID, 1, acceptanceReleased, acceptanceKept)
}

// TestStore_OrderExpiresMeanwhile: an order whose time is over while the store is asked is released at once.
func TestStore_OrderExpiresMeanwhile(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	k.store.Fail(storesim.Fault{Op: storesim.Ask, Kind: storesim.Delay, Delay: time.Minute})
	pressed := make(chan said, 1)
	go func() {
		answer, _ := k.try(t.Context(), "POST", "/v1/payments/confirm", confirmOf(key, orderID, 50000))
		pressed <- answer
	}()
	eventually(t, "the question is at the store", func() bool { return k.store.UnderWay() == 1 })
	k.ahead.Store(int64(31 * time.Minute))
	k.store.Heal()
	(<-pressed).wants(t, http.StatusConflict, "order_expired")
	k.wantAcceptances(orderID, 1, acceptanceReleasing)
	k.later(0)
	k.wantAcceptances(orderID, 0, acceptanceReleased)
}

// TestStore_IntentTurnedDown: what the store accepted for an order that cannot be paid any more is released at once.
func TestStore_IntentTurnedDown(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	wish := ledger.Intent{PaymentKey: key, OrderID: orderID, Amount: ledger.Won(50000)}
	a, err := k.handler.askStore(t.Context(), wish)
	must(t, err)
	wish.Amount = ledger.Won(49999)
	if _, err := k.handler.intend(t.Context(), wish, a); err == nil {
		t.Fatal("an intent for another amount was committed")
	}
	k.handler.end(t.Context(), a)
	k.later(0)
	k.wantAcceptances(orderID, 0, acceptanceReleased)
}

// TestStore_ReleasedAndPaidAfterAll: the gateway's evidence may come late, and wins. Then somebody has to look.
func TestStore_ReleasedAndPaidAfterAll(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
	k.confirm(key, orderID, 50000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
	k.later(2 * time.Second)
	k.wantAcceptances(orderID, 0, acceptanceReleased)
	must(t, k.sim.Approve(key))
	seen, err := k.handler.lookUp(t.Context(), key)
	must(t, err)
	_, err = k.handler.record(t.Context(), seen)
	must(t, err)
	k.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
	k.later(4 * time.Minute)
	k.later(time.Hour)
	if diff := cmp.Diff([]string{orderID + " released"}, k.checks()); diff != "" {
		t.Errorf("what the merchant was told (-want +got):\n%s", diff)
	}
	if got := k.count(`SELECT count(*) FROM river.river_job WHERE kind = 'deliver_event' AND args->>'event_id' IN (SELECT event_id FROM events WHERE kind = 'order.store_check')`); got != 1 {
		t.Errorf("%d deliveries of it, want 1", got)
	}
}

// TestStore_ReleaseIsTriedUntilItIsHeard, and after three days somebody is told that the store may still hold an order.
func TestStore_ReleaseIsTriedUntilItIsHeard(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	refuse := func() string {
		orderID, key := k.order(50000)
		k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
		k.confirm(key, orderID, 50000)
		return orderID
	}
	first, second := refuse(), refuse()
	for range store.ReleasesAtOnce {
		refuse()
	}
	k.store.Fail(storesim.Fault{Op: storesim.Release, Kind: storesim.Status, Code: 503, N: -1})
	k.later(2 * time.Second)
	if got := k.store.Count(storesim.Release); got != store.ReleasesAtOnce {
		t.Errorf("%d releases at a store that fails, want the first few: the others would fare the same", got)
	}
	k.wantAcceptances(first, 1, acceptanceReleasing)
	k.wantAcceptances(second, 1, acceptanceReleasing)
	k.later(4 * time.Second)
	if got := k.store.Count(storesim.Release); got != store.ReleasesAtOnce {
		t.Errorf("%d releases before the next is due, want %d", got, store.ReleasesAtOnce)
	}
	k.wantMetric(`daesa_checkout_acceptances{state="releasing"}`, store.ReleasesAtOnce+2)
	k.later(time.Second)
	k.store.Fail(storesim.Fault{Op: storesim.Release, Kind: storesim.Status, Code: 503, N: -1, OrderID: second})
	k.store.Heal()
	k.later(20 * time.Second)
	k.later(20 * time.Second)
	k.wantAcceptances(first, 0, acceptanceReleased)
	k.wantAcceptances(second, 0, acceptanceReleased)

	third := refuse()
	k.store.Fail(storesim.Fault{Op: storesim.Release, Kind: storesim.Status, Code: 503, N: -1})
	for range 3*24 + 2 {
		k.later(time.Hour)
	}
	k.wantAcceptances(third, 1, acceptanceGivenUp)
	if diff := cmp.Diff([]string{third + " unreleased"}, k.checks()); diff != "" {
		t.Errorf("what the merchant was told (-want +got):\n%s", diff)
	}
	k.wantMetric(`daesa_checkout_store_releases_total{result="given_up"}`, 1)
}

// TestStore_TwoSettlers: rows in hand are out of others' reach, and a release is heard once.
func TestStore_TwoSettlers(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{paths: quickPaths()})
	k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT", N: 8})
	for range 8 {
		orderID, key := k.order(1000)
		k.confirm(key, orderID, 1000)
	}
	other, err := NewSettler(k.settler.cfg)
	must(t, err)
	k.ahead.Store(int64(3 * time.Second))
	var group sync.WaitGroup
	for _, s := range []*Settler{k.settler, other} {
		group.Go(func() {
			if err := s.Settle(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	k.later(10 * time.Second)
	if got := k.store.Count(storesim.Release); got != 8 || len(k.store.Held()) != 0 {
		t.Errorf("%d releases and %v held, want 8 and none", got, k.store.Held())
	}
}

// TestAcceptances_WordsAreTheSameInGoAndInTheDatabase tries every state and word that Go knows, and one that it does not.
func TestAcceptances_WordsAreTheSameInGoAndInTheDatabase(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	for constraint, want := range map[string][]string{
		"acceptances_state_known": wordsOf(acceptanceStates()),
		"acceptances_word_known":  wordsOf(store.Words()),
	} {
		definition := k.list(`SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = '` + constraint + `'`)[0]
		var got []string
		for n, part := range strings.Split(definition, "'") {
			if n%2 == 1 && part != "" {
				got = append(got, part)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-Go +database):\n%s", constraint, diff)
		}
	}
}

func wordsOf[T ~string](all []T) []string {
	texts := make([]string, 0, len(all))
	for _, v := range all {
		texts = append(texts, string(v))
	}
	slices.Sort(texts)
	return texts
}

// TestStore_RoundTrips: without a store a confirm costs what it did, with one it costs two more.
func TestStore_RoundTrips(t *testing.T) {
	t.Parallel()
	trips := func(s *shop, meter *postgrestest.Meter) int64 {
		for range 3 { // what is prepared once is not prepared again
			s.paid(1000)
		}
		orderID, key := s.order(1000)
		must(t, s.db.Ping(t.Context())) // a connection idle for a second is tried before it is used
		before := meter.RoundTrips()
		s.confirm(key, orderID, 1000).wants(t, http.StatusOK, "done")
		return meter.RoundTrips() - before
	}
	pool, meter := postgrestest.NewMetered(t)
	without := trips(open(t, shopOptions{db: pool}), meter)
	pool, meter = postgrestest.NewMetered(t)
	k := openKitchen(t, shopOptions{db: pool})
	k.unwatched = true
	if with := trips(k.shop, meter); with != without+2 {
		t.Errorf("got %d round trips with a store and %d without, want two more", with, without)
	}
}

// TestStore_RowsInHandAreLeftAlone: whoever holds a row, another settler of this instance or the next, is not waited for.
func TestStore_RowsInHandAreLeftAlone(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT", N: 2})
	held, key := k.order(1000)
	k.confirm(key, held, 1000)
	free, key := k.order(1000)
	k.confirm(key, free, 1000)
	tx, err := k.db.Begin(t.Context()) //nolint:forbidigo // it is left open on purpose
	must(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM acceptances WHERE order_id = $1 FOR UPDATE`, held)
	must(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	k.ahead.Store(int64(3 * time.Second))
	must(t, k.settler.Settle(ctx))
	k.wantAcceptances(held, 1, acceptanceHeld)
	k.wantAcceptances(free, 0, acceptanceReleased)
	must(t, tx.Rollback(t.Context()))
	k.later(0)
	k.wantAcceptances(held, 0, acceptanceReleased)
}
