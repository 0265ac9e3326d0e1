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
	}
}
