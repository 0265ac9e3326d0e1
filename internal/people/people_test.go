package people

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
)

func TestSignIn_AGivenPasswordLetsInOnlyToBeChanged(t *testing.T) {
	t.Parallel()
	a, _ := newAccounts(t)
	given, err := a.Add(t.Context(), "os:root", "kim", []Role{RoleApprover, RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	in, err := a.SignIn(t.Context(), "KIM", given, "192.0.2.1")
	if err != nil {
		t.Fatalf("with the password that was given: %v", err)
	}
	for _, p := range Permissions() {
		if in.May(p) {
			t.Errorf("before the password is changed the account may %s", p)
		}
	}
	if in.Name != "kim" {
		t.Errorf("got the name %q, want it as it was made", in.Name)
	}
	chosen, err := a.Choose(t.Context(), "kim", given, "correct horse battery", "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if !chosen.May(MayConfirm) || !chosen.May(MayManage) {
		t.Errorf("after the change the account may not do what its roles allow: %+v", chosen)
	}
	if _, err := a.Load(t.Context(), in.ID, in.Epoch); !errors.Is(err, ErrNoAccount) {
		t.Errorf("a session from before the change goes on: %v", err)
	}
	if _, err := a.SignIn(t.Context(), "kim", given, "192.0.2.1"); !errors.Is(err, ErrSignIn) {
		t.Errorf("the old password still lets in: %v", err)
	}
}

func TestSignIn_NobodyIsToldWhy(t *testing.T) {
	t.Parallel()
	a, clock := newAccounts(t)
	password := add(t, a, "kim", RoleFinance)
	add(t, a, "lee", RoleFinance)
	if err := a.Disable(t.Context(), "os:root", "lee"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kim", "lee", "nobody", "", "kim\x00", strings.Repeat("k", 5000)} {
		_, err := a.SignIn(t.Context(), name, "something else", "192.0.2.1")
		if !errors.Is(err, ErrSignIn) || err.Error() != ErrSignIn.Error() {
			t.Errorf("%.20q: got %v, want %v alone", name, err, ErrSignIn)
		}
	}
	clock.pass(time.Second)
	if _, err := a.SignIn(t.Context(), "kim", password, "192.0.2.1"); err != nil {
		t.Errorf("one wrong password locks the account: %v", err)
	}
}

func TestSignIn_WrongPasswordsLock(t *testing.T) {
	t.Parallel()
	a, clock := newAccounts(t)
	password := add(t, a, "kim", RoleFinance)
	wrong := func() {
		if _, err := a.SignIn(t.Context(), "kim", "wrong", "192.0.2.1"); !errors.Is(err, ErrSignIn) {
			t.Fatal(err)
		}
	}
	right := func() error {
		_, err := a.SignIn(t.Context(), "kim", password, "192.0.2.1")
		return err
	}
	for range triesFree {
		wrong()
	}
	wait := lockFirst
	for range 8 {
		clock.pass(wait - time.Microsecond)
		if err := right(); !errors.Is(err, ErrSignIn) {
			t.Fatalf("after %s of a lock the right password lets in: %v", wait-time.Microsecond, err)
		}
		clock.pass(time.Microsecond)
		wrong()
		wait = min(2*wait, lockMost)
	}
	clock.pass(lockMost)
	if err := right(); err != nil {
		t.Fatalf("after the longest lock: %v", err)
	}
	for range triesFree - 1 {
		wrong()
	}
	if err := right(); err != nil {
		t.Errorf("what was wrong before the last sign-in still counts: %v", err)
	}
}

// Whoever sends many at once learns no more than whoever waits for each answer.
func TestSignIn_ManyAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	a, _ := newAccounts(t)
	add(t, a, "kim", RoleFinance)
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() { _, _ = a.SignIn(t.Context(), "kim", "wrong", "192.0.2.1") })
	}
	all.Wait()
	deeds, err := a.Deeds(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, d := range deeds {
		if d.Action == ActionSignInRefused {
			looked++
		}
	}
	if looked != triesFree {
		t.Errorf("%d passwords of 40 sent at once were looked at, want %d", looked, triesFree)
	}
}

