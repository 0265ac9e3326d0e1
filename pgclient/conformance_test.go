package pgclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// gateway is a simulated gateway and a client of it.
type gateway struct {
	*Client
	sim *tosssim.Sim
}

func newGateway(t *testing.T, change func(*tosssim.Config)) gateway {
	t.Helper()
	simulated := tosssim.Config{SecretKey: "test_sk_simulator", MerchantID: "tsimshop01", SecurityKey: strings.Repeat("0f", 32)}
	if change != nil {
		change(&simulated)
	}
	sim := tosssim.New(simulated)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(sim.Close)
	cfg := quick(server.URL)
	cfg.SecretKey, cfg.SecurityKey = "test_sk_simulator", simulated.SecurityKey
	cfg.Metrics = NewMetrics(prometheus.NewPedanticRegistry())
	return gateway{mustNew(t, cfg), sim}
}

func (g gateway) approve(t *testing.T, key, order string, won int64) Result {
	t.Helper()
	permit, err := g.ReserveConfirm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer permit.Release()
	return g.Confirm(t.Context(), permit, ConfirmRequest{
		PaymentKey: key, OrderID: order, Amount: ledger.Won(won), IdempotencyKey: "confirm-" + key,
	})
}

func (g gateway) refund(t *testing.T, r CancelRequest) Result {
	t.Helper()
	permit, err := g.ReserveCancel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer permit.Release()
	return g.Cancel(t.Context(), permit, r)
}

func (g gateway) ask(t *testing.T, key string) ledger.Observation {
	t.Helper()
	seen, err := g.Query(t.Context(), ledger.ChannelWebhook, key)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestConformance_ApprovedCanceledInPartsAndListed(t *testing.T) {
	t.Parallel()
	for _, sign := range []int{1, -1} {
		g := newGateway(t, func(c *tosssim.Config) { c.CancelRowSign = sign })
		key := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0001", Amount: 1000})
		if seen := g.ask(t, key); seen.Evidence != ledger.EvidenceOpen {
			t.Errorf("before: %s", seen.Evidence)
		}
		first := g.approve(t, key, "order-0001", 1000)
		if first.Verdict != VerdictDone || first.Observation.Evidence != ledger.EvidenceCaptured || first.Observation.Total != ledger.Won(1000) {
			t.Fatal(first, first.Err)
		}
		part := ledger.Won(300)
		for i, r := range []CancelRequest{
			{PaymentKey: key, Reason: "일부", Amount: &part, Refundable: ledger.Won(1000), IdempotencyKey: "cancel-1"},
			{PaymentKey: key, Reason: "나머지", Refundable: ledger.Won(700), IdempotencyKey: "cancel-2"},
		} {
			got := g.refund(t, r)
			if got.Verdict != VerdictDone || len(got.Observation.Cancels) != i+1 {
				t.Fatal(got, got.Err)
			}
		}
		seen := g.ask(t, key)
		if !seen.Balance.IsZero() || seen.Word != "PARTIAL_CANCELED" || seen.Evidence != ledger.EvidenceCaptured {
			t.Errorf("%+v", seen)
		}
		again := g.refund(t, CancelRequest{PaymentKey: key, Reason: "또", Refundable: ledger.Won(0), IdempotencyKey: "cancel-3"})
		if again.Verdict != VerdictAsk {
			t.Errorf("canceling what is empty: %s %v", again.Verdict, again.Err)
		}
		g.requireList(t, first.Observation, seen)
	}
}

// requireList checks that the list shows the capture and both cancels, page by page, with the keys of the payment.
func (g gateway) requireList(t *testing.T, captured, canceled ledger.Observation) {
	t.Helper()
	now := time.Now()
	var rows []Transaction
	for after := ""; ; {
		page, err := g.Transactions(t.Context(), now.Add(-time.Hour), now.Add(time.Hour), after, 2)
		if err != nil || len(page.Quarantined) != 0 {
			t.Fatal(page, err)
		}
		rows, after = append(rows, page.Rows...), page.Last
		if !page.Full {
			break
		}
	}
	keys := []string{captured.LastTransactionKey, canceled.Cancels[0].TransactionKey, canceled.Cancels[1].TransactionKey}
	amounts := []ledger.Money{ledger.Won(1000), ledger.Won(300), ledger.Won(700)}
	kinds := []TransactionKind{TransactionCapture, TransactionCancel, TransactionCancel}
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		if row.TransactionKey != keys[i] || row.Amount != amounts[i] || row.Kind != kinds[i] || row.PaymentKey != captured.PaymentKey {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	_, err := g.Transactions(t.Context(), now.Add(-48*time.Hour), now.Add(-24*time.Hour), keys[0], 2)
	wantReason(t, err, ReasonCursorRefused)
}

func TestConformance_LostRepliesAreSettledByTheSameKey(t *testing.T) {
	t.Parallel()
	for _, kind := range []tosssim.Kind{tosssim.LostReply, tosssim.DoThenHang, tosssim.DoThenStatus, tosssim.StalledBody, tosssim.Garbage} {
		g := newGateway(t, nil)
		key := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0001", Amount: 1000})
		g.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: kind, Code: http.StatusBadGateway})
		got := g.approve(t, key, "order-0001", 1000)
		if got.Verdict != VerdictDone || got.Attempts != 2 || g.sim.Totals().Captures != 1 {
			t.Errorf("%s: %s after %d attempts, %d captures: %v", kind, got.Verdict, got.Attempts, g.sim.Totals().Captures, got.Err)
		}
		calls := g.sim.Calls()
		if calls[0].IdempotencyKey != calls[1].IdempotencyKey || string(calls[0].Body) != string(calls[1].Body) {
			t.Errorf("%s: the attempts differ", kind)
		}
		g.sim.Fail(tosssim.Fault{Op: tosssim.Cancel, Kind: kind, Code: http.StatusBadGateway})
		got = g.refund(t, CancelRequest{PaymentKey: key, Reason: "변심", Refundable: ledger.Won(1000), IdempotencyKey: "cancel-1"})
		if got.Verdict != VerdictDone || g.sim.Totals().Cancels != 1 {
			t.Errorf("%s: cancel %s, %d cancels: %v", kind, got.Verdict, g.sim.Totals().Cancels, got.Err)
		}
	}
}

