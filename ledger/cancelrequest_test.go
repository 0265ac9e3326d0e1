package ledger_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// ask tries to reserve a cancel; an amount of nothing asks for all that is left.
func (b *books) ask(id, key string, amount int64) (r ledger.CancelRequest, err error) {
	o := ledger.CancelOrder{RequestID: id, PaymentKey: key, Reason: "고객 변심", RequestedBy: "test", RefundAccount: map[string]string{"bank": "88"}}
	if won := ledger.Won(amount); amount != 0 {
		o.Amount = &won
	}
	err = b.try(func(tx pgx.Tx) (err error) {
		r, err = b.ledger.RequestCancel(b.t.Context(), tx, o)
		return err
	})
	return r, err
}

// asked is ask where it must succeed.
func (b *books) asked(id, key string, amount int64) ledger.CancelRequest {
	b.t.Helper()
	r, err := b.ask(id, key, amount)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// answer settles a request.
func (b *books) answer(id string, s ledger.CancelRequestStatus, transactionKey string) {
	b.t.Helper()
	b.do(func(tx pgx.Tx) error {
		return b.ledger.SettleCancelRequest(b.t.Context(), tx, id, ledger.CancelAnswer{Status: s, TransactionKey: transactionKey, Word: string(s)})
	})
}

func (b *books) request(id string) ledger.CancelRequest {
	b.t.Helper()
	r, err := ledger.LoadCancelRequest(b.t.Context(), b.pool, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestRequestCancel_ReservesWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	first := b.asked("req_1", "pk_1", 12_000)
	if first.Refundable != ledger.Won(50_000) || first.Amount != ledger.Won(12_000) {
		t.Errorf("got %+v, want 12,000 of 50,000", first)
	}
	for _, doubtful := range []ledger.CancelRequestStatus{ledger.CancelSending, ledger.CancelRequestUnknown} {
		if doubtful != ledger.CancelSending {
			b.answer("req_1", doubtful, "")
		}
		if _, err := b.ask("req_2", "pk_1", 1); !errors.Is(err, ledger.ErrCancelUnderWay) {
			t.Errorf("got %v while the first is %s, want %v", err, doubtful, ledger.ErrCancelUnderWay)
		}
	}
	b.record(b.captured("pk_1", "order_1", 50_000, underway("c1", 12_000)))
	b.answer("req_1", ledger.CancelRequestInProgress, "c1")
	if _, err := b.ask("req_2", "pk_1", 38_001); !errors.Is(err, ledger.ErrCancelTooMuch) {
		t.Errorf("got %v above what is left and not reserved, want %v", err, ledger.ErrCancelTooMuch)
	}
	if rest := b.asked("req_2", "pk_1", 0); rest.Amount != ledger.Won(38_000) {
		t.Errorf("got %+v, want the 38,000 that are not reserved", rest)
	}
	b.answer("req_2", ledger.CancelRequestRefused, "")
	if diff := cmp.Diff([]string{
		"confirm_unknown - settled", "cancel_request req_1 settled", "cancel_in_progress c1 open", "cancel_request req_2 settled",
	}, b.work()); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}

func TestRequestCancel_TurnedDown(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_done", "order_done", 50_000, 0)
	b.sold("pk_gone", "order_gone", 50_000, 0)
	b.record(b.captured("pk_gone", "order_gone", 50_000, done("c1", 50_000)))
	b.order("order_wait", 50_000, 0)
	b.intend("pk_wait", "order_wait", 50_000)
	waiting := b.captured("pk_wait", "order_wait", 50_000)
	waiting.Evidence, waiting.VirtualAccount = ledger.EvidenceWaiting, true
	b.record(waiting)
	b.order("order_unknown", 50_000, 0)
	b.intend("pk_unknown", "order_unknown", 50_000)
	for _, c := range []struct {
		name, key string
		amount    int64
		want      error
	}{
		{"never seen", "pk_none", 1, ledger.ErrNotFound},
		{"not known to be paid", "pk_unknown", 0, ledger.ErrNotCancelable},
		{"nothing left", "pk_gone", 0, ledger.ErrNotCancelable},
		{"nothing left of which to give a part", "pk_gone", 1, ledger.ErrNotCancelable},
		{"too much", "pk_done", 50_001, ledger.ErrCancelTooMuch},
		{"below nothing", "pk_done", -1, ledger.ErrCancelTooMuch},
		{"a part of an unpaid account", "pk_wait", 1, ledger.ErrCancelPart},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := b.ask("req_"+c.key, c.key, c.amount); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	t.Cleanup(func() {
		if got := b.list(`SELECT request_id FROM cancel_requests`); len(got) != 0 {
			t.Errorf("got requests %v, want none", got)
		}
	})
}

func TestRequestCancel_OtherCurrencyAndNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	for _, amount := range []ledger.Money{{Minor: 1, Currency: ledger.USD}, ledger.Won(0)} {
		err := b.try(func(tx pgx.Tx) error {
			_, err := b.ledger.RequestCancel(t.Context(), tx, ledger.CancelOrder{RequestID: "r", PaymentKey: "pk_1", Amount: &amount, Reason: "r"})
			return err
		})
		if !errors.Is(err, ledger.ErrCancelTooMuch) {
			t.Errorf("%s: got %v, want %v", amount, err, ledger.ErrCancelTooMuch)
		}
	}
}

func TestRequestCancel_VoidOfAnUnpaidAccount(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	waiting := b.captured("pk_1", "order_1", 50_000)
	waiting.Evidence, waiting.VirtualAccount = ledger.EvidenceWaiting, true
	b.record(waiting)
	if r := b.asked("req_1", "pk_1", 0); !r.Amount.IsZero() {
		t.Errorf("got %+v, want a void of nothing", r)
	}
	void := b.captured("pk_1", "order_1", 50_000, done("v1", 50_000))
	void.Evidence = ledger.EvidenceVoided
	if r := b.record(void); r.After.Status != ledger.StatusCanceled || r.Order.Status != ledger.OrderCanceled {
		t.Errorf("got %s, want canceled", r.After.Status)
	}
	b.answer("req_1", ledger.CancelRequestDone, "v1")
	if got := b.trial(); len(got) != 0 {
		t.Errorf("got the trial balance %v, want that no money moved", got)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRequestCancel_AtOnce: two cancels that fit alone and not together.
func TestRequestCancel_AtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 10_000, 0)
	var accepted atomic.Int32
	together(t, 6, func(i int) error {
		_, err := b.ask(fmt.Sprintf("req_%d", i), "pk_1", 6_000)
		if err == nil {
			accepted.Add(1)
		}
		if errors.Is(err, ledger.ErrCancelUnderWay) {
			return nil
		}
		return err
	})
	if accepted.Load() != 1 {
		t.Errorf("got %d cancels accepted, want 1", accepted.Load())
	}
	ledgertest.RequireSound(t, b.pool)
}

func TestSettleCancelRequest_EndsByRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  ledger.ObservedCancel
		want ledger.CancelRequestStatus
		work string
	}{
		{"done", done("c1", 12_000), ledger.CancelRequestDone, "cancel_in_progress c1 settled"},
		{"given up", aborted("c1", 12_000), ledger.CancelRequestRefused, "cancel_in_progress c1 aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.sold("pk_1", "order_1", 50_000, 0)
			b.asked("req_1", "pk_1", 12_000)
			b.record(b.captured("pk_1", "order_1", 50_000, underway("c1", 12_000)))
			b.answer("req_1", ledger.CancelRequestInProgress, "c1")
			b.answer("req_1", ledger.CancelRequestUnknown, "") // a later question to the same request brings nothing
			if got := b.request("req_1").Status; got != ledger.CancelRequestInProgress {
				t.Fatalf("got %s, want in progress", got)
			}
			if got := b.request("req_1").RefundAccount; got != nil {
				t.Errorf("got refund account %v of a request that is not sent again, want none", got)
			}
			b.record(b.captured("pk_1", "order_1", 50_000, c.end))
			if got := b.request("req_1"); got.Status != c.want || got.RefundAccount != nil {
				t.Errorf("got %s with refund account %v, want %s and none", got.Status, got.RefundAccount, c.want)
			}
			if diff := cmp.Diff([]string{"confirm_unknown - settled", "cancel_request req_1 settled", c.work}, b.work()); diff != "" {
				t.Errorf("work (-want +got):\n%s", diff)
			}
			if _, err := b.ask("req_2", "pk_1", 38_000); err != nil {
				t.Errorf("got %v for another cancel after the end, want it accepted", err)
			}
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// TestSettleCancelRequest_NoticeOvertakesTheReply: the gateway answers "in progress", finishes, and its notice is
// recorded first. The request must not wait for ever for a cancel that is booked.
func TestSettleCancelRequest_NoticeOvertakesTheReply(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	b.asked("req_1", "pk_1", 12_000)
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 12_000)))
	b.record(b.captured("pk_1", "order_1", 50_000, underway("c1", 12_000)))
	b.answer("req_1", ledger.CancelRequestInProgress, "c1")
	if got := b.request("req_1"); got.Status != ledger.CancelRequestDone || got.RefundAccount != nil {
		t.Errorf("got %s with refund account %v, want done and none", got.Status, got.RefundAccount)
	}
	if r := b.asked("req_2", "pk_1", 0); r.Amount != ledger.Won(38_000) {
		t.Errorf("got %s left, want 38000 KRW", r.Amount)
	}
	ledgertest.RequireSound(t, b.pool)
}

