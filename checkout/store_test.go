package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/checkout/store"
	"daesa/checkout/store/storesim"
	"daesa/internal/guard"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// kitchen is a shop whose orders a store has to take on.
type kitchen struct {
	*shop
	store   *storesim.Sim
	client  *store.Client
	settler *Settler

	unwatched bool // questions are let through without a look at the books
}

// openKitchen opens the shop with a store that nothing is asked of before its question is committed.
func openKitchen(t *testing.T, o shopOptions) *kitchen {
	t.Helper()
	k := &kitchen{store: storesim.New(storesim.Config{Secret: eventSecret, Base: -1})}
	server := httptest.NewServer(k.witness(t))
	t.Cleanup(server.Close)
	t.Cleanup(k.store.Heal)
	var err error
	k.client, err = store.New(store.Config{
		URL: server.URL, Secret: eventSecret, Metrics: store.NewMetrics(prometheus.NewPedanticRegistry()),
		Limits: store.Limits{Breaker: guard.BreakerLimits{Window: 100, MinCalls: 100}},
		Log:    slog.New(slog.DiscardHandler), Now: time.Now,
	})
	must(t, err)
	t.Cleanup(k.client.Close)
	change := o.config
	o.config = func(c *Config) {
		c.Store = k.client
		if change != nil {
			change(c)
		}
	}
	k.shop = open(t, o)
	k.settler, err = NewSettler(SettlerConfig{
		DB: k.db, Notices: k.notices, Store: k.client, Metrics: k.metrics, Log: slog.New(slog.DiscardHandler), Now: k.handler.now,
	})
	must(t, err)
	return k
}

// witness lets a question through only if its row is committed (S1).
func (k *kitchen) witness(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if k.unwatched {
			k.store.Handler().ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		var asked struct {
			ID string `json:"acceptance_id"`
		}
		_ = json.Unmarshal(body, &asked)
		var committed int
		if err := k.db.QueryRow(r.Context(), `SELECT count(*) FROM acceptances WHERE state = 'asking' AND acceptance_id = $1`, asked.ID).
			Scan(&committed); r.URL.Path == "/" && err == nil && committed != 1 {
			t.Errorf("the store was asked under %s, and no row is committed", asked.ID)
		}
		k.store.Handler().ServeHTTP(w, r)
	})
}

