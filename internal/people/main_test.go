package people

import (
	"testing"
	"time"

	"daesa/internal/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }

// cheap keeps tests from paying for what an attacker must pay for.
func cheap() Cost { return Cost{Memory: 64, Passes: 1, Lanes: 1} }

// clock stands until it is moved.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func newAccounts(tb testing.TB) (*Accounts, *clock) {
	tb.Helper()
	c := &clock{at: time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)}
	a, err := New(Config{DB: postgrestest.New(tb), Cost: cheap(), Now: c.now})
	if err != nil {
		tb.Fatal(err)
	}
	return a, c
}

// add makes an account whose password was chosen.
func add(tb testing.TB, a *Accounts, name string, roles ...Role) (password string) {
	tb.Helper()
	given, err := a.Add(tb.Context(), "os:root", name, roles)
	if err != nil {
		tb.Fatal(err)
	}
	const chosen = "a long enough password"
	if _, err := a.Choose(tb.Context(), name, given, chosen, "192.0.2.1"); err != nil {
		tb.Fatal(err)
	}
	return chosen
}