func TestSettleCancelRequest_AnEndIsAnEnd(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	b.asked("req_1", "pk_1", 12_000)
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 12_000)))
	b.answer("req_1", ledger.CancelRequestDone, "c1")
	for _, late := range []ledger.CancelRequestStatus{ledger.CancelRequestUnknown, ledger.CancelRequestRefused, ledger.CancelRequestInProgress} {
		b.answer("req_1", late, "c9")
		if got := b.request("req_1"); got.Status != ledger.CancelRequestDone || got.TransactionKey != "c1" {
			t.Errorf("got %s by a late %s, want done", got.Status, late)
		}
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestBears_NothingEndsThatTheBooksDidNotTake holds what may end a cancel request of ours: only what Record booked, or
// what it left as work of its own.
func TestBears_NothingEndsThatTheBooksDidNotTake(t *testing.T) {
	t.Parallel()
	part := ledger.CancelRequest{Amount: ledger.Won(3_000), Refundable: ledger.Won(10_000)}
	void := ledger.CancelRequest{Amount: ledger.Won(0), Refundable: ledger.Won(0)}
	whole := ledger.CancelRequest{Amount: ledger.Won(10_000), Refundable: ledger.Won(10_000)}
	booked := ledger.Recorded{After: ledger.Payment{Status: ledger.StatusPartiallyCanceled, Cancels: []ledger.Cancel{{TransactionKey: "c1"}}}}
	conflict := booked
	conflict.Outcome = ledger.OutcomeConflict
	voided := ledger.Recorded{After: ledger.Payment{Status: ledger.StatusCanceled}}
	open := ledger.Recorded{Open: []ledger.ObservedCancel{{TransactionKey: "c1"}}}
	for _, test := range []struct {
		name     string
		recorded ledger.Recorded
		request  ledger.CancelRequest
		answer   ledger.CancelAnswer
		want     bool
	}{
		{"done and booked", booked, part, ledger.CancelAnswer{Status: ledger.CancelRequestDone, TransactionKey: "c1"}, true},
		{"done and another is booked", booked, part, ledger.CancelAnswer{Status: ledger.CancelRequestDone, TransactionKey: "c2"}, false},
		{"done and the books contradict", conflict, part, ledger.CancelAnswer{Status: ledger.CancelRequestDone, TransactionKey: "c1"}, false},
		{"a void, and the payment is canceled", voided, void, ledger.CancelAnswer{Status: ledger.CancelRequestDone}, true},
		{"all of a deposit that had fallen back, and the payment is void", voided, whole, ledger.CancelAnswer{Status: ledger.CancelRequestDone}, true},
		{"a part, and the payment is void", voided, part, ledger.CancelAnswer{Status: ledger.CancelRequestDone}, false},
		{"in progress with work of its own", open, part, ledger.CancelAnswer{Status: ledger.CancelRequestInProgress, TransactionKey: "c1"}, true},
		{"in progress and booked meanwhile", booked, part, ledger.CancelAnswer{Status: ledger.CancelRequestInProgress, TransactionKey: "c1"}, true},
		{"in progress and nobody would ask", voided, part, ledger.CancelAnswer{Status: ledger.CancelRequestInProgress, TransactionKey: "c1"}, false},
		{"not known", conflict, part, ledger.CancelAnswer{Status: ledger.CancelRequestUnknown}, true},
	} {
		if got := test.recorded.Bears(test.request, test.answer); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
