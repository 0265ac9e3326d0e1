package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

func claim(key, transactionKey string) ledger.Work {
	return ledger.Work{Kind: ledger.WorkCancelClaimed, PaymentKey: key, OrderID: "order_1", TransactionKey: transactionKey}
}

// requireWork compares all work of the test, without the confirm's own when it is settled.
func (b *books) requireWork(want ...string) {
	b.t.Helper()
	var got []string
	for _, w := range b.work() {
		if w != "confirm_unknown - settled" {
			got = append(got, w)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("work (-want +got):\n%s", diff)
	}
}

func TestWork_NamedClaimsCloseWithTheirCancel(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	b.open(claim("pk_1", "c1"))
	b.open(claim("pk_1", "c2"))
	b.record(b.captured("pk_1", "order_1", 50_000))
	b.requireWork("cancel_claimed c1 open", "cancel_claimed c2 open")
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000)))
	b.requireWork("cancel_claimed c1 settled", "cancel_claimed c2 open")
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000), done("c2", 1_000)))
	b.requireWork("cancel_claimed c1 settled", "cancel_claimed c2 settled")
	ledgertest.RequireSound(t, b.pool)
}

// TestWork_ClaimOfABookedCancelCloses: the claim came late; an answer that changes nothing settles it.
func TestWork_ClaimOfABookedCancelCloses(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000)))
	b.open(claim("pk_1", "c1"))
	if r := b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000))); r.Outcome != ledger.OutcomeUnchanged {
		t.Errorf("got %s, want unchanged", r.Outcome)
	}
	b.requireWork("cancel_claimed c1 settled")
}

func TestWork_UnnamedClaimNeedsALaterQuestion(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	before := b.captured("pk_1", "order_1", 50_000, done("c1", 1_000))
	b.now = b.now.Add(time.Minute)
	b.open(claim("pk_1", ""))
	b.record(before)
	b.requireWork("cancel_claimed - open")
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000), underway("c2", 1_000)))
	b.requireWork("cancel_claimed - open", "cancel_in_progress c2 open")
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000), done("c2", 1_000)))
	b.requireWork("cancel_claimed - settled", "cancel_in_progress c2 settled")
}

// TestWork_UnnamedClaimNeedsItsOwnCancel: a cancel that was booked before the claim was made says nothing about the one
// that the claim is about, however late the question.
func TestWork_UnnamedClaimNeedsItsOwnCancel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		amount int64 // of the cancel that comes at last
	}{{"part", 1_000}, {"rest", 49_000}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.sold("pk_1", "order_1", 50_000, 0)
			b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000)))
			b.now = b.now.Add(time.Hour)
			b.open(claim("pk_1", ""))
			for range 2 {
				b.now = b.now.Add(time.Minute)
				b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000)))
				b.requireWork("cancel_claimed - open")
			}
			b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000), done("c2", c.amount)))
			b.requireWork("cancel_claimed - settled")
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// TestWork_UnnamedClaimOfACrashCloses: the notice came first, its cancel was booked by another channel, and only then
// the claim was made for the delivery that a crash had left.
func TestWork_UnnamedClaimOfACrashCloses(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	received := b.now.Add(time.Minute)
	b.now = received.Add(time.Second)
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000)))
	b.now = b.now.Add(time.Minute)
	b.open(claim("pk_1", ""))
	if _, err := b.pool.Exec(t.Context(), `UPDATE work SET notice_failed_at = $1 WHERE kind = 'cancel_claimed'`, received); err != nil {
		t.Fatal(err)
	}
	b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 1_000)))
	b.requireWork("cancel_claimed - settled")
}

// TestWork_UnnamedClaimOfNothingLeftCloses: no cancel can be missing where nothing is left.
func TestWork_UnnamedClaimOfNothingLeftCloses(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	whole := func() ledger.Observation { return b.captured("pk_1", "order_1", 50_000, done("c1", 50_000)) }
	b.record(whole())
	b.now = b.now.Add(time.Hour)
	b.open(claim("pk_1", ""))
	b.record(whole())
	b.requireWork("cancel_claimed - settled")
}

