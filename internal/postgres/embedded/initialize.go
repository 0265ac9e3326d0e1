package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// initialize makes the data folder unless there is one that these programs can read.
func (l launcher) initialize(ctx context.Context) error {
	made, err := os.ReadFile(filepath.Join(l.place.data(), "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return l.initdb(ctx)
	}
	if err != nil {
		return fmt.Errorf("embedded: read the version of the data: %w", err)
	}

	have, err := l.programVersion(ctx)
	if err != nil {
		return err
	}
	if version(string(made)) == version(have) {
		return nil
	}
	if l.cfg.Throwaway {
		return l.initdb(ctx)
	}
	return fmt.Errorf("embedded: %s was made by PostgreSQL %s, but the programs in %s are version %d; install version %s or move the folder away",
		l.place.data(), strings.TrimSpace(string(made)), l.bin, version(have), strings.TrimSpace(string(made)))
}

func (l launcher) programVersion(ctx context.Context) (string, error) {
	output, err := l.command(ctx, "postgres", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("embedded: ask postgres for its version: %w", err)
	}
	return string(output), nil
}

// initdb makes a new data folder beside its place and moves it there when it is whole, so that one that was
// interrupted never counts.
func (l launcher) initdb(ctx context.Context) error {
	half := l.place.data() + ".new"
	if err := errors.Join(os.RemoveAll(half), os.RemoveAll(l.place.data())); err != nil {
		return fmt.Errorf("embedded: clear the data folder: %w", err)
	}
	if err := os.WriteFile(l.place.password(), []byte(rand.Text()), 0o600); err != nil {
		return fmt.Errorf("embedded: write the password: %w", err)
	}
	if err := l.who.own(l.place.password()); err != nil {
		return fmt.Errorf("embedded: hand over the password: %w", err)
	}

	args := []string{
		"-D", half, "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-instructions",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile=" + l.place.password(),
	}
	if l.cfg.Throwaway {
		args = append(args, "--no-sync")
	} else {
		args = append(args, "--data-checksums")
	}
	if output, err := l.command(ctx, "initdb", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("embedded: initdb: %w: %s", err, output)
	}
	if err := os.Rename(half, l.place.data()); err != nil {
		return fmt.Errorf("embedded: move the new data folder into its place: %w", err)
	}
	return nil
}
