package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// lived is a shop that writes down, after each step, what the books said of one order and its payments.
type lived struct {
	*shop
	order string
	last  map[string]string
	saw   []string
}

// see writes down what has changed.
func (l *lived) see() {
	l.t.Helper()
	//nolint:rowserrcheck // ForEachRow closes the rows and checks their error
	rows, err := l.db.Query(l.t.Context(), `
		SELECT 'payment ' || payment_key, status || ' ' || captured - canceled FROM payments WHERE order_id = $1
		UNION ALL
		SELECT 'order', status FROM orders WHERE order_id = $1
		ORDER BY 1 DESC`, l.order)
	l.must(err)
	var who, state string
	_, err = pgx.ForEachRow(rows, []any{&who, &state}, func() error {
		if l.last[who] != state {
			l.last[who] = state
			l.saw = append(l.saw, fmt.Sprintf("%s %s %s", l.now.Format(time.TimeOnly), who, state))
		}
		return nil
	})
	l.must(err)
}

// told are the states of the timeline in the same words.
func (l *lived) told() []string {
	l.t.Helper()
	var told []string
	l.must(l.Order(l.t.Context(), l.order, func(r Report) error {
		return r.Tables[1].each(func(row Row) error {
			at, source, what, result := time.Time(row[0].(Instant)), fmt.Sprint(row[1]), fmt.Sprint(row[2]), fmt.Sprint(row[3])
			clock := at.In(ledger.Seoul()).Format(time.TimeOnly)
			switch {
			case source == "order" && what == "created", source == "order" && what == "state":
				told = append(told, fmt.Sprintf("%s order %s", clock, result))
			case source == "payment" && what == "state":
				told = append(told, fmt.Sprintf("%s payment %s %s %d", clock, row[6], result, row[5].(Money).Minor))
			}
			return nil
		})
	}))
	return told
}

// key is a payment key, or a part of one, of this order's own.
func (l *lived) key(key string) string { return l.order + "_" + key }

// opens is a new order.
func (l *lived) opens() {
	l.t.Helper()
	l.tx(func(tx pgx.Tx) error {
		_, err := l.books.CreateOrder(l.t.Context(), tx, ledger.Order{ID: l.order, Amount: ledger.Won(10_000), ExpiresAt: l.now.Add(30 * time.Minute)})
		return err
	})
	l.see()
}

// intends takes an attempt.
func (l *lived) intends(key string) {
	l.t.Helper()
	l.pass(time.Minute)
	l.tx(func(tx pgx.Tx) error {
		in, err := l.books.Intend(l.t.Context(), tx, ledger.Intent{PaymentKey: l.key(key), OrderID: l.order, Amount: ledger.Won(10_000)})
		if err == nil && !in.Started {
			return fmt.Errorf("the attempt did not start: %+v", in)
		}
		return err
	})
	l.see()
}

// ends is the answer to an attempt.
func (l *lived) ends(key string, attempt int, evidence ledger.Evidence) {
	l.t.Helper()
	l.pass(time.Minute)
	l.record(ledger.Observation{
		PaymentKey: l.key(key), Channel: ledger.ChannelConfirm, Evidence: evidence, Attempt: attempt, AskedAt: l.now, SeenAt: l.now, Word: "WORD",
	})
	l.see()
}

// shows is what the gateway says of the payment after a while.
func (l *lived) shows(after time.Duration, key string, evidence ledger.Evidence, change func(*ledger.Observation)) {
	l.t.Helper()
	l.pass(after)
	o := ledger.Observation{
		PaymentKey: l.key(key), OrderID: l.order, Channel: ledger.ChannelSweep, Evidence: evidence, AskedAt: l.now, SeenAt: l.now, Word: "WORD",
		Total: ledger.Won(10_000),
	}
	if evidence == ledger.EvidenceCaptured {
		o.CapturedAt, o.LastTransactionKey = l.now, "tx_"+l.key(l.now.Format("150405"))
	}
	if change != nil {
		change(&o)
	}
	l.record(o)
	l.see()
}

// account says that it is about a virtual account.
func account(o *ledger.Observation) { o.VirtualAccount = true }

// expires lets the order's time be over.
func (l *lived) expires() {
	l.t.Helper()
	l.pass(time.Hour)
	l.tx(func(tx pgx.Tx) error {
		_, err := l.books.ExpireOrders(l.t.Context(), tx, 10)
		return err
	})
	l.see()
}

// gaveBack are cancels of a captured payment.
func gaveBack(at time.Time, amounts ...int64) func(*ledger.Observation) {
	return func(o *ledger.Observation) {
		o.CapturedAt = at
		for i, won := range amounts {
			o.Cancels = append(o.Cancels, ledger.ObservedCancel{
				TransactionKey: fmt.Sprintf("cx_%s_%d", o.PaymentKey, i), State: ledger.CancelDone, Amount: ledger.Won(won), CanceledAt: at,
			})
		}
	}
}

