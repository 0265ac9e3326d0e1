package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/people"
)

// keyCommand looks after the API keys of the merchant's servers, in the name of the user whom the operating system says.
type keyCommand struct {
	JSON bool `help:"Print JSON."`

	Add    keyAdd    `cmd:"" help:"Make a key, and print it: it cannot be read again. Instances that run know it within a second or two."`
	List   struct{}  `cmd:"" help:"List the keys, by what they begin with. Those of DAESA_API_KEYS are not among them."`
	Rotate keyRotate `cmd:"" help:"Make another key of the same name and scopes, and print it. The one before lets in for a while."`
	Revoke keyRevoke `cmd:"" help:"Let a key in no more. Instances that run let it in for 30 seconds at most."`
}

type keyName struct {
	Name string `arg:"" help:"Whose key it is, as trails name it: letters, digits and . _ @ -"`
}

type keyAdd struct {
	keyName

	Scopes string `required:"" help:"money: orders, cancels, credits; read: look-ups; books: mismatches, incidents, signatures of days. Several with commas."`
}

type keyRotate struct {
	keyName

	Grace time.Duration `default:"24h" help:"How long the key before lets in; 0s: no more."`
}

type keyRevoke struct {
	keyName

	Prefix string `help:"Only the one that begins like this; without it all of the name."`
}

func (c keyCommand) run(ctx context.Context, command, databaseURL string, stdout io.Writer) error {
	return withPool(ctx, databaseURL, func(db *pgxpool.Pool) error {
		if err := requireMigrated(ctx, db); err != nil {
			return err
		}
		err := c.do(ctx, command, people.NewKeys(db, time.Now), stdout)
		for _, known := range []error{people.ErrScope, people.ErrName, people.ErrGrace} {
			if errors.Is(err, known) {
				return misuse{err}
			}
		}
		return err
	})
}

func (c keyCommand) do(ctx context.Context, command string, keys *people.Keys, stdout io.Writer) error {
	if command == "key list" {
		all, err := keys.List(ctx)
		if err != nil {
			return err
		}
		return printTable(stdout, c.JSON, all, func(w io.Writer) { writeKeys(w, all) })
	}
	who, err := operator()
	if err != nil {
		return err
	}
	by := people.By(who)
	switch command {
	case "key add <name>":
		scopes, err := people.ParseScopes(c.Add.Scopes)
		if err != nil {
			return err
		}
		key, err := keys.Add(ctx, by, c.Add.Name, scopes)
		return c.made(stdout, key, err)
	case "key rotate <name>":
		key, err := keys.Rotate(ctx, by, c.Rotate.Name, c.Rotate.Grace)
		return c.made(stdout, key, err)
	case "key revoke <name>":
		revoked, err := keys.Revoke(ctx, by, c.Revoke.Name, c.Revoke.Prefix)
		if err != nil {
			return err
		}
		return printTable(stdout, c.JSON, map[string][]string{"revoked": revoked}, func(w io.Writer) {
			fmt.Fprintf(w, "revoked, and let in nowhere after 30 seconds: %s\n", strings.Join(revoked, ", "))
		})
	}
	return fmt.Errorf("no such command: %s", command)
}

// made prints a key, this once.
func (c keyCommand) made(stdout io.Writer, key string, err error) error {
	if err != nil {
		return err
	}
	return printTable(stdout, c.JSON, map[string]string{"key": key}, func(w io.Writer) { fmt.Fprintf(w, "key, shown this once: %s\n", key) })
}

func writeKeys(w io.Writer, all []people.Key) {
	fmt.Fprintln(w, "name\tbegins\tscopes\tmade\tby\tlast used\tstate")
	for _, k := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Name, k.Prefix, people.FormatScopes(k.Scopes), inKorea(&k.Made), k.By, inKorea(k.LastUsed), stateOfKey(k))
	}
}

func stateOfKey(k people.Key) string {
	switch {
	case k.Revoked != nil:
		return "revoked " + inKorea(k.Revoked)
	case k.Ends != nil:
		return "replaced, until " + inKorea(k.Ends)
	}
	return "current"
}
