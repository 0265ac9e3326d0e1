package ledger

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

// golden compares got with the file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the table says; review, then run go test ./ledger -update (-file +table):\n%s", file, diff)
	}
}

func TestTransitions_EveryPairIsDecided(t *testing.T) {
	t.Parallel()
	if len(transitions) != len(Statuses()) {
		t.Fatalf("got %d rows, want %d", len(transitions), len(Statuses()))
	}
	for _, s := range Statuses() {
		if len(transitions[s]) != len(Events()) {
			t.Errorf("%s: got %d cells, want %d", s, len(transitions[s]), len(Events()))
		}
		for _, e := range Events() {
			m, decided := transitions[s][e]
			switch {
			case !decided:
				t.Errorf("%s × %s is not decided", s, e)
			case (m.verdict == goes) != slices.Contains(Statuses(), m.to):
				t.Errorf("%s × %s: %s to %q", s, e, m.verdict, m.to)
			case !slices.Contains([]verdict{goes, stays, refuses, conflicts}, m.verdict):
				t.Errorf("%s × %s: unknown verdict %q", s, e, m.verdict)
			}
		}
	}
}

// reachable is every status that a payment can get to by any number of events.
func reachable(from Status) []Status {
	seen := []Status{}
	for todo := []Status{from}; len(todo) > 0; todo = todo[1:] {
		for _, e := range Events() {
			m := transitions[todo[0]][e]
			if m.verdict == goes && !slices.Contains(seen, m.to) {
				seen, todo = append(seen, m.to), append(todo, m.to)
			}
		}
	}
	return seen
}

func TestTransitions_NothingLeadsFromCanceledBack(t *testing.T) {
	t.Parallel()
	if got := reachable(StatusCanceled); len(got) != 0 {
		t.Errorf("canceled leads to %v, want nowhere", got)
	}
	if got := reachable(StatusPartiallyCanceled); slices.Contains(got, StatusDone) {
		t.Errorf("partially canceled leads to %v, never back to done", got)
	}
}

func TestTransitions_EveryStatusCanBeReached(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses() {
		if got := reachable(StatusReady); s != StatusReady && !slices.Contains(got, s) {
			t.Errorf("nothing leads to %s", s)
		}
	}
}

func TestInvariantI6_DoubtEndsByEvidenceAlone(t *testing.T) {
	t.Parallel()
	evidence := []Event{
		EventDead, EventWaiting, EventCaptured, EventPartiallyCanceled, EventFullyCanceled, EventVoided,
	}
	definite := []Event{EventRefused, EventUnprocessed} // of the one attempt that is under way
	for _, e := range Events() {
		if m := transitions[StatusUnknown][e]; m.verdict == goes && !slices.Contains(evidence, e) {
			t.Errorf("unknown leaves by %s, which is no evidence", e)
		}
		m := transitions[StatusConfirming][e]
		if m.verdict == goes && m.to != StatusUnknown && !slices.Contains(slices.Concat(evidence, definite), e) {
			t.Errorf("confirming leaves by %s, which is no evidence", e)
		}
	}
}

func TestTransitions_MoneyWins(t *testing.T) {
	t.Parallel()
	for _, s := range []Status{StatusReady, StatusConfirming, StatusUnknown, StatusFailed, StatusWaitingForDeposit} {
		for _, c := range []struct {
			seen Event
			want Status
		}{{EventCaptured, StatusDone}, {EventPartiallyCanceled, StatusPartiallyCanceled}, {EventFullyCanceled, StatusCanceled}} {
			if got := transitions[s][c.seen]; got != to(c.want) {
				t.Errorf("%s × %s: got %+v, want %s", s, c.seen, got, c.want)
			}
		}
	}
}

func TestTransitions_OnlyAReadyPaymentIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses() {
		if got, want := transitions[s][EventIntended].verdict == goes, s == StatusReady; got != want {
			t.Errorf("%s: got confirmable %t, want %t", s, got, want)
		}
	}
}

func TestTransitions_OnlyAFallenDepositTakesMoneyBack(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses() {
		for _, e := range Events() {
			m := transitions[s][e]
			if s.HoldsMoney() && m.verdict == goes && !m.to.HoldsMoney() && m.to != StatusCanceled && e != EventReverted {
				t.Errorf("%s × %s loses the money on the way to %s", s, e, m.to)
			}
		}
	}
}

func TestOrderStatus_FollowsItsPayment(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	for _, current := range OrderStatuses() {
		for _, s := range Statuses() {
			got := orderStatus(current, s)
			if s.HoldsMoney() && (got == OrderPending || got == OrderExpired) {
				t.Errorf("an order whose payment is %s is %s", s, got)
			}
			fmt.Fprintf(&table, "%s, payment %s: %s\n", current, s, got)
		}
	}
	golden(t, "testdata/order_status.golden", table.String())
}

// TestStateMachine_Document keeps the page that people read equal to the table that decides.
func TestStateMachine_Document(t *testing.T) {
	t.Parallel()
	golden(t, "../docs/state-machine.md", documentOf())
}

func documentOf() string {
	var b strings.Builder
	b.WriteString(`# The state machine of a payment

Generated from the table in ledger/state.go by ` + "`go test ./ledger -update`" + `; do not edit.

A payment moves only by an intent of ours or by what the gateway said of it. Evidence that money moved wins over
ready, confirming, unknown and failed. Confirming and unknown end only by evidence, and "open" is none. Nothing leads
from canceled back to money. The one backward move of money is a deposit that fell back, seen twice.

## Diagram

` + "```mermaid\nstateDiagram-v2\n    [*] --> ready\n")
	for _, from := range Statuses() {
		for _, to := range Statuses() {
			var events []string
			for _, e := range Events() {
				if m := transitions[from][e]; m.verdict == goes && m.to == to {
					events = append(events, string(e))
				}
			}
			if len(events) > 0 {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, strings.Join(events, ", "))
			}
		}
	}
	b.WriteString("```\n\n## Every pair\n\n")
	b.WriteString(`- a status in bold: the payment moves there (or stays there with more to write)
- ·: old, repeated or weaker evidence; nothing changes
- refused: our own intent is turned down
- conflict: the gateway contradicts our books; nothing changes, and a mismatch is opened

| event |`)
	for _, s := range Statuses() {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(Statuses())) + "\n")
	for _, e := range Events() {
		fmt.Fprintf(&b, "| %s |", e)
		for _, s := range Statuses() {
			fmt.Fprintf(&b, " %s |", cell(transitions[s][e]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func cell(m move) string {
	switch m.verdict {
	case goes:
		return "**" + string(m.to) + "**"
	case stays:
		return "·"
	case refuses:
		return "refused"
	case conflicts:
		return "conflict"
	}
	panic("verdict " + m.verdict)
}
