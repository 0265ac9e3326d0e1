package checkout

import (
	"testing"
	"time"

	"daesa/checkout/store"
	"daesa/ledger"
)

// TestDecideFate is the table of what becomes of an acceptance.
func TestDecideFate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 15, 12, 10, 0, 0, time.UTC)
	asked := now.Add(-time.Minute)
	held := func(word store.Word) question {
		return question{state: acceptanceHeld, word: word, sent: true, attempt: 2, askedAt: asked}
	}
	of := func(q question, status ledger.Status, attempt int, took bool) question {
		q.payment = &paymentNow{status: status, attempt: attempt, took: took}
		return q
	}
	unsent := held(store.Unreachable)
	unsent.sent = false
	gone := question{
		state: acceptanceReleased, word: store.Accepted, sent: true, attempt: 2, askedAt: asked, owedAt: asked, endedAt: now.Add(-5 * time.Minute),
	}
	old, told := gone, gone
	old.endedAt, told.told = now.Add(-4096*time.Minute), true
	early := gone
	early.attempt = 0
	owed := question{state: acceptanceReleasing, sent: true, attempt: 2, askedAt: asked, owedAt: now.Add(-time.Hour)}
	hopeless := owed
	hopeless.owedAt = now.Add(-3 * 24 * time.Hour)
	send := fate{state: acceptanceReleasing, due: now, send: true}
	wait := fate{state: acceptanceHeld, due: now.Add(time.Minute)}
	again := fate{state: acceptanceHeld, due: now.Add(2 * time.Second)}
	for _, test := range []struct {
		name string
		q    question
		want fate
	}{
		{"left behind", question{state: acceptanceAsking, sent: true, askedAt: asked}, send},
		{"paid", of(held(store.Accepted), ledger.StatusDone, 2, true), fate{state: acceptanceKept}},
		{"paid and canceled in part since", of(held(store.Accepted), ledger.StatusPartiallyCanceled, 2, true), fate{state: acceptanceKept}},
		{"paid and canceled since", of(held(store.Accepted), ledger.StatusCanceled, 2, true), fate{state: acceptanceKept}},
		{"paid without its word", of(held(store.Late), ledger.StatusDone, 2, true), fate{state: acceptanceKept, tell: checkLate}},
		{"paid without being asked", of(unsent, ledger.StatusDone, 2, true), fate{state: acceptanceKept, tell: checkUnreachable}},
		{"being sent", of(held(store.Accepted), ledger.StatusConfirming, 2, false), wait},
		{"unknown", of(held(store.Accepted), ledger.StatusUnknown, 2, false), wait},
		{"unknown, and its order let go", of(held(store.Late), ledger.StatusUnknown, 2, false), wait},
		{"waits for a deposit", of(held(store.Accepted), ledger.StatusWaitingForDeposit, 2, false), wait},
		{"refused", of(held(store.Accepted), ledger.StatusFailed, 2, false), send},
		{"turned away", of(held(store.Accepted), ledger.StatusReady, 2, false), send},
		{"sent again under another acceptance", of(held(store.Accepted), ledger.StatusDone, 3, true), send},
		{"sent again, and under way", of(held(store.Accepted), ledger.StatusConfirming, 3, false), send},
		{"an account nobody paid into, voided", of(held(store.Accepted), ledger.StatusCanceled, 2, false), send},
		{"money for an order that another payment holds", of(held(store.Accepted), ledger.StatusDone, 2, false), send},
		{"refused without having been asked", of(unsent, ledger.StatusFailed, 2, false), fate{state: acceptanceVoid, due: now.Add(time.Minute)}},
		{"its payment not seen yet", held(store.Accepted), again},
		{"its attempt not seen yet", of(held(store.Accepted), ledger.StatusReady, 1, false), again},
		{"not asked, and its payment not seen yet", unsent, again},
		{"owed", of(owed, ledger.StatusFailed, 2, false), send},
		{"owed in vain", of(hopeless, ledger.StatusFailed, 2, false), fate{state: acceptanceGivenUp, due: now.Add(time.Minute), tell: checkUnreleased}},
		{"released", of(gone, ledger.StatusFailed, 2, false), fate{state: acceptanceReleased, due: now.Add(11 * time.Minute)}},
		{"released, and paid after all", of(gone, ledger.StatusDone, 2, true), fate{state: acceptanceReleased, tell: checkReleased}},
		{"released, and paid by a later attempt", of(gone, ledger.StatusDone, 3, true), fate{state: acceptanceReleased, due: now.Add(11 * time.Minute)}},
		{"released long ago", of(old, ledger.StatusFailed, 2, false), fate{state: acceptanceReleased}},
		{"released, and somebody was told", of(told, ledger.StatusFailed, 2, false), fate{state: acceptanceReleased}},
		{"released before any intent", early, fate{state: acceptanceReleased}},
		{"declined", question{state: acceptanceDeclined}, fate{state: acceptanceDeclined}},
		{"kept", of(question{state: acceptanceKept, attempt: 2}, ledger.StatusDone, 2, true), fate{state: acceptanceKept}},
	} {
		if got := decideFate(test.q, now); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestDecideFate_NoStatusOfAPaymentIsForgotten: while a payment is undecided its acceptance is neither kept nor released,
// and once it is decided it is one of them, whatever the status.
func TestDecideFate_NoStatusOfAPaymentIsForgotten(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, status := range ledger.Statuses() {
		for _, took := range []bool{false, true} {
			q := question{state: acceptanceHeld, word: store.Accepted, sent: true, attempt: 1, askedAt: now}
			q.payment = &paymentNow{status: status, attempt: 1, took: took}
			undecided := status.Undecided() || status == ledger.StatusWaitingForDeposit
			want := map[bool]acceptanceState{true: acceptanceKept, false: acceptanceReleasing}[took]
			if undecided && !took {
				want = acceptanceHeld
			}
			if got := decideFate(q, now); got.state != want {
				t.Errorf("%s, took %t: got %s, want %s", status, took, got.state, want)
			}
		}
	}
}

func TestHeardFate_WhatHadNoAnswerIsReleasedAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := question{state: acceptanceReleasing, word: store.Late, sent: true, askedAt: now.Add(-time.Second)}
	if got, want := heardFate(q, now), (fate{state: acceptanceReleasing, due: q.askedAt.Add(5 * time.Minute)}); got != want {
		t.Errorf("got %+v, want %+v: the question may still come through", got, want)
	}
	q.askedAt = now.Add(-5 * time.Minute)
	if got := heardFate(q, now); got.state != acceptanceReleased {
		t.Errorf("got %+v", got)
	}
	q.word, q.askedAt = store.Accepted, now
	if got := heardFate(q, now); got.state != acceptanceReleased {
		t.Errorf("got %+v: it was answered, so it is not under way", got)
	}
}

func TestNextRelease_SlowerEachTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for releases, want := range map[int]time.Duration{0: 5 * time.Second, 1: 10 * time.Second, 4: 80 * time.Second, 9: 2560 * time.Second, 10: time.Hour, 1 << 20: time.Hour} {
		if got := nextRelease(releases, now).Sub(now); got != want {
			t.Errorf("after %d: got %s, want %s", releases, got, want)
		}
	}
}
