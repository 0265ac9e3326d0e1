package webhook

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/pgclient"
)

// TestStore_EveryShape: each statement is one that PostgreSQL takes, has the arguments it names and no others, and leaves
// one delivery behind. What is parked is a payment that is named and was never seen.
func TestStore_EveryShape(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	h := &Handler{cfg: Config{DB: db}, statements: statements()}
	cancel, other := pgclient.FamilyCancel, pgclient.FamilyKnownOther
	for n, test := range []struct {
		kind   pgclient.NoticeKind
		family pgclient.Family
		want   Outcome
		parked int
	}{
		{pgclient.NoticeStatusChanged, cancel, OutcomePaymentNotFound, 2},
		{pgclient.NoticeStatusChanged, pgclient.FamilyUnknown, OutcomePaymentNotFound, 2},
		{pgclient.NoticeStatusChanged, other, OutcomeStatusIgnored, 0},
		{pgclient.NoticeDepositCallback, cancel, OutcomePaymentNotFound, 0},
		{pgclient.NoticeDepositCallback, other, OutcomeStatusIgnored, 0},
		{pgclient.NoticeCancelChanged, cancel, OutcomeEventIgnored, 0},
		{pgclient.NoticeCancelChanged, other, OutcomeEventIgnored, 0},
	} {
		d := delivery{
			at: time.Date(2026, 3, 11, 3, 0, 0, 0, time.UTC), source: "192.0.2.1", masked: []byte(`{}`), named: []string{"t1", "t2"},
			notice: pgclient.Notice{Kind: test.kind, Family: test.family, OrderID: "order-1", Claims: ledger.EvidenceCaptured},
		}
		if test.kind == pgclient.NoticeStatusChanged {
			d.notice.PaymentKey = "pk_" + string(test.family)
		}
		got, err := h.store(t.Context(), d)
		if err != nil || got.Outcome != test.want || got.DeliveryID != int64(n+1) || got.PaymentKey != "" || got.NotParked {
			t.Errorf("%s, %s: got %+v and %v, want %s", test.kind, test.family, got, err, test.want)
		}
		if parked := count(t, h, `SELECT count(*) FROM work WHERE payment_key = $1`, d.notice.PaymentKey); parked != test.parked {
			t.Errorf("%s, %s: %d claims are parked, want %d", test.kind, test.family, parked, test.parked)
		}
	}
}

// TestStore_Settled: what was decided without the books is kept with its reason and its answer, and without its body.
func TestStore_Settled(t *testing.T) {
	t.Parallel()
	h := &Handler{cfg: Config{DB: postgrestest.New(t)}, statements: statements()}
	for _, settled := range []verdict{
		{outcome: OutcomeEventIgnored},
		{outcome: OutcomeSignatureRejected},
		{outcome: OutcomeBodyUnparsable, reason: "payment_key"},
		{outcome: OutcomeBodyUnparsable, reason: "too_large", status: 413},
	} {
		got, err := h.store(t.Context(), delivery{at: time.Now(), source: "192.0.2.1", settled: settled})
		if err != nil || got.Outcome != settled.outcome {
			t.Errorf("got %+v and %v, want %s", got, err, settled.outcome)
		}
		if kept := count(t, h, `SELECT count(*) FROM deliveries
			WHERE outcome = $1 AND reason = $2 AND status = $3 AND answered_at = received_at AND body IS NULL AND payment_key IS NULL AND transmission_id IS NULL`,
			settled.outcome, settled.reason, settled.httpStatus()); kept != 1 {
			t.Errorf("%+v: got %d deliveries, want 1", settled, kept)
		}
	}
}

func count(t *testing.T, h *Handler, sql string, args ...any) int {
	t.Helper()
	rows, err := h.cfg.DB.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
