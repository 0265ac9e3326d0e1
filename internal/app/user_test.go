package app_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"daesa/internal/app"
	"daesa/internal/people"
)

// TestUser_CommandLine: what the commands of accounts print and exit with, and that the password that one prints lets in.
func TestUser_CommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	run := func(want int, args ...string) string {
		t.Helper()
		var out, errors bytes.Buffer
		if got := app.Main(append([]string{"--database-url", w.url, "user"}, args...), &out, &errors); got != want {
			t.Fatalf("user %s: got exit code %d, want %d\n%s%s", strings.Join(args, " "), got, want, out.String(), errors.String())
		}
		return out.String() + errors.String()
	}
	password := func(said string) string {
		t.Helper()
		found := regexp.MustCompile(`sign-in: ([A-Z2-7]{26})\n`).FindStringSubmatch(said)
		if found == nil {
			t.Fatalf("no password in %q", said)
		}
		return found[1]
	}
	first := password(run(app.ExitOK, "add", "kim", "--roles", "operator,approver"))
	run(app.ExitBreaks, "add", "KIM", "--roles", "viewer")
	run(app.ExitIncomplete, "add", "lee", "--roles", "admin")
	run(app.ExitIncomplete, "add", "lee park", "--roles", "viewer")
	run(app.ExitBreaks, "disable", "lee")
	if said := run(app.ExitOK, "list"); !strings.Contains(said, "kim") || !strings.Contains(said, "approver,operator") || !strings.Contains(said, "to be changed") {
		t.Errorf("the list says %q", said)
	}
	second := password(run(app.ExitOK, "password", "kim"))
	run(app.ExitOK, "roles", "kim", "viewer")
	run(app.ExitOK, "disable", "kim")
	run(app.ExitOK, "enable", "kim")
	accounts, err := people.New(people.Config{DB: w.db, Now: w.clock.Now})
	w.must(err)
	if _, err := accounts.SignIn(t.Context(), "kim", first, ""); err == nil {
		t.Error("a password lets in that another has taken the place of")
	}
	in, err := accounts.SignIn(t.Context(), "kim", second, "")
	w.must(err)
	if len(in.Roles) != 1 || in.Roles[0] != people.RoleViewer {
		t.Errorf("got the roles %v, want viewer", in.Roles)
	}
	trail := run(app.ExitOK, "trail")
	for _, want := range []string{"account_made", "password_given", "roles_set", "account_disabled", "account_enabled", "signed_in", "os:"} {
		if !strings.Contains(trail, want) {
			t.Errorf("the trail lacks %s:\n%s", want, trail)
		}
	}
	if strings.Contains(trail, second) || strings.Contains(w.logs.String(), second) {
		t.Error("a password stands in the trail or in the log")
	}
}
