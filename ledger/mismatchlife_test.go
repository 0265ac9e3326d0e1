package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

// aMillion is the amount above which a second person is asked for.
func aMillion() ledger.SecondPerson {
	return ledger.SecondPerson{Above: ledger.DefaultSecondPersonAbove}
}

func (b *books) step(id int64, c ledger.Change) (m ledger.Mismatch, err error) {
	err = b.try(func(tx pgx.Tx) (err error) {
		m, err = ledger.ChangeMismatch(b.t.Context(), tx, id, c, aMillion(), b.now)
		return err
	})
	return m, err
}

// trail lists what was done with the mismatches, by whom.
func (b *books) trail() []string {
	b.t.Helper()
	return b.list(`SELECT actor || ' ' || action || CASE WHEN note <> '' THEN ': ' || note ELSE '' END FROM mismatch_trail ORDER BY mismatch_id, number`)
}

// TestMismatch_Life walks each step once, and each refusal.
func TestMismatch_Life(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		won    int64 // below nothing: not known
		steps  []ledger.Change
		err    error // of the last step
		status ledger.MismatchStatus
		trail  []string // after the opening
	}{
		{
			"small money needs one person", 1_000_000,
			[]ledger.Change{{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}},
			nil, ledger.MismatchResolved,
			[]string{"os:kim resolved"},
		},
		{"more needs two", 1_000_001, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed, Note: "booked"},
			{Step: ledger.StepConfirm, By: "api:lee"},
		}, nil, ledger.MismatchResolved, []string{"os:kim resolution_proposed: booked", "api:lee resolved"}},
		{
			"unknown money needs two", -1,
			[]ledger.Change{{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}},
			nil, ledger.MismatchOpen,
			[]string{"os:kim resolution_proposed"},
		},
		{"nobody is their own second person", 2_000_000, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}, {Step: ledger.StepConfirm, By: "api:Kim"},
		}, ledger.ErrSecondPerson, ledger.MismatchOpen, []string{"os:kim resolution_proposed"}},
		{"the service is nobody's second person", 2_000_000, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}, {Step: ledger.StepConfirm, By: ledger.System},
		}, ledger.ErrActor, ledger.MismatchOpen, []string{"os:kim resolution_proposed"}},
		{"who is assigned may confirm", 2_000_000, []ledger.Change{
			{Step: ledger.StepAssign, By: "os:kim", To: "os:lee"},
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed},
			{Step: ledger.StepConfirm, By: "os:lee", Note: "seen"},
		}, nil, ledger.MismatchResolved, []string{"os:kim assigned", "os:kim resolution_proposed", "os:lee resolved: seen"}},
		{"noted after it was confirmed", 2_000_000, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedAccepted, Note: "by phone"},
			{Step: ledger.StepConfirm, By: "os:lee"},
			{Step: ledger.StepNote, By: "os:park", Note: "late"},
		}, nil, ledger.MismatchResolved, []string{"os:kim resolution_proposed: by phone", "os:lee resolved", "os:park noted: late"}},
		{"confirmed and opened again", 2_000_000, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed},
			{Step: ledger.StepConfirm, By: "os:lee"},
			{Step: ledger.StepReopen, By: "os:lee"},
		}, nil, ledger.MismatchOpen, []string{"os:kim resolution_proposed", "os:lee resolved", "os:lee reopened"}},
		{"a proposal is not proposed again", 2_000_000, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}, {Step: ledger.StepResolve, By: "os:lee", As: ledger.ResolvedFixed},
		}, ledger.ErrStep, ledger.MismatchOpen, []string{"os:kim resolution_proposed"}},
		{"withdrawn", 2_000_000, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed},
			{Step: ledger.StepWithdraw, By: "os:kim"},
			{Step: ledger.StepConfirm, By: "os:lee"},
		}, ledger.ErrStep, ledger.MismatchOpen, []string{"os:kim resolution_proposed", "os:kim resolution_withdrawn"}},
		{
			"accepting needs a reason", 1,
			[]ledger.Change{{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedAccepted, Note: " \n"}},
			ledger.ErrNote, ledger.MismatchOpen, nil,
		},
		{
			"accepted", 1,
			[]ledger.Change{{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedAccepted, Note: "by phone"}},
			nil, ledger.MismatchResolved,
			[]string{"os:kim resolved: by phone"},
		},
		{
			"nobody resolves in the service's name", 1,
			[]ledger.Change{{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedAuto}},
			ledger.ErrResolution, ledger.MismatchOpen, nil,
		},
		{"resolved twice", 1, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}, {Step: ledger.StepResolve, By: "os:lee", As: ledger.ResolvedFixed},
		}, ledger.ErrStep, ledger.MismatchResolved, []string{"os:kim resolved"}},
		{"acknowledged, noted, opened again", 1, []ledger.Change{
			{Step: ledger.StepAcknowledge, By: "os:kim", Note: "looking"},
			{Step: ledger.StepNote, By: "os:kim", Note: "asked Toss"},
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed},
			{Step: ledger.StepReopen, By: "os:lee", Note: "not so"},
			{Step: ledger.StepReopen, By: "os:lee"},
		}, ledger.ErrStep, ledger.MismatchOpen, []string{
			"os:kim acknowledged: looking", "os:kim noted: asked Toss", "os:kim resolved", "os:lee reopened: not so",
		}},
		{"seen by another revision", 1, []ledger.Change{
			{Step: ledger.StepNote, By: "os:kim", Note: "first"}, {Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed, Revision: 1},
		}, ledger.ErrMoved, ledger.MismatchOpen, []string{"os:kim noted: first"}},
		{"a note that cannot be kept", 1, []ledger.Change{{Step: ledger.StepNote, By: "os:kim", Note: "a\x00b"}}, ledger.ErrNote, ledger.MismatchOpen, nil},
		{"a note without words", 1, []ledger.Change{{Step: ledger.StepNote, By: "os:kim"}}, ledger.ErrNote, ledger.MismatchOpen, nil},
		{"a note without end", 1, []ledger.Change{{Step: ledger.StepNote, By: "os:kim", Note: strings.Repeat("가", 2001)}}, ledger.ErrNote, ledger.MismatchOpen, nil},
		{"no cancel request of ours", 1, []ledger.Change{
			{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed, Note: "n", Request: &ledger.RequestEnd{Status: ledger.CancelRequestRefused}},
		}, ledger.ErrRequestEnd, ledger.MismatchOpen, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			f := found(1, test.won)
			if test.won < 0 {
				f.AtRisk = ledger.Money{}
			}
			b.found("audit 1", f)
			var err error
			for n, c := range test.steps {
				if _, err = b.step(1, c); err != nil && n < len(test.steps)-1 {
					t.Fatalf("step %d: %v", n, err)
				}
			}
			if !errors.Is(err, test.err) {
				t.Errorf("got error %v, want %v", err, test.err)
			}
			m := b.mismatch(1)
			if m.Status != test.status {
				t.Errorf("got %s, want %s", m.Status, test.status)
			}
			if diff := cmp.Diff(b.confirmed(test.steps, m.Status), m.Confirmed); diff != "" {
				t.Errorf("by two (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]string{"system opened"}, test.trail...), b.trail()); diff != "" {
				t.Errorf("trail (-want +got):\n%s", diff)
			}
			ledgertest.RequireSound(t, b.pool)
		})
	}
}

