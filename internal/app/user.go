package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/people"
)

// userCommand looks after the accounts of the pages, in the name of the user whom the operating system says.
type userCommand struct {
	JSON bool `help:"Print JSON."`

	Add      userAdd   `cmd:"" help:"Make an account, and print the password that lets it in once, to choose another."`
	List     struct{}  `cmd:"" help:"List the accounts."`
	Roles    userRoles `cmd:"" help:"Give an account other roles, from its next page on."`
	Password userName  `cmd:"" help:"End an account's sessions and print a new password, to be changed; a locked account is let in again."`
	Disable  userName  `cmd:"" help:"End an account's sessions and let it in no more."`
	Enable   userName  `cmd:"" help:"Let an account in again."`
	Trail    userTrail `cmd:"" help:"Show what people did, newest first."`
}

type userName struct {
	Name string `arg:"" help:"Name of the account: letters, digits and . _ @ -"`
}

type userAdd struct {
	userName

	Roles string `required:"" help:"viewer, finance, approver, operator; several with commas."`
}

type userRoles struct {
	userName

	Roles string `arg:"" help:"viewer, finance, approver, operator; several with commas."`
}

type userTrail struct {
	Limit int `default:"50" help:"How many lines."`
}

func (c userCommand) run(ctx context.Context, command, databaseURL string, stdout io.Writer) error {
	return withPool(ctx, databaseURL, func(db *pgxpool.Pool) error {
		if err := requireMigrated(ctx, db); err != nil {
			return err
		}
		accounts, err := people.New(people.Config{DB: db, Now: time.Now})
		if err != nil {
			return err
		}
		err = c.do(ctx, command, accounts, stdout)
		if errors.Is(err, people.ErrRole) || errors.Is(err, people.ErrName) {
			return misuse{err}
		}
		return err
	})
}

func (c userCommand) do(ctx context.Context, command string, accounts *people.Accounts, stdout io.Writer) error {
	switch command {
	case "user list":
		all, err := accounts.List(ctx)
		if err != nil {
			return err
		}
		return printTable(stdout, c.JSON, all, func(w io.Writer) { writeAccounts(w, all) })
	case "user trail":
		deeds, err := accounts.Deeds(ctx, c.Trail.Limit)
		if err != nil {
			return err
		}
		return printTable(stdout, c.JSON, deeds, func(w io.Writer) { writeDeeds(w, deeds) })
	}
	who, err := operator()
	if err != nil {
		return err
	}
	by := people.By(who)
	switch command {
	case "user add <name>":
		roles, err := people.ParseRoles(c.Add.Roles)
		if err != nil {
			return err
		}
		password, err := accounts.Add(ctx, by, c.Add.Name, roles)
		return c.given(stdout, password, err)
	case "user password <name>":
		password, err := accounts.GivePassword(ctx, by, c.Password.Name)
		return c.given(stdout, password, err)
	case "user roles <name> <roles>":
		roles, err := people.ParseRoles(c.Roles.Roles)
		if err != nil {
			return err
		}
		return accounts.SetRoles(ctx, by, c.Roles.Name, roles)
	case "user disable <name>":
		return accounts.Disable(ctx, by, c.Disable.Name)
	case "user enable <name>":
		return accounts.Enable(ctx, by, c.Enable.Name)
	}
	return fmt.Errorf("no such command: %s", command)
}

// given prints a password that somebody is given.
func (c userCommand) given(stdout io.Writer, password string, err error) error {
	if err != nil {
		return err
	}
	return printTable(stdout, c.JSON, map[string]string{"password": password}, func(w io.Writer) {
		fmt.Fprintf(w, "password, to be changed at the first sign-in: %s\n", password)
	})
}

func writeAccounts(w io.Writer, all []people.Account) {
	fmt.Fprintln(w, "name\troles\tsigned in\tstate")
	for _, a := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Name, people.FormatRoles(a.Roles), inKorea(a.SignedIn), stateOf(a))
	}
}

func stateOf(a people.Account) string {
	switch {
	case a.Disabled != nil:
		return "disabled " + inKorea(a.Disabled)
	case a.MustChange:
		return "password to be changed"
	case a.Locked != nil:
		return "locked until " + inKorea(a.Locked)
	}
	return ""
}

func writeDeeds(w io.Writer, deeds []people.Deed) {
	fmt.Fprintln(w, "at\tby\taction\tsubject\tdetail\tfrom")
	for _, d := range deeds {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", inKorea(&d.At), d.By, d.Action, d.Subject, d.Detail, d.Source)
	}
}

func inKorea(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return seoul(*t)
}
