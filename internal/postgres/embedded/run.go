package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
	logTailBytes = 1500
)

// adoptOrRun leaves a server that answers, and returns its port.
//
// A server that another program had only begun to start before it was killed, or whose last children still hold its
// memory after it was killed itself, is neither running nor gone for a moment; so both are tried until one works. A
// throw-away folder that does not start for any other reason is made anew, once.
func (l launcher) adoptOrRun(ctx context.Context, s *Server) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	port, err := l.tryBoth(ctx, s)
	if err == nil || !l.cfg.Throwaway || ctx.Err() != nil {
		return port, err
	}
	if err := l.initdb(ctx); err != nil {
		return 0, err
	}
	return l.tryBoth(ctx, s)
}

func (l launcher) tryBoth(ctx context.Context, s *Server) (port int, err error) {
	var last error
	err = poll(ctx, func() (bool, error) {
		if found, ok := l.place.running(ctx); ok {
			s.Adopted, s.pid, port = true, found.pid, found.port
			return true, s.waitReady(ctx)
		}
		if port, last = l.place.choosePort(ctx, l.cfg.Port); last == nil {
			last = l.run(ctx, s, port)
		}
		if passing(last) {
			return false, nil
		}
		return true, last
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(err, last)
	}
	return port, err
}

// passing reports whether the server refused to start for a reason that ends by itself.
func passing(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "shared memory block") ||
		strings.Contains(err.Error(), `lock file "postmaster.pid" already exists`))
}

// run starts the server and waits until it is ready.
func (l launcher) run(ctx context.Context, s *Server, port int) error {
	log, err := os.OpenFile(l.place.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("embedded: open the server's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the server has its own copy
	before, err := log.Seek(0, 2)
	if err != nil {
		return fmt.Errorf("embedded: open the server's log: %w", err)
	}

	// The server outlives the start's context on purpose.
	cmd := l.command(context.WithoutCancel(ctx), "postgres", l.arguments(port)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("embedded: start postgres: %w", err)
	}
	s.pid, s.child = cmd.Process.Pid, &child{pid: cmd.Process.Pid}
	if err := cmd.Process.Release(); err != nil {
		return fmt.Errorf("embedded: let go of postgres: %w", err)
	}

	if err := s.waitReady(ctx); err != nil {
		return fmt.Errorf("%w; end of %s: %s", err, l.place.log(), tail(l.place.log(), before))
	}
	return nil
}

func (l launcher) arguments(port int) []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=" + l.place.socketDir(),
		"unix_socket_permissions=0700",
		"max_connections=200",
		"timezone=UTC",
		"log_timezone=UTC",
	}
	if l.cfg.Throwaway {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off",
			"autovacuum=off", "max_wal_size=4GB")
	}
	args := []string{"-D", l.place.data()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// errEnded says that the server ended instead of becoming ready.
var errEnded = errors.New("embedded: postgres ended at its start")

// waitReady waits until the server's own note says that it takes connections.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		if note, ok := s.place.postmaster(); ok && note.ready && note.pid == s.pid {
			return true, nil
		}
		if s.child == nil {
			return false, nil
		}
		ended, how := s.child.ended()
		if !ended {
			return false, nil
		}
		s.pid, s.child = 0, nil
		return false, fmt.Errorf("%w: %w", errEnded, how)
	})
	if err != nil && !errors.Is(err, errEnded) {
		return fmt.Errorf("embedded: postgres is not ready: %w", err)
	}
	return err
}

// connect fills in the addresses and makes sure that the database exists.
func (s *Server) connect(ctx context.Context, database string, port int) error {
	var err error
	if s.URL, err = s.place.loopbackURL(database, port); err != nil {
		return err
	}
	s.DSN = s.place.socketURL(database, port)

	conn, err := pgx.Connect(ctx, s.place.socketURL("postgres", port))
	if err != nil {
		return fmt.Errorf("embedded: connect to the new server: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing depends on a polite goodbye

	var exists bool
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&exists)
	if err != nil {
		return fmt.Errorf("embedded: look for database %s: %w", database, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{database}.Sanitize()); err != nil {
		return fmt.Errorf("embedded: create database %s: %w", database, err)
	}
	return nil
}

// tail is the end of what the server wrote to its log since an offset.
func tail(path string, since int64) string {
	log, err := os.ReadFile(path) //nolint:gosec // the path is made from configuration
	if err != nil || since > int64(len(log)) {
		return "(not readable)"
	}
	log = log[since:]
	return strings.TrimSpace(string(log[max(0, len(log)-logTailBytes):]))
}