// list is the one column that a query gives.
func (k *kitchen) list(sql string) []string {
	k.t.Helper()
	rows, err := k.db.Query(k.t.Context(), sql)
	must(k.t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(k.t, err)
	return texts
}

// later moves the clock and lets the settler do what is due.
func (k *kitchen) later(d time.Duration) {
	k.t.Helper()
	k.ahead.Add(int64(d))
	must(k.t, k.settler.Settle(k.t.Context()))
}

// wantAcceptances compares the states of an order's acceptances, oldest first, and what the store holds for it.
func (k *kitchen) wantAcceptances(orderID string, held int, states ...acceptanceState) {
	k.t.Helper()
	rows := k.list(`SELECT state FROM acceptances WHERE order_id = '` + orderID + `' ORDER BY asked_at`)
	want := make([]string, 0, len(states))
	for _, s := range states {
		want = append(want, string(s))
	}
	if diff := cmp.Diff(want, rows); diff != "" && len(want)+len(rows) > 0 {
		k.t.Errorf("acceptances of %s (-want +got):\n%s", orderID, diff)
	}
	got := len(slices.DeleteFunc(k.store.Held(), func(id string) bool { return id != orderID }))
	if got != held {
		k.t.Errorf("the store holds %d acceptances of %s, want %d: %+v", got, orderID, held, k.store.Acceptances())
	}
}

// checks is the events by which the merchant was told to look, as "order reason".
func (k *kitchen) checks() []string {
	k.t.Helper()
	return k.list(`SELECT order_id || ' ' || (facts->>'reason') FROM events WHERE kind = 'order.store_check' ORDER BY created_at`)
}

func TestStore_AcceptsAndKeeps(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.paid(50000)
	k.wantBooks(key, ledger.StatusDone, ledger.OrderPaid)
	k.wantAcceptances(orderID, 1, acceptanceHeld)
	k.later(2 * time.Second)
	k.wantAcceptances(orderID, 1, acceptanceKept)
	k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
	k.later(time.Hour)
	if k.store.Count(storesim.Ask) != 1 || k.store.Count(storesim.Release) != 0 || len(k.checks()) != 0 {
		t.Errorf("asked %d times, released %d times, told %v", k.store.Count(storesim.Ask), k.store.Count(storesim.Release), k.checks())
	}
	want := []storesim.Acceptance{{OrderID: orderID, Amount: "50000", Currency: "KRW", State: storesim.Held, Asked: 1}}
	got := k.store.Acceptances()
	got[0].ID = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	k.wantMetric(`daesa_checkout_store_answers_total{policy="accept",word="accepted"}`, 1)
	k.wantMetric(`daesa_checkout_acceptances{state="held"}`, 0)
}

func TestStore_Declines(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	k.store.Decline(orderID, "영업이 끝났습니다")
	answer := k.confirm(key, orderID, 50000)
	answer.wants(t, http.StatusConflict, "store_declined")
	if got := answer.text("detail"); got != "영업이 끝났습니다" {
		t.Errorf("got the detail %q, want the store's reason", got)
	}
	if k.sim.Count(tosssim.Confirm) != 0 || k.count(`SELECT count(*) FROM payments`) != 0 {
		t.Error("a declined order reached the gateway or the books")
	}
	k.later(time.Hour)
	k.wantAcceptances(orderID, 0, acceptanceDeclined)
	if got := k.store.Count(storesim.Release); got != 0 {
		t.Errorf("%d releases of what was declined", got)
	}
	k.wantMetric(`daesa_checkout_confirms_total{result="declined"}`, 1)
	k.wantMetric(`daesa_checkout_refused_before_sending_krw_total{reason="store_declined"}`, 50000)
}

// TestStore_DeclinedStaysPayable: the next press is a question of its own.
func TestStore_DeclinedStaysPayable(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	k.store.Decline("", "busy")
	k.confirm(key, orderID, 50000).wants(t, http.StatusConflict, "store_declined")
	k.store.Decline("", "")
	k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
	k.later(time.Minute)
	k.wantAcceptances(orderID, 1, acceptanceDeclined, acceptanceKept)
}

// silences are the ways in which a store does not say yes or no, and whether it took the order on all the same.
func silences() map[string]struct {
	fault  storesim.Fault
	word   store.Word
	status string
	took   bool
} {
	return map[string]struct {
		fault  storesim.Fault
		word   store.Word
		status string
		took   bool
	}{
		"silent":                {storesim.Fault{Kind: storesim.Hang}, store.Late, "store_late", false},
		"accepted and silent":   {storesim.Fault{Kind: storesim.DoThenHang}, store.Late, "store_late", true},
		"failing":               {storesim.Fault{Kind: storesim.Status, Code: 503}, store.Unreachable, "store_down", false},
		"accepted and lost":     {storesim.Fault{Kind: storesim.LostReply}, store.Unreachable, "store_down", true},
		"accepted, said a page": {storesim.Fault{Kind: storesim.Garbage}, store.Unreachable, "store_down", true},
	}
}

func TestStore_SaysNothing_Refuse(t *testing.T) {
	t.Parallel()
	for name, silence := range silences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openKitchen(t, shopOptions{})
			orderID, key := k.order(50000)
			silence.fault.Op = storesim.Ask
			k.store.Fail(silence.fault)
			answer := k.confirm(key, orderID, 50000)
			answer.wants(t, http.StatusServiceUnavailable, silence.status)
			if after, err := strconv.Atoi(answer.header.Get("Retry-After")); err != nil || after < 1 || after > 3 {
				t.Errorf("got Retry-After %q, want 1 to 3", answer.header.Get("Retry-After"))
			}
			if k.sim.Count(tosssim.Confirm) != 0 || k.count(`SELECT count(*) FROM payments`) != 0 {
				t.Error("reached the gateway or the books without the store's word")
			}
			k.wantAcceptances(orderID, map[bool]int{true: 1}[silence.took], acceptanceReleasing)
			k.later(0)
			k.wantAcceptances(orderID, 0, acceptanceReleasing) // released once; the question may still come through
			k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
			k.later(5 * time.Minute)
			k.wantAcceptances(orderID, 1, acceptanceReleased, acceptanceKept)
			if got := k.store.Count(storesim.Release); got != 2 {
				t.Errorf("%d releases, want 2", got)
			}
			k.wantMetric(`daesa_checkout_refused_before_sending_krw_total{reason="store_`+string(silence.word)+`"}`, 50000)
		})
	}
}

