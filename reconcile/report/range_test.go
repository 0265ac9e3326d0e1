package report

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/reconcile"
)

// TestRange_DaysAddUpToTheMonth: the sum of the days is what is found when the whole time is compared at once.
func TestRange_DaysAddUpToTheMonth(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	s.day()
	s.sold("order-0101", "pay_0101", "정상 이름", ledger.Won(7_000), 0)
	s.record(s.captured("order-0101", "pay_0101", ledger.Won(7_000), s.canceled("cx_0101", "pay_0101", "order-0101", ledger.Won(7_000))))
	s.now = ledger.Day("2026-12-02").Start().Add(20 * time.Minute)
	s.exec(`UPDATE list_covered SET stretches = tstzmultirange(tstzrange($1, $2, '[]'))`, noon().Add(-25*time.Hour), s.now)
	s.close("2026-11-29")
	s.close("2026-11-30")
	s.close("2026-12-01")

	scope := reconcile.Scope{Name: reconcile.ScopeAll}
	whole, err := s.auditor.List(t.Context(), scope, func(reconcile.Row) error { return nil })
	s.must(err)
	var want []Row
	for _, f := range figuresOf(whole) {
		want = append(want, f.cells())
	}
	s.must(s.Range(t.Context(), "2026-11-29", "2026-12-01", func(r Report) error {
		var got []Row
		err := r.Tables[1].each(func(row Row) error { got = append(got, row); return nil })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the days do not add up to the whole (-whole +days):\n%s", diff)
		}
		return err
	}))
}

// TestRange_Refusals: what is no range is none.
func TestRange_Refusals(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	for _, days := range [][2]ledger.Day{{"2026-12-01", "2026-11-30"}, {"2000-01-01", "2026-11-30"}} {
		if err := s.Range(t.Context(), days[0], days[1], func(Report) error { return nil }); !errors.Is(err, ErrRange) {
			t.Errorf("%v: got %v", days, err)
		}
	}
}

// TestHead_IsInEveryReportOfMoney: what seals the journal stands in the report, and a trial balance has no seal from
// after it was known.
func TestHead_IsInEveryReportOfMoney(t *testing.T) {
	t.Parallel()
	s := open(t, postgrestest.New(t))
	s.day()
	head := ledger.Head{
		Sequence: 1, Day: "2026-11-30", UpToID: 9, Transactions: 9, Entries: 18, Debits: []ledger.Money{ledger.Won(1)},
		KeyID: "0123456789abcdef", Signature: make([]byte, 64), SealedAt: s.now,
	}
	head.Hash = head.Digest()
	s.tx(func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`INSERT INTO journal_sections (day, from_id, up_to_id, transactions, recorded_first, recorded_last, cut_at)
			VALUES ('2026-11-30', 0, 9, 9, now(), clock_timestamp(), now())`)
		ledger.QueueHead(b, head)
		return tx.SendBatch(t.Context(), b).Close()
	})
	want := []Fact{
		{"sealed", Word("yes")},
		{"head", Text(head.Hash.String())},
		{"head_day", Day("2026-11-30")},
		{"head_sequence", Count(1)},
		{"head_key", Text("0123456789abcdef")},
	}
	tail := func(want []Fact) func(Report) error {
		return func(r Report) error {
			if diff := cmp.Diff(want, r.Facts[len(r.Facts)-len(want):]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", r.Name, diff)
			}
			return nil
		}
	}
	s.must(s.Day(t.Context(), "2026-11-30", tail(want)))
	s.must(s.Range(t.Context(), "2026-11-01", "2026-11-30", tail(want)))
	s.must(s.TrialBalance(t.Context(), s.now, s.now, tail(want)))
	s.must(s.TrialBalance(t.Context(), s.now, s.now.Add(-time.Second), tail(notSealed())))
	if err := s.TrialBalance(t.Context(), s.now, s.now.Add(time.Second), tail(nil)); !errors.Is(err, ErrKnownAhead) {
		t.Errorf("known at an instant that has not come: got %v, want %v", err, ErrKnownAhead)
	}
	s.must(s.Day(t.Context(), "2026-11-29", tail(notSealed())))
}