func TestConformance_FaultsThatLastAreUnknownOrUnprocessed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind tosssim.Kind
		want Verdict
	}{
		{tosssim.Hang, VerdictUnknown},
		{tosssim.Reset, VerdictUnknown},
		{tosssim.HTML, VerdictUnknown},
		{tosssim.EmptyArray, VerdictUnknown},
		{tosssim.TooMany, VerdictUnprocessed},
	} {
		g := newGateway(t, nil)
		key := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0001", Amount: 1000})
		g.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: test.kind, N: -1})
		if got := g.approve(t, key, "order-0001", 1000); got.Verdict != test.want || got.Attempts != 2 || got.Err == nil {
			t.Errorf("%s: got %s after %d attempts, want %s: %v", test.kind, got.Verdict, got.Attempts, test.want, got.Err)
		}
		g.sim.Heal()
		if got := g.approve(t, key, "order-0001", 1000); got.Verdict != VerdictDone {
			t.Errorf("%s healed: %s %v", test.kind, got.Verdict, got.Err)
		}
	}
}

func TestConformance_RefusalsByTheirCode(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	for code, want := range map[string]Verdict{
		"REJECT_CARD_PAYMENT": VerdictRefused, "PROVIDER_ERROR": VerdictAsk, "ALREADY_PROCESSED_PAYMENT": VerdictAsk,
		"INVALID_REQUEST": VerdictUnprocessed, "NOT_FOUND_PAYMENT_SESSION": VerdictAsk, "FAILED_INTERNAL_SYSTEM_PROCESSING": VerdictUnknown,
	} {
		key := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-" + strings.ToLower(code[:6]), Amount: 1000})
		g.sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.Refuse, Body: code, N: 2})
		if got := g.approve(t, key, "order-"+strings.ToLower(code[:6]), 1000); got.Verdict != want || got.Err.Code != code {
			t.Errorf("%s: got %s, want %s: %v", code, got.Verdict, want, got.Err)
		}
		g.sim.Heal()
	}
	key := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0009", Amount: 1000})
	g.approve(t, key, "order-0009", 1000)
	stale := g.refund(t, CancelRequest{PaymentKey: key, Reason: "변심", Refundable: ledger.Won(900), IdempotencyKey: "cancel-1"})
	if stale.Verdict != VerdictRefused || stale.Err.Group != GroupAmountChanged || g.sim.Totals().Cancels != 0 {
		t.Error(stale, stale.Err)
	}
	_, err := g.Query(t.Context(), ledger.ChannelWebhook, "never_seen")
	wantReason(t, err, ReasonNotFound)
	other := newGateway(t, func(c *tosssim.Config) { c.SecretKey = "test_sk_another" })
	_, err = other.Query(t.Context(), ledger.ChannelWebhook, key)
	wantReason(t, err, ReasonKeyRefused)
}