func TestStore_SaysNothing_Accept(t *testing.T) {
	t.Parallel()
	for name, silence := range silences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openKitchen(t, shopOptions{config: func(c *Config) { c.StoreLate, c.StoreUnreachable = StoreAccept, StoreAccept }})
			orderID, key := k.order(50000)
			silence.fault.Op, silence.fault.N = storesim.Ask, 2
			k.store.Fail(silence.fault)
			k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
			k.later(2 * time.Second)
			k.wantAcceptances(orderID, map[bool]int{true: 1}[silence.took], acceptanceKept)
			if diff := cmp.Diff([]string{orderID + " " + string(silence.word)}, k.checks()); diff != "" {
				t.Errorf("what the merchant was told (-want +got):\n%s", diff)
			}
			refused, key := k.order(50000)
			k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
			k.confirm(key, refused, 50000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
			k.later(2 * time.Second)
			k.later(5 * time.Minute)
			k.wantAcceptances(refused, 0, acceptanceReleased)
			if len(k.checks()) != 1 {
				t.Errorf("told of an order that nobody paid: %v", k.checks())
			}
			k.wantMetric(`daesa_checkout_store_checks_total{reason="`+string(silence.word)+`"}`, 1)
		})
	}
}

// TestStore_OurGuardRefuses: nothing was sent to the store, so nothing has to be released.
func TestStore_OurGuardRefuses(t *testing.T) {
	t.Parallel()
	for policy, want := range map[StorePolicy]string{StoreRefuse: "503 store_down", StoreAccept: "200 done"} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			k := openKitchen(t, shopOptions{config: func(c *Config) {
				c.Store, c.StoreUnreachable = refusing{guard.RefusalBreaker}, policy
			}})
			orderID, key := k.order(50000)
			answer := k.confirm(key, orderID, 50000)
			if got := fmt.Sprint(answer.status, " ", answer.text("code"), answer.text("status")); !strings.HasPrefix(got, want[:3]) || !strings.Contains(got, want[4:]) {
				t.Errorf("got %s, want %s", got, want)
			}
			k.later(2 * time.Second)
			if policy == StoreRefuse {
				k.wantAcceptances(orderID, 0)
				return
			}
			k.wantAcceptances(orderID, 0, acceptanceKept)
			if diff := cmp.Diff([]string{orderID + " unreachable"}, k.checks()); diff != "" {
				t.Error(diff)
			}
			second, key := k.order(50000)
			k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"})
			k.confirm(key, second, 50000).wants(t, http.StatusPaymentRequired, "REJECT_CARD_PAYMENT")
			k.later(2 * time.Second)
			k.wantAcceptances(second, 0, acceptanceVoid)
			if k.store.Count(storesim.Release) != 0 {
				t.Error("released what was never asked about")
			}
		})
	}
}

// refusing is a store whose guard lets nothing through.
type refusing struct{ reason guard.Refusal }

func (r refusing) Reserve(context.Context) (*store.Permit, error) {
	return nil, &store.Unsent{Reason: r.reason}
}

func (refusing) Ask(context.Context, *store.Permit, store.Acceptance) store.Answer {
	panic("asked without a permit")
}

func (refusing) Release(context.Context, store.Acceptance) error { return store.ErrBusy }

// TestStore_ReleasedOnEveryNonApproval: whatever the gateway says that is no approval, the store hears of it.
func TestStore_ReleasedOnEveryNonApproval(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault tosssim.Fault
		want  string
	}{
		"refused":     {tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: "REJECT_CARD_PAYMENT"}, "REJECT_CARD_PAYMENT"},
		"turned away": {tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Code: 401, Body: "UNAUTHORIZED_KEY"}, "gateway_setup"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openKitchen(t, shopOptions{})
			orderID, key := k.order(50000)
			k.sim.Fail(test.fault)
			if got := k.confirm(key, orderID, 50000).text("code"); got != test.want {
				t.Fatalf("got %s, want %s", got, test.want)
			}
			k.wantAcceptances(orderID, 1, acceptanceHeld)
			k.later(2 * time.Second)
			k.wantAcceptances(orderID, 0, acceptanceReleased)
			key = k.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000})
			k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
			k.later(5 * time.Second)
			k.wantAcceptances(orderID, 1, acceptanceReleased, acceptanceKept)
		})
	}
}

// TestStore_TheGatewaysGuardIsAskedFirst: a confirm that our own guard turns away costs the store nothing.
func TestStore_TheGatewaysGuardIsAskedFirst(t *testing.T) {
	t.Parallel()
	paths := quickPaths()
	paths.Confirm.Cap = 1
	paths.Confirm.Attempt, paths.Confirm.Total = 20*time.Second, 20*time.Second
	k := openKitchen(t, shopOptions{paths: paths})
	k.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Delay, Delay: time.Minute})
	firstOrder, firstKey := k.order(50000)
	orderID, key := k.order(50000)
	first := make(chan said, 1)
	go func() {
		answer, _ := k.try(t.Context(), "POST", "/v1/payments/confirm", confirmOf(firstKey, firstOrder, 50000))
		first <- answer
	}()
	eventually(t, "the first is at the gateway", func() bool { return k.sim.Count(tosssim.Confirm) == 1 })
	k.confirm(key, orderID, 50000).wants(t, http.StatusServiceUnavailable, "gateway_busy")
	k.wantAcceptances(orderID, 0)
	k.sim.Heal()
	(<-first).wants(t, http.StatusOK, "done")
}