// confirmed is who proposed and who confirmed by the steps, where it is resolved.
func (b *books) confirmed(steps []ledger.Change, status ledger.MismatchStatus) *ledger.Confirmation {
	for n, c := range steps {
		if p := steps[max(n, 1)-1]; c.Step == ledger.StepConfirm && status == ledger.MismatchResolved {
			return &ledger.Confirmation{Proposed: ledger.Proposal{As: p.As, By: p.By, At: b.now, Note: p.Note}, By: c.By, At: b.now, Note: c.Note}
		}
	}
	return nil
}

func (b *books) mismatch(id int64) ledger.Mismatch {
	b.t.Helper()
	m, err := ledger.LoadMismatch(b.t.Context(), b.pool, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

// TestMismatch_UnfixableIsNotFixed: that the gateway's list contradicts itself about a transaction is found by no
// comparison again, so nobody ends it by saying that it was put right: not alone, not by two, not with a storm.
func TestMismatch_UnfixableIsNotFixed(t *testing.T) {
	t.Parallel()
	b := open(t)
	all := storm(201)
	for n, kind := range []ledger.Kind{ledger.KindHistoryChanged, ledger.KindQuarantined, ledger.KindUnrecognized} {
		f := found(1000+n, 1000)
		f.Kind = kind
		all = append(all, f)
	}
	answer := found(2000, 1000) // an answer names no transaction
	answer.Kind, answer.TransactionKey = ledger.KindQuarantined, ""
	incident := b.found("list 1", append(all, answer)...).Incident
	fixed := ledger.Change{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed, Note: "put right"}
	for n := range 3 {
		if m, err := b.step(b.idOf(1000+n), fixed); !errors.Is(err, ledger.ErrUnfixable) {
			t.Errorf("%s: got %s and %v", m.Kind, m.Status, err)
		}
	}
	proposed := b.idOf(1000)
	b.list(`UPDATE mismatches SET proposal = '{"as": "fixed", "by": "os:kim", "at": "2026-01-01T00:00:00Z", "note": ""}'
		WHERE payment_key = 'pay-01000' RETURNING payment_key`)
	if _, err := b.step(proposed, ledger.Change{Step: ledger.StepConfirm, By: "os:lee"}); !errors.Is(err, ledger.ErrUnfixable) {
		t.Errorf("confirmed: got %v", err)
	}
	if _, err := b.step(proposed, ledger.Change{Step: ledger.StepWithdraw, By: "os:lee"}); err != nil {
		t.Errorf("withdrawn: got %v", err)
	}
	change := func(c ledger.Change) error {
		return b.try(func(tx pgx.Tx) (err error) {
			_, err = ledger.ChangeIncident(t.Context(), tx, incident, c, aMillion(), b.now)
			return err
		})
	}
	left := func() []string {
		return b.list(`SELECT DISTINCT kind || ' ' || (proposal IS NOT NULL) FROM mismatches WHERE status <> 'resolved' ORDER BY 1`)
	}
	want := []string{"history_changed false", "quarantined false", "unrecognized_status false"}
	if err := change(fixed); err != nil || !slices.Equal(left(), want) {
		t.Errorf("the storm: got %v and %v", left(), err)
	}
	if err := change(fixed); !errors.Is(err, ledger.ErrUnfixable) || !slices.Equal(left(), want) {
		t.Errorf("the rest of it: got %v and %v", left(), err)
	}
	fixed.As = ledger.ResolvedAccepted
	if err := change(fixed); err != nil || len(left()) != 0 {
		t.Errorf("accepted: got %v and %v", left(), err)
	}
}

// TestMismatch_ProposalFallsWithOtherMoney: what is confirmed must be what was proposed.
func TestMismatch_ProposalFallsWithOtherMoney(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.found("audit 1", found(1, 2_000_000))
	if _, err := b.step(1, ledger.Change{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}); err != nil {
		t.Fatal(err)
	}
	b.found("audit 2", found(1, 2_000_000))
	if b.mismatch(1).Proposal == nil {
		t.Error("the proposal fell although it is the same money")
	}
	b.found("audit 3", found(1, 9_000_000))
	if _, err := b.step(1, ledger.Change{Step: ledger.StepConfirm, By: "os:lee"}); !errors.Is(err, ledger.ErrStep) {
		t.Errorf("got %v, want the proposal gone", err)
	}
}

// TestMismatch_EvidenceIsFrozen: what was judged by stays readable, whatever is seen later.
func TestMismatch_EvidenceIsFrozen(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.found("audit 1", found(1, 1000))
	if _, err := b.step(1, ledger.Change{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}); err != nil {
		t.Fatal(err)
	}
	b.found("audit 2", found(1, 700))
	want := []string{`opened {"amount": 1000}`, `resolved {"amount": 1000}`, `reopened {"amount": 700}`}
	if diff := cmp.Diff(want, b.list(`SELECT action || ' ' || gateway FROM mismatch_trail ORDER BY number`)); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
}

// TestMismatch_OfManyAtOnceOneWins: two people who confirm, or resolve, at the same instant.
func TestMismatch_OfManyAtOnceOneWins(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		won  int64
		c    ledger.Change
	}{
		{"resolve", 1000, ledger.Change{Step: ledger.StepResolve, As: ledger.ResolvedFixed}},
		{"propose", 2_000_000, ledger.Change{Step: ledger.StepResolve, As: ledger.ResolvedFixed}},
		{"acknowledge", 1000, ledger.Change{Step: ledger.StepAcknowledge}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			b.found("audit 1", found(1, test.won))
			var won atomic.Int64
			together(t, 8, func(i int) error {
				c := test.c
				c.By = ledger.Actor(fmt.Sprintf("os:user%d", i))
				_, err := b.step(1, c)
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, ledger.ErrStep) {
					return err
				}
				return nil
			})
			if won.Load() != 1 || len(b.trail()) != 2 {
				t.Errorf("got %d winners and trail %v, want one", won.Load(), b.trail())
			}
		})
	}
}

