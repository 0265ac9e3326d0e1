package app

import (
	"errors"
	"fmt"
	"io"

	"daesa/ledger/seal"
)

type sealKeyCommand struct {
	Out  string `xor:"file" help:"Where to write a new private key. An existing file is never replaced."`
	Show string `xor:"file" help:"A private key whose public half is wanted."`
}

// run makes a key, or reads one, and prints its public half, which belongs to whoever is to verify.
func (c sealKeyCommand) run(stdout io.Writer) error {
	if c.Out == "" && c.Show == "" {
		return misuse{errors.New("say --out for a new key, or --show for the public half of one")}
	}
	read, path := seal.GenerateKey, c.Out
	if c.Show != "" {
		read, path = seal.ReadKey, c.Show
	}
	key, err := read(path)
	if err != nil {
		return err
	}
	public, err := key.PublicPEM()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "key %s\n%s", key.ID(), public); err != nil {
		return fmt.Errorf("print the public key: %w", err)
	}
	return nil
}