// TestStore_DoubleClickIsOneQuestion: the second press comes back; the store is asked once.
func TestStore_DoubleClickIsOneQuestion(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	k.store.Fail(storesim.Fault{Op: storesim.Ask, Kind: storesim.Delay, Delay: 300 * time.Millisecond})
	first := make(chan said, 1)
	go func() {
		answer, _ := k.try(t.Context(), "POST", "/v1/payments/confirm", confirmOf(key, orderID, 50000))
		first <- answer
	}()
	eventually(t, "the first is at the store", func() bool { return k.store.UnderWay() == 1 })
	second := k.confirm(key, orderID, 50000)
	second.wants(t, http.StatusConflict, "confirm_under_way")
	if second.header.Get("Retry-After") != "1" {
		t.Errorf("got Retry-After %q", second.header.Get("Retry-After"))
	}
	other := k.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000})
	k.confirm(other, orderID, 50000).wants(t, http.StatusConflict, "confirm_under_way")
	k.store.Heal()
	(<-first).wants(t, http.StatusOK, "done")
	k.confirm(key, orderID, 50000).wants(t, http.StatusOK, "done")
	k.confirm(other, orderID, 50000).wants(t, http.StatusConflict, "order_taken")
	k.later(time.Minute)
	k.wantAcceptances(orderID, 1, acceptanceKept)
	if got := k.store.Count(storesim.Ask); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
}

// TestStore_StormOfOneOrder: whatever presses race, one acceptance stands and belongs to the payment that was taken.
func TestStore_StormOfOneOrder(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID := k.bareOrder(50000)
	var keys []string
	for range 4 {
		key := k.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000})
		keys = append(keys, key, key, key)
	}
	for range 5 {
		k.press(orderID, keys)
	}
	for range 20 {
		k.later(time.Minute)
	}
	if got := k.sim.Totals().Captures; got != 1 {
		t.Errorf("got %d captures, want 1", got)
	}
	if held := k.store.Held(); len(held) != 1 {
		t.Errorf("the store holds %v, want the order once", held)
	}
	if open := k.list(`SELECT state FROM acceptances WHERE state NOT IN ('kept', 'released', 'void')`); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
}

// TestStore_BuyerHangsUp: the wish is gone, and what the store may hold goes with it.
func TestStore_BuyerHangsUp(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.order(50000)
	k.store.Fail(storesim.Fault{Op: storesim.Ask, Kind: storesim.DoThenHang})
	ctx, hangUp := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _, _ = k.try(ctx, "POST", "/v1/payments/confirm", confirmOf(key, orderID, 50000)) })
	eventually(t, "the store took it on", func() bool { return len(k.store.Held()) == 1 })
	hangUp()
	group.Wait()
	eventually(t, "the release is owed", func() bool {
		return k.count(`SELECT count(*) FROM acceptances WHERE state = 'releasing'`) == 1
	})
	k.later(0)
	k.later(5 * time.Minute)
	k.wantAcceptances(orderID, 0, acceptanceReleased)
	if k.sim.Count(tosssim.Confirm) != 0 {
		t.Error("sent to the gateway for a buyer who has gone")
	}
}

// TestStore_NotAskedForWhatCannotBePaid: an order that is paid, expired or held by another payment is none of the store's
// business.
func TestStore_NotAskedForWhatCannotBePaid(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, _ := k.paid(50000)
	k.confirm(k.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000}), orderID, 50000).wants(t, http.StatusConflict, "order_taken")
	expired, key := k.order(50000)
	k.ahead.Store(int64(31 * time.Minute))
	k.confirm(key, expired, 50000).wants(t, http.StatusConflict, "order_expired")
	if got := k.store.Count(storesim.Ask); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
	k.wantAcceptances(expired, 0)
}

// TestStore_WithoutAStore: nothing is asked, and nothing is written.
func TestStore_WithoutAStore(t *testing.T) {
	t.Parallel()
	s := open(t, shopOptions{})
	s.paid(50000)
	if got := s.count(`SELECT count(*) FROM acceptances`); got != 0 {
		t.Errorf("%d acceptances without a store", got)
	}
}