// TestSecondPerson_Needed weighs money of every currency.
func TestSecondPerson_Needed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		atRisk []ledger.Money
		want   bool
	}{
		{"a million won", []ledger.Money{ledger.Won(1_000_000)}, false},
		{"a won more", []ledger.Money{ledger.Won(1_000_001)}, true},
		{"less than nothing", []ledger.Money{ledger.Won(-1_000_001)}, true},
		{"500 dollars", []ledger.Money{{Minor: 50_000, Currency: ledger.USD}}, false},
		{"a cent more", []ledger.Money{{Minor: 50_001, Currency: ledger.USD}}, true},
		{"100,000 yen", []ledger.Money{{Minor: 100_000, Currency: ledger.JPY}}, false},
		{"a yen more", []ledger.Money{{Minor: 100_001, Currency: ledger.JPY}}, true},
		{"together too much", []ledger.Money{ledger.Won(600_000), {Minor: 25_000, Currency: ledger.USD}}, true},
		{"together just little enough", []ledger.Money{ledger.Won(600_000), {Minor: 20_000, Currency: ledger.USD}}, false},
		{"three currencies", []ledger.Money{{Minor: 1, Currency: ledger.JPY}, ledger.Won(999_971), {Minor: 1, Currency: ledger.USD}}, true},
		{"together more than a number holds", []ledger.Money{ledger.Won(1<<63 - 1), {Minor: 1, Currency: ledger.USD}}, true},
		{"little beside what is not known", []ledger.Money{ledger.Won(1), {}}, true},
		{"not known", []ledger.Money{{}}, true},
		{"credits", []ledger.Money{{Minor: 1, Currency: ledger.Credits}}, true},
		{"more than a number holds", []ledger.Money{{Minor: 1 << 62, Currency: ledger.USD}}, true},
		{"the least number", []ledger.Money{ledger.Won(-1 << 63)}, true},
		{"nothing", []ledger.Money{ledger.Won(0)}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := aMillion().Needed(test.atRisk...); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
			if got := aMillion().Needed(ledger.Together(test.atRisk...)); got != test.want {
				t.Errorf("all of it together: got %t, want %t", got, test.want)
			}
		})
	}
}

