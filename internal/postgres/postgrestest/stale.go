package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes of a DROP DATABASE that lost a race.
const (
	codeObjectInUse = "55006"
	codeNoDatabase  = "3D000"
	codeInternal    = "XX000" // another session dropped it at the same moment
)

// stalePrefix begins the name of every test database of this machine; the process id follows. Machines that share a
// server cannot tell each other's processes, so each keeps to its own.
func stalePrefix() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(host)) // a hash never fails
	return fmt.Sprintf("daesa_test_%08x_", digest.Sum32())
}

// removeStale drops the databases of test binaries that are gone: those of failed tests and of killed runs.
func (s *shared) removeStale(ctx context.Context) error {
	rows, err := s.admin.Query(ctx, `
		SELECT datname
		FROM pg_database
		WHERE starts_with(datname, $1)`, stalePrefix())
	if err != nil {
		return fmt.Errorf("look for stale databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for stale databases: %w", err)
	}
	for _, name := range names {
		if ownerAlive(name) {
			continue
		}
		// Without force: a database that somebody is looking at stays.
		_, err := s.admin.Exec(ctx, `DROP DATABASE IF EXISTS `+name, pgx.QueryExecModeSimpleProtocol)
		if err != nil && !busy(err) {
			return fmt.Errorf("drop stale database %s: %w", name, err)
		}
	}
	return nil
}

// ownerAlive reports whether the test binary that made the database still runs.
func ownerAlive(name string) bool {
	owner, _, _ := strings.Cut(strings.TrimPrefix(name, stalePrefix()), "_")
	pid, err := strconv.Atoi(owner)
	if err != nil {
		return true // not a name of ours
	}
	err = syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// busy reports whether a database could not be dropped because it is in use, or because another binary just did.
func busy(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == codeObjectInUse || refused.Code == codeNoDatabase || refused.Code == codeInternal)
}