// TestStore_NobodyListens: a connection that was never made asked nothing, so there is nothing to release.
func TestStore_NobodyListens(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := store.New(store.Config{
		URL: server.URL, Secret: eventSecret, Metrics: store.NewMetrics(prometheus.NewPedanticRegistry()),
		Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	must(t, err)
	t.Cleanup(client.Close)
	k := openKitchen(t, shopOptions{config: func(c *Config) { c.Store = client }})
	orderID, key := k.order(50000)
	k.confirm(key, orderID, 50000).wants(t, http.StatusServiceUnavailable, "store_down")
	k.wantAcceptances(orderID, 0, acceptanceVoid)
}

// TestStore_BuyerGone: whoever has gone before the store is asked, or before the intent, pays for nothing, whatever the
// policy lets pass.
func TestStore_BuyerGone(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{config: func(c *Config) { c.StoreLate = StoreAccept }})
	orderID, key := k.order(50000)
	wish := ledger.Intent{PaymentKey: key, OrderID: orderID, Amount: ledger.Won(50000)}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if a, err := k.handler.askStore(gone, wish); !errors.Is(err, context.Canceled) || a != (acceptance{}) {
		t.Errorf("got %+v, %v", a, err)
	}
	a, err := k.handler.askStore(t.Context(), wish)
	must(t, err)
	if _, err := k.handler.intend(gone, wish, a); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := k.count(`SELECT count(*) FROM payments`); n != 0 {
		t.Errorf("%d intents for a buyer who has gone", n)
	}
	k.wantAcceptances(orderID, 1, acceptanceAsking)
}

// TestStore_WhoIsNotAskedAboutHoldsNoSlot: thirty orders that cannot be paid leave all of the store's slots free.
func TestStore_WhoIsNotAskedAboutHoldsNoSlot(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	expired, key := k.order(50000)
	k.ahead.Store(int64(31 * time.Minute))
	for range 30 {
		a, err := k.handler.askStore(t.Context(), ledger.Intent{PaymentKey: key, OrderID: expired, Amount: ledger.Won(50000)})
		if err != nil || a != (acceptance{}) {
			t.Fatalf("got %+v, %v", a, err)
		}
	}
}

// TestStore_AskedOnlyAboutWhatCanBePaid: while another payment of the order is in doubt, or this one is, nobody asks; one
// that has let its order go stands in nobody's way.
func TestStore_AskedOnlyAboutWhatCanBePaid(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, key := k.paid(50000)
	other := k.sim.Authenticate(tosssim.Checkout{OrderID: orderID, Amount: 50000})
	for _, test := range []struct {
		name, orders, payments string
		key                    string
		want                   bool
	}{
		{"in doubt", "'pending'", "status = 'unknown'", key, false},
		{"another is in doubt", "'pending'", "status = 'unknown'", other, false},
		{"another has let the order go", "'pending'", "surplus = true", other, true},
		{"the order is closed", "'expired'", "surplus = true", other, false},
	} {
		_, err := k.db.Exec(t.Context(), `DELETE FROM acceptances`)
		must(t, err)
		_, err = k.db.Exec(t.Context(), `UPDATE payments SET captured = 0, undecided_since = now(), `+test.payments+` WHERE payment_key = $1`, key)
		must(t, err)
		_, err = k.db.Exec(t.Context(), `UPDATE orders SET status = `+test.orders+` WHERE order_id = $1`, orderID)
		must(t, err)
		begun, err := k.handler.begin(t.Context(), newAcceptanceID(), ledger.Intent{PaymentKey: test.key, OrderID: orderID, Amount: ledger.Won(50000)})
		if err != nil || begun != test.want {
			t.Errorf("%s: got %t, %v, want %t", test.name, begun, err, test.want)
		}
	}
	_, err := k.db.Exec(t.Context(), `UPDATE payments SET captured = 50000, undecided_since = NULL, status = 'done', surplus = false`)
	must(t, err)
	_, err = k.db.Exec(t.Context(), `UPDATE orders SET status = 'paid'`)
	must(t, err)
}

// TestStore_EndTouchesNoHeldAcceptance: once the intent is committed the payment decides, whoever thinks otherwise.
func TestStore_EndTouchesNoHeldAcceptance(t *testing.T) {
	t.Parallel()
	k := openKitchen(t, shopOptions{})
	orderID, _ := k.paid(50000)
	id := k.list(`SELECT acceptance_id FROM acceptances`)[0]
	k.handler.end(t.Context(), acceptance{id: id, word: store.Accepted, sent: true})
	k.later(time.Minute)
	k.wantAcceptances(orderID, 1, acceptanceKept)
}