func TestWork_CancelInProgress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  ledger.ObservedCancel
		want string
		left int64
	}{
		{"done later", done("c1", 12_000), "cancel_in_progress c1 settled", 38_000},
		{"given up later", aborted("c1", 12_000), "cancel_in_progress c1 aborted", 50_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.sold("pk_1", "order_1", 50_000, 0)
			b.open(claim("pk_1", "c1"))
			r := b.record(b.captured("pk_1", "order_1", 50_000, underway("c1", 12_000)))
			if r.Outcome != ledger.OutcomePending || r.After.Balance() != ledger.Won(50_000) {
				t.Errorf("got %s and %s, want pending and all of it", r.Outcome, r.After.Balance())
			}
			b.requireWork("cancel_in_progress c1 open")
			r = b.record(b.captured("pk_1", "order_1", 50_000, c.end))
			if r.After.Balance() != ledger.Won(c.left) {
				t.Errorf("got %s left, want %d", r.After.Balance(), c.left)
			}
			b.requireWork(c.want)
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

func TestWork_ConfirmIsAskedForUntilItIsDecided(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	b.intend("pk_1", "order_1", 50_000)
	due := func() time.Time {
		var at time.Time
		if err := b.pool.QueryRow(t.Context(), `SELECT due_at FROM work WHERE closed_at IS NULL`).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	if got := due(); !got.After(b.now.Add(31 * time.Second)) {
		t.Errorf("got due at %s, want after the call's whole budget", got)
	}
	if r := b.record(b.outcome("pk_1", ledger.EvidenceLost, 1)); r.Outcome != ledger.OutcomeApplied || r.After.Status != ledger.StatusUnknown {
		t.Fatalf("got %s %s, want unknown", r.Outcome, r.After.Status)
	}
	if got := due(); got.After(b.now.Add(5 * time.Second)) {
		t.Errorf("got due at %s, want soon", got)
	}
	open := b.captured("pk_1", "order_1", 50_000)
	open.Evidence = ledger.EvidenceOpen
	if r := b.record(open); r.Outcome != ledger.OutcomePending {
		t.Errorf("got %s, want pending", r.Outcome)
	}
	if diff := cmp.Diff([]string{"confirm_unknown - open"}, b.work()); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
	b.record(b.captured("pk_1", "order_1", 50_000))
	b.requireWork()
}

func TestWork_ADepositIsWatched(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 7)
	b.intend("pk_1", "order_1", 50_000)
	account := func(e ledger.Evidence) ledger.Observation {
		o := b.captured("pk_1", "order_1", 50_000)
		o.Evidence, o.VirtualAccount = e, true
		return o
	}
	b.record(account(ledger.EvidenceWaiting))
	b.requireWork("deposit_watch - open")
	b.now = b.now.Add(time.Minute)
	b.record(account(ledger.EvidenceCaptured))
	b.requireWork("deposit_watch - settled", "deposit_watch - open")
	b.now = b.now.Add(time.Minute)
	if r := b.record(account(ledger.EvidenceWaiting)); r.Outcome != ledger.OutcomePending || r.After.Status != ledger.StatusDone {
		t.Errorf("got %s %s after one look, want pending and done", r.Outcome, r.After.Status)
	}
	b.requireWork("deposit_watch - settled", "deposit_watch - open")
	b.now = b.now.Add(time.Hour)
	r := b.record(account(ledger.EvidenceWaiting))
	b.requireWork("deposit_watch - settled", "deposit_watch - settled", "deposit_watch - open")
	if r.After.Status != ledger.StatusWaitingForDeposit || r.Order.Status != ledger.OrderPending || b.credits().Balance != 0 {
		t.Errorf("got %s, order %s and %d credits after two looks", r.After.Status, r.Order.Status, b.credits().Balance)
	}
	again := account(ledger.EvidenceCaptured)
	again.LastTransactionKey = "tx_again"
	if r := b.record(again); r.After.Status != ledger.StatusDone || b.credits().Balance != 7 || len(r.After.Captures) != 2 {
		t.Errorf("got %+v and %d credits after it came again", r.After, b.credits().Balance)
	}
	if diff := cmp.Diff([]string{"credits_issued 7", "customer_credits -7", "gateway_receivable 50000", "sales -50000"}, b.trial()); diff != "" {
		t.Errorf("trial balance (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestWork_ParkedNoticesAreAdopted: a notice overtook the payment, whichever way the payment then appears.
func TestWork_ParkedNoticesAreAdopted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		appear func(b *books)
	}{
		{"by our intent", func(b *books) { b.intend("pk_1", "order_1", 50_000) }},
		{"by an answer of the gateway", func(b *books) { b.record(b.captured("pk_1", "order_1", 50_000)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.order("order_1", 50_000, 0)
			for _, key := range []string{"c1", ""} {
				b.open(ledger.Work{Kind: ledger.WorkParked, PaymentKey: "pk_1", TransactionKey: key})
			}
			b.requireWork("parked c1 open", "parked - open")
			c.appear(b)
			open := b.list(`SELECT kind || ' ' || COALESCE(transaction_key, '-') || ' ' || order_id FROM work WHERE kind LIKE 'cancel%' ORDER BY work_id`)
			if diff := cmp.Diff([]string{"cancel_claimed c1 order_1", "cancel_claimed - order_1"}, open); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 50_000)))
			b.requireWork("cancel_claimed c1 settled", "cancel_claimed - settled")
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

func TestRecord_AListedVoidIsBookedUnderTheListsKey(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	void := b.captured("pk_1", "order_1", 50_000)
	void.Evidence, void.LastTransactionKey, void.VirtualAccount = ledger.EvidenceVoided, "", true
	b.record(void)
	b.open(ledger.Work{Kind: ledger.WorkCancelListed, PaymentKey: "pk_1", OrderID: "order_1", TransactionKey: "listed"})
	b.record(void)
	b.requireWork("cancel_listed listed open")
	void.Listed = "listed"
	if r := b.record(void); !r.After.HasCancel("listed") || r.After.Status != ledger.StatusCanceled {
		t.Errorf("got %+v, want the void under the list's key too", r.After)
	}
	b.requireWork("cancel_listed listed settled")
	if got := len(b.heard.all); got != 1 {
		t.Errorf("got %d announcements of one void, want 1", got)
	}
	ledgertest.RequireSound(t, b.pool)
}

func TestRecord_PutsAListedPaymentInTheBooks(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	if r := b.record(b.captured("pk_never_sent", "order_1", 50_000, done("c1", 50_000))); r.After.Status != ledger.StatusCanceled || len(r.Applied) != 1 {
		t.Errorf("got %+v, want the payment adopted with its cancel", r.After)
	}
	if got := b.list(`SELECT payment_key FROM payments WHERE attempt = 0`); len(got) != 1 {
		t.Errorf("got %v, want an adopted payment without attempt", got)
	}
	ledgertest.RequireSound(t, b.pool)
}

func TestRecord_WithoutOrderOrObject(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	for _, o := range []ledger.Observation{
		b.captured("pk_1", "order_none", 50_000), b.outcome("pk_1", ledger.EvidenceLost, 1), b.outcome("pk_1", ledger.EvidenceRefused, 1),
	} {
		err := b.try(func(tx pgx.Tx) error {
			_, err := b.ledger.Record(t.Context(), tx, o)
			return err
		})
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%s of %s: got %v, want %v", o.Evidence, o.OrderID, err, ledger.ErrNotFound)
		}
	}
	if got := b.list(`SELECT payment_key FROM payments`); len(got) != 0 {
		t.Errorf("got payments %v, want none", got)
	}
}

// TestRecord_FailsTwiceIsToldOnce: a payment believed dead, seen waiting, and dead again.
func TestRecord_FailsTwiceIsToldOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.order("order_1", 50_000, 0)
	o := b.captured("pk_1", "order_1", 50_000)
	for _, e := range []ledger.Evidence{ledger.EvidenceDead, ledger.EvidenceWaiting, ledger.EvidenceDead} {
		o.Evidence = e
		b.record(o)
	}
	if got := b.list(`SELECT kind FROM events`); !cmp.Equal(got, []string{"payment.failed"}) {
		t.Errorf("got events %v, want one", got)
	}
	ledgertest.RequireSound(t, b.pool)
}

func TestRecord_AConflictWritesOnlyItsMismatch(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 0)
	dead := b.captured("pk_1", "order_1", 50_000)
	dead.Evidence = ledger.EvidenceDead
	for range 2 {
		if r := b.record(dead); r.Outcome != ledger.OutcomeConflict || r.Detail == "" || r.After.Status != ledger.StatusDone {
			t.Errorf("got %s %q %s, want a conflict that changes nothing", r.Outcome, r.Detail, r.After.Status)
		}
	}
	if diff := cmp.Diff([]string{"history_changed 2"}, b.mismatches()); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}