// TestOrder_TellsEveryState: whatever an order lives through, its report tells each state that it and its payments took,
// when, and in that order; and what the store was asked.
func TestOrder_TellsEveryState(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lives func(l *lived)
		// later are states that are told at another instant, or no more.
		want func(saw []string) []string
	}{
		{name: "turned away, paid and given back in two parts", lives: func(l *lived) {
			l.intends("pay_1")
			l.ends("pay_1", 1, ledger.EvidenceUnprocessed)
			l.intends("pay_1")
			l.ends("pay_1", 2, ledger.EvidenceUnprocessed)
			l.intends("pay_1")
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, nil)
			at := l.now
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, gaveBack(at, 3_000))
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, gaveBack(at, 3_000, 7_000))
		}},
		{name: "turned away last", lives: func(l *lived) {
			l.intends("pay_1")
			l.ends("pay_1", 1, ledger.EvidenceUnprocessed)
		}},
		{name: "refused, then paid with another key", lives: func(l *lived) {
			l.intends("pay_1")
			l.ends("pay_1", 1, ledger.EvidenceRefused)
			l.intends("pay_2")
			l.shows(time.Minute, "pay_2", ledger.EvidenceCaptured, nil)
		}},
		{name: "in doubt", lives: func(l *lived) {
			l.intends("pay_1")
			l.ends("pay_1", 1, ledger.EvidenceLost)
		}},
		{name: "in doubt, then paid", lives: func(l *lived) {
			l.intends("pay_1")
			l.ends("pay_1", 1, ledger.EvidenceLost)
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, nil)
		}, want: without("unknown")},
		{name: "paid and canceled before we heard of it", lives: func(l *lived) {
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, gaveBack(l.now, 10_000))
		}},
		{name: "put in the books unpaid", lives: func(l *lived) {
			l.shows(time.Minute, "pay_1", ledger.EvidenceOpen, nil)
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, nil)
		}},
		{name: "a deposit that falls back, comes again and falls back for good", lives: func(l *lived) {
			l.intends("pay_1")
			l.shows(time.Minute, "pay_1", ledger.EvidenceWaiting, account)
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, account)
			l.shows(time.Minute, "pay_1", ledger.EvidenceWaiting, account)
			l.shows(2*time.Hour, "pay_1", ledger.EvidenceWaiting, account)
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, account)
			l.shows(time.Minute, "pay_1", ledger.EvidenceWaiting, account)
			l.shows(2*time.Hour, "pay_1", ledger.EvidenceWaiting, account)
			l.shows(time.Minute, "pay_1", ledger.EvidenceDead, func(o *ledger.Observation) { account(o); o.DueAt = l.now })
			l.expires()
		}, want: earlier("order expired", time.Hour)},
		{name: "an account that is canceled before its deposit", lives: func(l *lived) {
			l.intends("pay_1")
			l.shows(time.Minute, "pay_1", ledger.EvidenceWaiting, account)
			l.shows(time.Minute, "pay_1", ledger.EvidenceVoided, account)
		}},
		{name: "a deposit that falls back before the account is canceled", lives: func(l *lived) {
			l.intends("pay_1")
			l.shows(time.Minute, "pay_1", ledger.EvidenceWaiting, account)
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, account)
			l.shows(time.Minute, "pay_1", ledger.EvidenceVoided, account)
			l.shows(2*time.Hour, "pay_1", ledger.EvidenceVoided, account)
		}},
		{name: "expired and then paid", lives: func(l *lived) {
			l.expires()
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, nil)
		}, want: earlier("order expired", 30*time.Minute)},
		{name: "paid twice, and the second given back", lives: func(l *lived) {
			l.intends("pay_1")
			l.shows(time.Minute, "pay_1", ledger.EvidenceCaptured, nil)
			l.shows(time.Minute, "pay_2", ledger.EvidenceCaptured, nil)
			l.shows(time.Minute, "pay_2", ledger.EvidenceCaptured, gaveBack(l.now, 10_000))
		}},
	}
	s := open(t, postgrestest.New(t))
	for i, test := range tests {
		l := &lived{shop: s, order: fmt.Sprintf("order-life-%d", i), last: map[string]string{}}
		s.now = noon()
		l.opens()
		test.lives(l)
		want := l.saw
		if test.want != nil {
			want = test.want(want)
		}
		if diff := cmp.Diff(want, l.told()); diff != "" {
			t.Errorf("%s (-lived +told):\n%s", test.name, diff)
		}
	}
	ledgertest.RequireSound(t, s.db)

	s.exec(`
		INSERT INTO acceptances (acceptance_id, order_id, payment_key, currency, amount, state, word, asked_at, owed_at, releases, ended_at, told_at)
		VALUES ('acc_00000000000000000000000000', 'order-life-0', 'pay_store', 'KRW', 10000, 'released', 'late', $1, $2, 2, $3, $4)`,
		noon(), noon().Add(time.Second), noon().Add(2*time.Second), noon().Add(3*time.Second))
	var told []string
	s.must(s.Order(t.Context(), "order-life-0", func(r Report) error {
		return r.Tables[1].each(func(row Row) error {
			if row[1] == Word("store") {
				told = append(told, fmt.Sprint(row[2:]))
			}
			return nil
		})
	}))
	if diff := cmp.Diff([]string{
		"[asked <nil> KRW {10000 KRW} pay_store <nil> acc_00000000000000000000000000; the store: late]",
		"[release_owed <nil> KRW {10000 KRW} pay_store <nil> acc_00000000000000000000000000]",
		"[state released KRW {10000 KRW} pay_store <nil> acc_00000000000000000000000000; told 2 times]",
		"[merchant_told <nil> KRW {10000 KRW} pay_store <nil> acc_00000000000000000000000000]",
	}, told); diff != "" {
		t.Errorf("the store (-want +told):\n%s", diff)
	}
}

// without leaves out a state that no row shows once it is over.
func without(state string) func([]string) []string {
	return func(saw []string) []string {
		return slices.DeleteFunc(saw, func(s string) bool { return strings.Contains(s, state) })
	}
}

// earlier is a state that is told as soon as it can have been: so much before it was written down.
func earlier(state string, by time.Duration) func([]string) []string {
	return func(saw []string) []string {
		for i, s := range saw {
			if clock, rest, _ := strings.Cut(s, " "); rest == state {
				at, err := time.Parse(time.TimeOnly, clock)
				if err != nil {
					panic(err)
				}
				saw[i] = at.Add(-by).Format(time.TimeOnly) + " " + rest
			}
		}
		return saw
	}
}