func TestAccounts_WhatEndsSessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(*testing.T, *Accounts) error
		ends bool
	}{
		{"other roles", func(t *testing.T, a *Accounts) error {
			t.Helper()
			return a.SetRoles(t.Context(), "os:root", "kim", []Role{RoleViewer})
		}, false},
		{"disabled", func(t *testing.T, a *Accounts) error {
			t.Helper()
			return a.Disable(t.Context(), "os:root", "kim")
		}, true},
		{"disabled and enabled again", func(t *testing.T, a *Accounts) error {
			t.Helper()
			return errors.Join(a.Disable(t.Context(), "os:root", "kim"), a.Enable(t.Context(), "os:root", "kim"))
		}, true},
		{"given a password", func(t *testing.T, a *Accounts) error {
			t.Helper()
			_, err := a.GivePassword(t.Context(), "os:root", "kim")
			return err
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, _ := newAccounts(t)
			in, err := a.SignIn(t.Context(), "kim", add(t, a, "kim", RoleFinance), "192.0.2.1")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.do(t, a); err != nil {
				t.Fatal(err)
			}
			now, err := a.Load(t.Context(), in.ID, in.Epoch)
			if ended := errors.Is(err, ErrNoAccount); ended != c.ends {
				t.Fatalf("the session ended: %t, want %t (%v)", ended, c.ends, err)
			}
			if !c.ends && now.May(MayWork) {
				t.Error("a role that was taken away still allows")
			}
		})
	}
}

