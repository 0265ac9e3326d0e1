package pgclient

import (
	"testing"
	"time"

	"daesa/ledger"
)

// TestPaths_CallsThatMoveMoneyEndWithinTheBudgetOfTheBooks: an intent may take ten seconds to commit, and the books let
// nobody send the same call again before their budget is over.
func TestPaths_CallsThatMoveMoneyEndWithinTheBudgetOfTheBooks(t *testing.T) {
	t.Parallel()
	for _, name := range []PathName{PathConfirm, PathCancel} {
		if longest := 10*time.Second + declaredPaths().named(name).Total; longest >= ledger.ConfirmBudget {
			t.Errorf("a %s can be at the gateway for %s from its intent, past the budget of %s", name, longest, ledger.ConfirmBudget)
		}
		if longer := (Path{Attempt: 22 * time.Second}).or(declaredPaths().named(name)); longer.validate(name) == nil {
			t.Errorf("a %s of two attempts of 22 s is accepted, past the budget of %s", name, ledger.ConfirmBudget)
		}
	}
}

// TestPath_WhatFollowsFromAnotherAttempt: a limit on the attempt alone leaves a path whose parts fit.
func TestPath_WhatFollowsFromAnotherAttempt(t *testing.T) {
	t.Parallel()
	declared := declaredPaths()
	for _, test := range []struct {
		name    string
		path    Path
		of      PathName
		connect time.Duration
		total   time.Duration
	}{
		{"a longer question", Path{Attempt: 15 * time.Second}, PathQuery, 2 * time.Second, 15 * time.Second},
		{"a shorter approval", Path{Attempt: 2 * time.Second}, PathConfirm, 2 * time.Second, 5 * time.Second},
		{"one short attempt", Path{Attempt: time.Second, Attempts: 1}, PathConfirm, time.Second, time.Second},
		{"nothing", Path{}, PathConfirm, 2 * time.Second, 31 * time.Second},
	} {
		full := test.path.or(declared.named(test.of))
		if full.Connect != test.connect || full.Total != test.total {
			t.Errorf("%s: got connect %s and total %s, want %s and %s", test.name, full.Connect, full.Total, test.connect, test.total)
		}
		if err := full.validate(test.of); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
