package browser_test

import (
	"testing"

	"daesa/internal/people"
)

// A password that was given is changed at the first sign-in; a wrong one is told, and lets nobody in.
func TestSignIn(t *testing.T) {
	t.Parallel()
	o := open(t)
	b := browse(t, o.app.PagesURL(), "en")
	b.open("/mismatches", 200)
	b.says("There is no account yet", "daesa user add NAME")
	given := o.account("kim", people.RoleFinance)
	b.open("/mismatches", 200)
	b.fill("Sign in", "Name", "kim")
	b.fill("Sign in", "Password", "not the one")
	b.follow("Sign in", 401)
	b.says("The name or the password is wrong")
	b.shot("refused")
	b.fill("Sign in", "Password", given)
	b.follow("Sign in", 200)
	b.says("You were given this password.")
	b.fill("Change the password", "Old password", given)
	b.fill("Change the password", "New password, at least", chosenPassword)
	b.fill("Change the password", "New password again", chosenPassword)
	b.shot("first password")
	b.follow("Change the password", 200)
	b.says("Overview", "No open mismatches.")
	b.follow("Sign out", 200)
	b.open("/mismatches", 200)
	if at := b.path(); at != "/sign-in?back=%2Fmismatches" {
		t.Errorf("after signing out the page is %s", at)
	}
}