// TestMismatch_AnyStepsByAnybody lets several people, the audit and the service do whatever they like, and holds what
// must be true of every trail.
func TestMismatch_AnyStepsByAnybody(t *testing.T) {
	t.Parallel()
	b := open(t)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		subject := n
		b.found("audit", found(subject, rapid.SampledFrom([]int64{1000, 2_000_000}).Draw(r, "won")))
		id := b.idOf(subject)
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			before := b.mismatch(id)
			err := b.anything(r, subject, id)
			if after := b.mismatch(id); err != nil && after.Revision != before.Revision {
				r.Fatalf("%v, and it moved from %+v to %+v", err, before, after)
			}
		}
		b.requireTrail(r, id)
	})
	ledgertest.RequireSound(t, b.pool)
}

func (b *books) idOf(subject int) (id int64) {
	b.t.Helper()
	err := b.pool.QueryRow(b.t.Context(), `SELECT mismatch_id FROM mismatches WHERE payment_key = $1`, fmt.Sprintf("pay-%05d", subject)).Scan(&id)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// anything is one thing that may happen to a mismatch.
func (b *books) anything(r *rapid.T, subject int, id int64) error {
	b.now = b.now.Add(time.Minute)
	switch rapid.IntRange(0, 9).Draw(r, "what") {
	case 0:
		b.found("again", found(subject, rapid.SampledFrom([]int64{1000, 2_000_000}).Draw(r, "won")))
		return nil
	case 1:
		_, err := b.pool.Exec(b.t.Context(), `
			UPDATE mismatches SET status = 'resolved', resolved_at = $2, resolved_as = 'auto', resolved_by = 'system', proposal = NULL,
				revision = revision + 1, changed_at = $2, changed_by = 'system', remark = ''
			WHERE mismatch_id = $1 AND status <> 'resolved'`, id, b.now)
		return err
	}
	c := ledger.Change{
		Step: rapid.SampledFrom(ledger.Steps()).Draw(r, "step"),
		By:   rapid.SampledFrom([]ledger.Actor{"os:kim", "api:kim", "os:lee", "api:back-office", ledger.System}).Draw(r, "by"),
		As:   rapid.SampledFrom(ledger.Resolutions()).Draw(r, "as"),
		To:   rapid.SampledFrom([]ledger.Actor{"", "os:lee"}).Draw(r, "to"),
		Note: rapid.SampledFrom([]string{"", "said"}).Draw(r, "note"),
	}
	_, err := b.step(id, c)
	return err
}

// requireTrail holds a trail against the row that it tells of.
func (b *books) requireTrail(r *rapid.T, id int64) {
	trail, err := ledger.MismatchTrail(b.t.Context(), b.pool, id)
	if err != nil {
		r.Fatal(err)
	}
	replayed := map[string]any{}
	for n, line := range trail {
		if line.Number != n+1 {
			r.Fatalf("got number %d at place %d", line.Number, n+1)
		}
		amount, proposal := replayed["amount"], replayed["proposal"]
		if err := json.Unmarshal(line.Changed, &replayed); err != nil {
			r.Fatal(err)
		}
		if line.Action != ledger.TrailResolved {
			continue
		}
		by, _ := proposal.(map[string]any)
		switch as := replayed["resolved_as"]; {
		case (as == "auto") != (line.Actor == ledger.System):
			r.Fatalf("%s resolved as %v", line.Actor, as)
		case as == "auto":
		case as == "accepted" && replayed["note"] == "":
			r.Fatalf("accepted without a reason: %+v", line)
		case by != nil && line.Actor.Same(ledger.Actor(fmt.Sprint(by["by"]))):
			r.Fatalf("%s is their own second person", line.Actor)
		case by == nil && amount != 1000.0:
			r.Fatalf("%v resolved by %s alone", amount, line.Actor)
		}
		if line.Gateway == nil {
			r.Fatalf("resolved without evidence: %+v", line)
		}
	}
	row := b.list(fmt.Sprintf(`SELECT mismatch_fields(m)::text FROM mismatches m WHERE mismatch_id = %d`, id))
	var want map[string]any
	if err := json.Unmarshal([]byte(row[0]), &want); err != nil {
		r.Fatal(err)
	}
	if diff := cmp.Diff(want, replayed); diff != "" {
		r.Fatalf("the trail does not tell the row (-row +trail):\n%s", diff)
	}
	if last := b.mismatch(id).Revision; last != len(trail) {
		r.Fatalf("got revision %d and %d lines", last, len(trail))
	}
}

// TestIncident_ResolvedWhole: the money of all together asks for the second person, and what one person has proposed of
// one mismatch is left to that.
func TestIncident_ResolvedWhole(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.found("audit 1", append(storm(1100), found(2000, 3_000_000))...).Incident
	change := func(c ledger.Change) (i ledger.Incident, err error) {
		err = b.try(func(tx pgx.Tx) (err error) {
			i, err = ledger.ChangeIncident(t.Context(), tx, id, c, aMillion(), b.now)
			return err
		})
		return i, err
	}
	if _, err := b.step(b.idOf(2000), ledger.Change{Step: ledger.StepResolve, By: "os:park", As: ledger.ResolvedFixed}); err != nil {
		t.Fatal(err)
	}
	if _, err := change(ledger.Change{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedAccepted}); !errors.Is(err, ledger.ErrNote) {
		t.Errorf("got %v, want a reason asked for", err)
	}
	i, err := change(ledger.Change{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedAccepted, Note: "list outage"})
	if err != nil || i.Status != ledger.MismatchOpen || i.Left != 1101 || i.Proposed != 1100 {
		t.Fatalf("got %+v and %v, want a proposal", i, err)
	}
	if _, err := change(ledger.Change{Step: ledger.StepConfirm, By: "api:kim"}); !errors.Is(err, ledger.ErrSecondPerson) {
		t.Errorf("got %v, want no second person", err)
	}
	i, err = change(ledger.Change{Step: ledger.StepConfirm, By: "os:lee", Note: "seen"})
	if err != nil || i.Status != ledger.MismatchOpen || i.Left != 1 {
		t.Fatalf("got %+v and %v, want one left", i, err)
	}
	if _, err := b.step(b.idOf(2000), ledger.Change{Step: ledger.StepConfirm, By: "os:kim"}); err != nil {
		t.Fatal(err)
	}
	if got := b.list(`SELECT status || ' ' || (ended_at IS NOT NULL) FROM incidents`); !slices.Equal(got, []string{"resolved true"}) {
		t.Errorf("got %v, want it over with its last", got)
	}
	if _, err := change(ledger.Change{Step: ledger.StepWithdraw, By: "os:lee"}); !errors.Is(err, ledger.ErrStep) {
		t.Errorf("got %v, want it to be over", err)
	}
	got := b.list(`SELECT DISTINCT resolved_as || ' ' || resolved_by || ' ' || note FROM mismatches WHERE transaction_key < 'tx-02000'`)
	if !slices.Equal(got, []string{"accepted os:lee list outage"}) {
		t.Errorf("got %v", got)
	}
	two := b.mismatch(b.idOf(7)).Confirmed
	if two == nil || two.By != "os:lee" || two.Note != "seen" || two.Proposed.By != "os:kim" || two.Proposed.Note != "list outage" || two.Proposed.Incident != id {
		t.Errorf("got %+v", two)
	}
}

// TestIncident_LittleMoneyNeedsOne, and withdrawing leaves it as it was.
func TestIncident_LittleMoneyNeedsOne(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.found("audit 1", storm(201)...).Incident
	err := b.try(func(tx pgx.Tx) error {
		_, err := ledger.ChangeIncident(t.Context(), tx, id, ledger.Change{Step: ledger.StepResolve, By: "os:kim", As: ledger.ResolvedFixed}, aMillion(), b.now)
		return err
	})
	if got := b.list(`SELECT status FROM incidents`); err != nil || got[0] != "resolved" {
		t.Errorf("got %v and %v, want it over", got, err)
	}
}
