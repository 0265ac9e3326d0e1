package desk

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
	"daesa/reconcile"
)

var update = flag.Bool("update", false, "write the golden files anew")

func at(minute int) time.Time { return time.Date(2026, 11, 30, 3, minute, 5, 0, time.UTC) }

// samples is one of everything that people read.
func samples() (list []ledger.Mismatch) {
	return []ledger.Mismatch{
		{
			ID: 1041, Kind: ledger.KindCancelMissingHere, Status: ledger.MismatchAcknowledged, PaymentKey: "tgen_20261130x", OrderID: "order-1",
			TransactionKey: "txrd_1", AtRisk: ledger.Won(2_345_000), Detail: "the cancel is still owed after its last chance",
			Gateway: []byte(`{"amount": "2345000", "present": true}`), Books: []byte(`{"present": false}`), OpenedAt: at(1), LastSeenAt: at(9),
			TimesSeen: 3, Assignee: "os:lee", Revision: 4, Incident: 7,
			Proposal: &ledger.Proposal{As: ledger.ResolvedAccepted, By: "api:kim", At: at(8), Note: "refunded by transfer"},
		},
		{
			ID: 97, Kind: ledger.KindQuarantined, Status: ledger.MismatchOpen, OrderID: "주문-한글", Detail: "hostile \x1b[2J \u202eword\nhere",
			OpenedAt: at(2), LastSeenAt: at(2), TimesSeen: 1, Revision: 1,
		},
		{
			ID: 8, Kind: ledger.KindAmountDiffers, Status: ledger.MismatchResolved, OrderID: "order-22", AtRisk: ledger.Money{Minor: -1234567, Currency: ledger.USD},
			Detail: "the cancel is 1 here", OpenedAt: at(3), LastSeenAt: at(4), TimesSeen: 2, ResolvedAs: ledger.ResolvedFixed, ResolvedBy: "os:park",
			ResolvedAt: at(30), Note: "booked", Revision: 2,
		},
		{
			ID: 7, Kind: ledger.KindPaidTwice, Status: ledger.MismatchResolved, OrderID: "order-3", AtRisk: ledger.Won(5_000_000), Detail: "paid again",
			OpenedAt: at(3), LastSeenAt: at(4), TimesSeen: 2, ResolvedAs: ledger.ResolvedAccepted, ResolvedBy: "os:park", ResolvedAt: at(31),
			Note: "both were meant", Revision: 3, Confirmed: &ledger.Confirmation{
				Proposed: ledger.Proposal{As: ledger.ResolvedAccepted, By: "api:kim", At: at(30), Note: "both were meant"}, By: "os:park", At: at(31),
				Note: "asked the buyer",
			},
		},
		{
			ID: 6, Kind: ledger.KindPaidTwice, Status: ledger.MismatchResolved, OrderID: "order-4", AtRisk: ledger.Won(5_000_000), Detail: "paid again",
			OpenedAt: at(3), LastSeenAt: at(4), TimesSeen: 2, ResolvedAs: ledger.ResolvedAccepted, ResolvedBy: "os:park", ResolvedAt: at(31),
			Note: "both were meant", Revision: 3, Confirmed: &ledger.Confirmation{
				Proposed: ledger.Proposal{As: ledger.ResolvedAccepted, By: "api:kim", At: at(30), Note: "both were meant"}, By: "os:park", At: at(31),
			},
		},
	}
}

// TestText holds what people read against testdata.
func TestText(t *testing.T) {
	t.Parallel()
	var list MismatchList
	for _, m := range samples() {
		list.Mismatches = append(list.Mismatches, viewOf(m))
	}
	list.Next = 6
	one := samples()[0]
	dossier := Dossier{MismatchView: viewOf(one), NeedsTwo: true, Gateway: one.Gateway, Books: one.Books, Trail: []ledger.TrailLine{
		{Number: 1, At: at(1), Actor: ledger.System, Action: ledger.TrailOpened, Changed: []byte(`{"status": "open"}`)},
		{Number: 2, At: at(5), Actor: "os:lee", Action: ledger.TrailAcknowledged, Changed: []byte(`{"status": "acknowledged"}`), Note: "looking"},
		{Number: 3, At: at(6), Actor: "os:lee", Action: ledger.TrailAssigned, Changed: []byte(`{"assignee": "os:lee"}`)},
		{Number: 4, At: at(8), Actor: "api:kim", Action: ledger.TrailProposed, Changed: []byte(`{"proposal": {"as": "accepted"}}`), Note: "refunded by transfer"},
	}}
	incidents := IncidentList{Incidents: []IncidentView{
		incidentOf(ledger.Incident{
			ID: 7, Run: "audit recent 2026-11-30T03:00:00Z", Status: ledger.MismatchOpen, OpenedAt: at(0), Found: 1201, Left: 1200, Unknown: 2,
			AtRisk: []ledger.Money{ledger.Won(12_345_678), {Minor: 1050, Currency: ledger.USD}}, Proposed: 1199,
		}),
		incidentOf(ledger.Incident{ID: 6, Run: "list 41", Status: ledger.MismatchResolved, OpenedAt: at(0), EndedAt: at(9), Found: 201}),
	}}
	pending := PendingList{Next: "1.2", Pending: []PendingView{
		pendingOf(reconcile.Pending{
			WorkID: 1, Kind: ledger.WorkCancelClaimed, Line: reconcile.PendingRedelivery, OrderID: "order-1", PaymentKey: "pay-1", TransactionKey: "txrd_1",
			Amount: ledger.Won(50_000), Attempt: 2, NextExpected: at(12), LastChance: at(40), OpenedAt: at(1), Asked: 1, LastAnswer: "unanswered: timeout",
		}),
		pendingOf(reconcile.Pending{
			WorkID: 2, Kind: ledger.WorkCancelRequest, Line: reconcile.PendingPastLastChance, PaymentKey: "pay-2", RequestID: "req-1", LastChance: at(50), OpenedAt: at(1),
		}),
	}}
	for name, text := range map[string]interface{ WriteText(w io.Writer) error }{
		"mismatches": list, "mismatch": dossier, "resolved": viewOf(samples()[2]), "confirmed": viewOf(samples()[3]), "incidents": incidents, "incident": incidents.Incidents[0],
		"pending": pending, "none": MismatchList{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			if err := text.WriteText(&got); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("differs from %s; -update writes it (-want +got):\n%s", golden, diff)
			}
		})
	}
}
