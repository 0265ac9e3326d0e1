package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// found is a contradiction about a payment.
func found(n int, won int64) ledger.Finding {
	return ledger.Finding{
		Kind: ledger.KindCancelMissingHere, PaymentKey: fmt.Sprintf("pay-%05d", n), TransactionKey: fmt.Sprintf("tx-%05d", n),
		AtRisk: ledger.Won(won), Detail: "found", Gateway: map[string]any{"amount": won},
	}
}

func (b *books) found(run string, findings ...ledger.Finding) ledger.Opened {
	b.t.Helper()
	var opened ledger.Opened
	b.do(func(tx pgx.Tx) (err error) {
		opened, err = ledger.OpenMismatches(b.t.Context(), tx, run, findings, b.now)
		return err
	})
	return opened
}

func (b *books) exec(sql string) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.t.Context(), sql); err != nil {
		b.t.Fatal(err)
	}
}

func storm(n int) []ledger.Finding {
	var all []ledger.Finding
	for i := range n {
		all = append(all, found(i, 1000))
	}
	return all
}

// TestOpenMismatches_AStormIsOneIncidentAndKeptWhole: 200 are looked at one by one; one more is an incident, whichever
// page of the run it came with. Nothing is cut.
func TestOpenMismatches_AStormIsOneIncidentAndKeptWhole(t *testing.T) {
	t.Parallel()
	b := open(t)
	if o := b.found("list 1", storm(200)...); o.New != 200 || o.Incident != 0 {
		t.Errorf("got %+v, want 200 and no incident", o)
	}
	last := found(200, 5000)
	last.AtRisk = ledger.Money{}
	o := b.found("list 1", last)
	if o.New != 201 || o.Incident == 0 {
		t.Errorf("got %+v, want an incident of 201", o)
	}
	if o := b.found("audit 1", storm(2500)...); o.New != 2500-201 {
		t.Errorf("got %+v, want what is new only", o)
	}
	got := b.list(`SELECT run || ' ' || found || ' ' || unknown || ' ' || at_risk || ' ' || status FROM incidents ORDER BY incident_id`)
	if diff := cmp.Diff([]string{`list 1 201 1 {"KRW": 200000} open`, `audit 1 2299 0 {"KRW": 2299000} open`}, got); diff != "" {
		t.Errorf("incidents (-want +got):\n%s", diff)
	}
	if got := b.list(`SELECT count(*) || ' ' || count(incident_id) FROM mismatches`); got[0] != "2500 2500" {
		t.Errorf("got %s mismatches and linked ones, want all 2,500", got[0])
	}
}

// TestOpenMismatches_SeenAgainIsNotNew: a storm that is found each minute is one incident, and one finding twice in a run
// is one mismatch.
func TestOpenMismatches_SeenAgainIsNotNew(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.found("audit 1", append(storm(300), storm(300)...)...)
	for i := range 3 {
		b.now = b.now.Add(time.Minute)
		if o := b.found(fmt.Sprintf("audit again %d", i), storm(300)...); o != (ledger.Opened{}) {
			t.Errorf("got %+v, want nothing new", o)
		}
	}
	got := b.list(`SELECT (SELECT count(*) FROM incidents) || ' ' || min(times_seen) || ' ' || max(times_seen) || ' ' || max(revision) FROM mismatches`)
	if diff := cmp.Diff([]string{"1 4 4 2"}, got); diff != "" {
		t.Errorf("incidents, seen, changes (-want +got):\n%s", diff)
	}
}

// TestMismatch_OneRowForEver: resolved as auto or fixed it opens again in place; what a person accepted stays accepted
// as long as it is the same money.
func TestMismatch_OneRowForEver(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		resolvedAs string
		again      ledger.Finding
		queued     bool
		status     string
		trail      []string
	}{
		{"auto", "auto", found(1, 1000), false, "open", []string{"opened", "resolved", "reopened"}},
		{"auto, found by one answer", "auto", found(1, 1000), true, "open", []string{"opened", "resolved", "reopened"}},
		{"fixed", "fixed", found(1, 1000), true, "open", []string{"opened", "resolved", "reopened"}},
		{"accepted", "accepted", found(1, 1000), false, "resolved", []string{"opened", "resolved"}},
		{"accepted, found by one answer", "accepted", found(1, 1000), true, "resolved", []string{"opened", "resolved"}},
		{"accepted, other money", "accepted", found(1, 999), false, "open", []string{"opened", "resolved", "reopened"}},
		{"accepted, money no longer known", "accepted", func() ledger.Finding {
			f := found(1, 0)
			f.AtRisk = ledger.Money{}
			return f
		}(), true, "open", []string{"opened", "resolved", "reopened"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.found("audit 1", found(1, 1000))
			b.exec(`UPDATE mismatches SET status = 'resolved', resolved_as = '` + test.resolvedAs + `', resolved_at = now(), note = 'by phone'`)
			if test.queued {
				b.do(func(tx pgx.Tx) error {
					batch := &pgx.Batch{}
					ledger.QueueMismatch(batch, test.again, b.now)
					return tx.SendBatch(t.Context(), batch).Close()
				})
			} else {
				b.found("audit 2", test.again)
			}
			if got := b.list(`SELECT status || ' ' || times_seen FROM mismatches`); got[0] != test.status+" 2" || len(got) != 1 {
				t.Errorf("got %v, want one row, %s, seen twice", got, test.status)
			}
			if diff := cmp.Diff(test.trail, b.list(`SELECT action FROM mismatch_trail ORDER BY number`)); diff != "" {
				t.Errorf("trail (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMismatch_AcceptedWordsAreOneDifference: where the money does not say what is wrong, other words are another
// difference.
func TestMismatch_AcceptedWordsAreOneDifference(t *testing.T) {
	t.Parallel()
	wordy := []ledger.Kind{
		ledger.KindHistoryChanged, ledger.KindOrderDiffers, ledger.KindMerchantDiffers, ledger.KindQuarantined, ledger.KindUnrecognized,
		ledger.KindSignedDayChanged, ledger.KindJournalDiffers,
	}
	for _, kind := range ledger.Kinds() {
		want := "resolved"
		if slices.Contains(wordy, kind) {
			want = "open"
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := open(t)
			f := found(1, 1000)
			f.Kind = kind
			b.found("audit 1", f)
			b.exec(`UPDATE mismatches SET status = 'resolved', resolved_as = 'accepted', resolved_at = now(), note = 'by phone'`)
			f.Detail = "something else"
			b.found("audit 2", f)
			if got := b.list(`SELECT status FROM mismatches`); got[0] != want {
				t.Errorf("got %s, want %s", got[0], want)
			}
		})
	}
}

// TestMismatchTrail_IsAppendOnly: not even the owner of the table changes it by mistake, and nothing changes a mismatch
// without it.
func TestMismatchTrail_IsAppendOnly(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.found("audit 1", found(1, 1000))
	for _, sql := range []string{
		`UPDATE mismatch_trail SET actor = 'os:somebody'`, `DELETE FROM mismatch_trail`, `TRUNCATE mismatch_trail`,
		`DELETE FROM mismatches`, `UPDATE mismatches SET fingerprint = 'other'`,
	} {
		if _, err := b.pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: got no error", sql)
		}
	}
	b.exec(`UPDATE mismatches SET assignee = 'os:lee'`)
	if got := b.list(`SELECT action || ' ' || (actor LIKE 'db:%') || ' ' || changed FROM mismatch_trail WHERE number = 2`); len(got) != 1 || got[0] != `assigned true {"assignee": "os:lee"}` {
		t.Errorf("got %v, want the change by hand put down as that", got)
	}
}
