package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/ledger"
	"daesa/ledger/seal"
)

type verifyCommand struct {
	PublicKey   []string `name:"public-key" help:"Public key that may have signed heads; several after a change of keys."`
	SealKeyFile string   `name:"seal-key-file" env:"DAESA_SEAL_KEY_FILE" help:"Private key whose public half to use, on the machine that has it."`
	HeadsFile   string   `name:"heads-file" env:"DAESA_HEADS_FILE" help:"Heads that were written down outside the database; the key's file with .heads when empty."`
	NewHeads    string   `name:"new-heads-file" help:"Write the heads to this new file when all is whole and signed: for an instance that has none, or whose file was lost."`
	Head        []string `help:"Hash of a head kept elsewhere, as in a signed day report; it must be in the chain."`
	Through     string   `help:"Verify the journal up to the head of this day only, and no states."`
}

// run recomputes the journal, heads, states and credits. The exit code says whether all is whole: 0, 1 when something is
// broken, 2 when that could not be seen. It only reads the database.
func (c verifyCommand) run(ctx context.Context, databaseURL string, stdout io.Writer) (int, error) {
	options, err := c.options()
	if err != nil {
		return ExitIncomplete, err
	}
	var report *seal.Report
	err = withPool(ctx, databaseURL, func(db *pgxpool.Pool) error {
		if err := requireMigrated(ctx, db); err != nil {
			return err
		}
		report, err = seal.Verify(ctx, db, options)
		return err
	})
	if err != nil {
		return ExitIncomplete, err
	}
	if err := report.WriteText(stdout); err != nil {
		return ExitIncomplete, err
	}
	if !report.Whole() {
		return ExitBreaks, nil
	}
	if c.NewHeads != "" {
		if err := seal.NewWitness(c.NewHeads).Create(report); err != nil {
			return ExitIncomplete, err
		}
	}
	return ExitOK, nil
}

// options reads what is kept outside the database.
func (c verifyCommand) options() (o seal.Options, err error) {
	o.Now = time.Now()
	if c.NewHeads != "" && c.Through != "" {
		return o, errors.New("--new-heads-file: it is made of the whole chain, so not with --through")
	}
	for _, path := range c.PublicKey {
		key, err := seal.ReadPublicKey(path)
		if err != nil {
			return o, err
		}
		o.Keys = append(o.Keys, key)
	}
	if c.SealKeyFile != "" {
		key, err := seal.ReadKey(c.SealKeyFile)
		if err != nil {
			return o, err
		}
		o.Keys = append(o.Keys, key.Public())
	}
	if o.Witnessed, err = c.witnessed(); err != nil {
		return o, err
	}
	for _, text := range c.Head {
		hash, err := ledger.ParseDigest(text)
		if err != nil {
			return o, fmt.Errorf("--head: %w", err)
		}
		o.Heads = append(o.Heads, hash)
	}
	if c.Through != "" {
		o.Through, err = ledger.ParseDay(c.Through)
	}
	return o, err
}

// witnessed reads the heads file. One that is named must be there; the one beside the key need not be yet.
func (c verifyCommand) witnessed() ([]seal.Witnessed, error) {
	if c.HeadsFile == "" && c.SealKeyFile == "" {
		return nil, nil
	}
	path := cmp.Or(c.HeadsFile, c.SealKeyFile+headsSuffix)
	if _, err := os.Stat(path); c.HeadsFile != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--heads-file %s: it does not exist", path)
	}
	return seal.NewWitness(path).Read()
}