func TestAccounts_WhatIsRefused(t *testing.T) {
	t.Parallel()
	a, _ := newAccounts(t)
	add(t, a, "kim", RoleFinance)
	before := deeds(t, a)
	made := func(name string, roles ...Role) func() error {
		return func() error { _, err := a.Add(t.Context(), "os:root", name, roles); return err }
	}
	choose := func(chosen string) func() error {
		return func() error {
			_, err := a.Choose(t.Context(), "kim", "a long enough password", chosen, "192.0.2.1")
			return err
		}
	}
	for _, c := range []struct {
		name string
		do   func() error
		want error
	}{
		{"a name that is taken", made("Kim", RoleViewer), ErrAccountTaken},
		{"a name that cannot stand in a trail", made("kim lee", RoleViewer), ErrName},
		{"no name", made("", RoleViewer), ErrName},
		{"no role", made("lee"), ErrRole},
		{"a short password", choose("elevenchars"), ErrPassword},
		{"a very long one", choose(strings.Repeat("x", 201)), ErrPassword},
		{"the same again", choose("a long enough password"), ErrPassword},
		{"text that is none", choose("long enough \xff\xfe bytes"), ErrPassword},
		{"roles of nobody", func() error { return a.SetRoles(t.Context(), "os:root", "lee", []Role{RoleViewer}) }, ErrNoAccount},
		{"nobody disabled", func() error { return a.Disable(t.Context(), "os:root", "lee") }, ErrNoAccount},
	} {
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if diff := cmp.Diff(before, deeds(t, a)); diff != "" {
		t.Errorf("what was refused stands in the trail (-before +after):\n%s", diff)
	}
}

func TestDeeds_AreOnlyAdded(t *testing.T) {
	t.Parallel()
	a, clock := newAccounts(t)
	add(t, a, "kim", RoleFinance)
	want := []Deed{
		{At: clock.at, By: "person:kim", Action: ActionPasswordChosen, Subject: "kim", Source: "192.0.2.1"},
		{At: clock.at, By: "person:kim", Action: ActionSignedIn, Subject: "kim", Source: "192.0.2.1"},
		{At: clock.at, By: "os:root", Action: ActionAccountMade, Subject: "kim", Detail: "finance"},
	}
	if diff := cmp.Diff(want, deeds(t, a), cmp.Transformer("UTC", time.Time.UTC)); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
	for _, sql := range []string{`UPDATE deeds SET subject = 'lee'`, `DELETE FROM deeds`, `TRUNCATE deeds`} {
		if _, err := a.db.Exec(t.Context(), sql); !postgres.Violates(err, "deeds_are_only_added") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestHash_OfAnotherCostIsMadeAnew(t *testing.T) {
	t.Parallel()
	a, _ := newAccounts(t)
	password := add(t, a, "kim", RoleFinance)
	a.hasher = newHasher(Cost{Memory: 128, Passes: 1, Lanes: 1})
	if _, err := a.SignIn(t.Context(), "kim", password, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	if kept := passwordOf(t, a.db, "kim"); !strings.HasPrefix(kept, "$argon2id$v=19$m=128,t=1,p=1$") {
		t.Errorf("got %.40s…, want it hashed at the cost of now", kept)
	}
	if _, err := a.SignIn(t.Context(), "kim", password, "192.0.2.1"); err != nil {
		t.Errorf("with the new hash: %v", err)
	}
}

func TestRoles_Matrix(t *testing.T) {
	t.Parallel()
	for _, p := range Permissions() {
		if !slices.ContainsFunc(Roles(), func(r Role) bool { return r.Allows(p) }) {
			t.Errorf("no role allows %s", p)
		}
	}
	for _, r := range Roles() {
		if !r.Allows(MayView) {
			t.Errorf("%s sees nothing", r)
		}
	}
	if RoleOperator.Allows(MayWork) || RoleOperator.Allows(MayConfirm) || RoleOperator.Allows(MaySign) {
		t.Error("who makes accounts can judge the books with one of them")
	}
	if RoleFinance.Allows(MayConfirm) {
		t.Error("who proposes can confirm")
	}
}

func TestParseRoles(t *testing.T) {
	t.Parallel()
	got, err := ParseRoles("operator, finance,operator")
	if err != nil || !slices.Equal(got, []Role{RoleFinance, RoleOperator}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "admin", "finance,", "Finance"} {
		if _, err := ParseRoles(text); !errors.Is(err, ErrRole) {
			t.Errorf("%q: got %v, want %v", text, err, ErrRole)
		}
	}
}

func deeds(t *testing.T, a *Accounts) []Deed {
	t.Helper()
	all, err := a.Deeds(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func passwordOf(t *testing.T, db *pgxpool.Pool, name string) (kept string) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT password FROM accounts WHERE name = $1`, name).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	return kept
}

// The document has the matrix as it is.
func TestRoles_AreDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/pages.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Permissions() {
		line := "| `" + string(p) + "` |"
		for _, r := range Roles() {
			if r.Allows(p) {
				line += " yes"
			}
			line += " |"
		}
		if !strings.Contains(string(document), line+"\n") {
			t.Errorf("docs/pages.md lacks the line %s", line)
		}
	}
}

func TestEnums_AreTheSameInGoAndInTheDatabase(t *testing.T) {
	t.Parallel()
	a, _ := newAccounts(t)
	for constraint, words := range map[string][]string{
		"accounts_roles_known": texts(Roles()), "deeds_action_known": texts(Actions()), "api_keys_scopes_known": texts(Scopes()),
	} {
		var definition string
		err := a.db.QueryRow(t.Context(), `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1`, constraint).Scan(&definition)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, match := range regexp.MustCompile(`'([^']+)'::text`).FindAllStringSubmatch(definition, -1) {
			got = append(got, match[1])
		}
		slices.Sort(got)
		if diff := cmp.Diff(words, got); diff != "" {
			t.Errorf("%s (-Go +database):\n%s", constraint, diff)
		}
	}
}

// texts turns a closed set into its texts, in order.
func texts[T ~string](all []T) []string {
	var words []string
	for _, v := range all {
		words = append(words, string(v))
	}
	slices.Sort(words)
	return words
}
