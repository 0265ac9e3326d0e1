package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres/embedded"
)

// binary is what the tests of one test binary share. A test has no other way to share than a package variable.
var binary shared //nolint:gochecknoglobals // see above

type shared struct {
	allowed bool // Run was called, so what is started here will be stopped

	once     sync.Once
	err      error
	server   *embedded.Server // nil when the server is another's
	url      string           // of the maintenance database
	admin    *pgxpool.Pool
	template string
	count    atomic.Int64
}

// start finds or starts the server and makes the template, once for each test binary.
func (s *shared) start(ctx context.Context) error {
	s.once.Do(func() { s.err = s.prepare(ctx) })
	return s.err
}

func (s *shared) prepare(ctx context.Context) (err error) {
	if !s.allowed {
		return errors.New("call postgrestest.Run from TestMain, so that the server is stopped after the tests")
	}
	if s.url, err = s.find(ctx); err != nil {
		return err
	}
	cfg, err := pgxpool.ParseConfig(s.url)
	if err != nil {
		return fmt.Errorf("read the address of the test server: %w", err)
	}
	cfg.MaxConns = 4
	if s.admin, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	if err := s.removeStale(ctx); err != nil {
		return err
	}
	s.template, err = s.ensureTemplate(ctx)
	return err
}

// find returns the address of the server to use, and starts or adopts our own unless another is named.
func (s *shared) find(ctx context.Context) (string, error) {
	//nolint:forbidigo // a test binary is its own program, and this is its one setting
	if url := os.Getenv("DAESA_TEST_DATABASE_URL"); url != "" {
		return url, nil
	}
	dir, err := embedded.DefaultDir("", "tests")
	if err != nil {
		return "", err
	}
	s.server, err = embedded.Start(ctx, embedded.Config{
		Dir:       dir,
		Database:  "postgres",
		Throwaway: true,
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return "", err
	}
	if !s.server.Adopted {
		err = watch(dir)
	}
	return s.server.DSN, err
}

// watch starts a copy of this binary that stops the server when all its users are gone, also when they were killed.
func watch(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the test binary: %w", err)
	}
	watchman := exec.Command(self, watchmanArgument, dir) //nolint:gosec,noctx // it is to outlive this process
	watchman.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := watchman.Start(); err != nil {
		return fmt.Errorf("start the watchman: %w", err)
	}
	return watchman.Process.Release()
}

// stop gives up what the tests shared.
func (s *shared) stop() error {
	if s.admin != nil {
		s.admin.Close()
	}
	if s.server != nil {
		return s.server.Stop()
	}
	return nil
}
