package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
)

// Config says where a server keeps its data and what it is for. Only Dir and Log are required.
type Config struct {
	// Dir holds data, socket, password and log. [DefaultDir] knows a good place.
	Dir string
	// Database is created when it is missing.
	Database string
	// Port is the loopback port; 0 means the port of the last run, or else any free one.
	Port int
	// BinDir is the folder of initdb and postgres; empty means to look in the usual places.
	BinDir string
	// Throwaway trades the data for speed: nothing is flushed to disk, and a data folder that cannot be used is made
	// anew. For tests only.
	Throwaway bool

	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Database = cmp.Or(c.Database, "daesa")
	return c
}

func (c Config) validate() error {
	if c.Dir == "" {
		return errors.New("embedded: no folder is set for the data")
	}
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("embedded: %d is not a port", c.Port)
	}
	if c.Log == nil {
		return errors.New("embedded: Log is required")
	}
	return nil
}

// Server is a running PostgreSQL that this program uses, whether it started it or found it running.
type Server struct {
	// URL reaches the database over the loopback port and carries the password.
	URL string
	// DSN reaches the database over the Unix socket, in URL form too. It is the faster one, and has no password.
	DSN string
	// Bin is the folder of its programs, pg_dump and pg_restore among them.
	Bin string
	// Adopted says that the server was running already.
	Adopted bool

	place place
	use   *fileLock
	pid   int
	child *child // of a server that we started; nil for an adopted one
}

// Start starts the server of the folder, or adopts it when it is running, and waits until it answers.
//
// The context bounds the start only; the server runs until [Server.Stop].
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	bin, err := findPrograms(cfg.BinDir, who)
	if err != nil {
		return nil, err
	}
	at, err := newPlace(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := at.prepare(who); err != nil {
		return nil, err
	}

	// One program at a time may look, initialize and start.
	starting, err := lockFile(ctx, at.startLock(), exclusive)
	if err != nil {
		return nil, err
	}
	defer starting.unlock()

	launch := launcher{cfg: cfg, place: at, bin: bin, who: who}
	return launch.start(ctx)
}

// launcher holds what a start needs, once all of it is known to be in order.
type launcher struct {
	cfg   Config
	place place
	bin   string
	who   *account
}

// start runs under the start lock.
func (l launcher) start(ctx context.Context) (*Server, error) {
	if err := l.initialize(ctx); err != nil {
		return nil, err
	}
	// From here on we count as a user: the server is not stopped under us by another program's Stop.
	use, err := lockFile(ctx, l.place.useLock(), shared)
	if err != nil {
		return nil, err
	}
	s := &Server{Bin: l.bin, place: l.place, use: use}

	port, err := l.adoptOrRun(ctx, s)
	if err == nil {
		err = s.connect(ctx, l.cfg.Database, port)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop()) //nolint:contextcheck // what was begun is undone also when the context has ended
	}
	l.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "postgresql is running",
		slog.String("folder", l.place.dir), slog.Int("port", port), slog.Bool("adopted", s.Adopted))
	return s, nil
}

// command is a program of the server, run as the account that owns the folder.
func (l launcher) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(l.bin, program), args...) //nolint:gosec // the folder is configuration
	cmd.SysProcAttr = l.who.attributes()
	cmd.Dir = l.place.dir
	cmd.Env = append(cmd.Environ(), "LC_ALL=C", "HOME="+l.place.dir)
	return cmd
}