func TestConformance_VirtualAccounts(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	paid := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0001", Amount: 70000, Method: tosssim.VirtualAccount})
	unpaid := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0002", Amount: 9000, Method: tosssim.VirtualAccount})
	issued := g.approve(t, paid, "order-0001", 70000)
	if issued.Verdict != VerdictDone || issued.Observation.Evidence != ledger.EvidenceWaiting || !issued.Observation.VirtualAccount || len(issued.Observation.SecretDigest) == 0 {
		t.Fatal(issued, issued.Err)
	}
	g.approve(t, unpaid, "order-0002", 9000)
	voided := g.refund(t, CancelRequest{PaymentKey: unpaid, Reason: "변심", Refundable: ledger.Won(0), IdempotencyKey: "cancel-2"})
	if voided.Verdict != VerdictDone || voided.Observation.Evidence != ledger.EvidenceVoided {
		t.Error(voided, voided.Err)
	}
	if err := g.sim.Deposit(paid); err != nil {
		t.Fatal(err)
	}
	seen, err := g.RecoverOrder(t.Context(), ledger.ChannelRecover, "order-0001")
	if err != nil || seen.Evidence != ledger.EvidenceCaptured || seen.PaymentKey != paid {
		t.Error(seen, err)
	}
	if err := g.sim.RevertDeposit(paid); err != nil {
		t.Fatal(err)
	}
	if seen := g.ask(t, paid); seen.Evidence != ledger.EvidenceWaiting {
		t.Error(seen)
	}
	deposits := 0
	for _, sent := range g.sim.Notices() {
		notice, err := g.ReadNotice(http.Header{}, sent.Body)
		if err != nil {
			t.Fatal(err)
		}
		if notice.Kind == NoticeDepositCallback {
			deposits++
			if notice.OrderID == "" || notice.PaymentKeyValid || string(notice.SecretDigest) == "" || notice.CreatedAt.IsZero() {
				t.Errorf("%+v", notice)
			}
		} else if notice.PaymentKey != sent.PaymentKey {
			t.Errorf("%+v", notice)
		}
	}
	if deposits == 0 {
		t.Error("no deposit callbacks")
	}
}

func TestConformance_AsynchronousCancelsInDollars(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	key := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0001", Amount: 72624, Currency: "USD", Method: tosssim.ForeignEasyPay})
	if err := g.sim.Approve(key); err != nil {
		t.Fatal(err)
	}
	cancelKey, err := g.sim.CancelInDashboard(key, 4150, "refund")
	if err != nil {
		t.Fatal(err)
	}
	if seen := g.ask(t, key); seen.Cancels[0].State != ledger.CancelInProgress || seen.Balance.Minor != 72624 {
		t.Errorf("%+v", seen)
	}
	if err := g.sim.FinishCancel(cancelKey, true); err != nil {
		t.Fatal(err)
	}
	seen := g.ask(t, key)
	if seen.Cancels[0].State != ledger.CancelDone || seen.Balance != (ledger.Money{Minor: 68474, Currency: ledger.USD}) {
		t.Errorf("%+v", seen)
	}
	found := false
	for _, sent := range g.sim.Notices() {
		notice, _ := g.ReadNotice(http.Header{}, sent.Body)
		found = found || (notice.Kind == NoticeCancelChanged && slices.Equal(notice.CancelKeys, []string{cancelKey}) && notice.Family == FamilyCancel)
	}
	if !found {
		t.Error("no notice named the cancel")
	}
}

func TestConformance_DeadPaymentsAndStaleAnswers(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	expired := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0001", Amount: 1000})
	aborted := g.sim.Authenticate(tosssim.Checkout{OrderID: "order-0002", Amount: 1000})
	if err := g.sim.Expire(expired); err != nil {
		t.Fatal(err)
	}
	if err := g.sim.Abort(aborted, "PAY_PROCESS_ABORTED"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{expired, aborted} {
		if seen := g.ask(t, key); seen.Evidence != ledger.EvidenceDead {
			t.Errorf("%+v", seen)
		}
	}
	if got := g.approve(t, expired, "order-0001", 1000); got.Verdict != VerdictAsk || got.Err.Group != GroupSessionGone {
		t.Error(got, got.Err)
	}
}

func TestConformance_SignedNotices(t *testing.T) {
	t.Parallel()
	states := make(chan SignatureState, 2)
	var g gateway
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		states <- g.VerifySignature(r.Header, body)
	}))
	t.Cleanup(receiver.Close)
	g = newGateway(t, func(c *tosssim.Config) { c.WebhookURL = receiver.URL })
	g.sim.Payout(5000, true)
	if sent := g.sim.DeliverDue(t.Context()); sent != 1 {
		t.Fatalf("%d sent", sent)
	}
	if got := <-states; got != SignatureValid {
		t.Error(got)
	}
}
