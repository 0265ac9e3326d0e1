package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrCommitUnknown marks a COMMIT that was sent and never answered: the transaction may or may not have been
	// committed. Only reading the rows again, later, can tell; a blind second try may apply the same fact twice.
	ErrCommitUnknown = errors.New("postgres: the outcome of the commit is not known")

	// ErrNestedTransaction refuses a transaction inside a transaction. Code that takes a pgx.Tx never commits, so it
	// has no use for one; code that wants its own takes a pool.
	ErrNestedTransaction = errors.New("postgres: a transaction is already open; nested transactions are not used here")
)

// SQLSTATE codes that this package treats in a special way.
const (
	codeSerializationFailure = "40001"
	codeDeadlockDetected     = "40P01"
	codeReadOnlyTransaction  = "25006"
	codeIdleInTransaction    = "25P03"
	codeLockNotAvailable     = "55P03"
	codeQueryCanceled        = "57014"
)

// Violates reports whether err is the refusal of the constraint or unique index of that name.
func Violates(err error, constraint string) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(refused.Code, "23") && refused.ConstraintName == constraint
}

// IsLockTimeout reports whether err is a wait for a lock that was given up.
func IsLockTimeout(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == codeLockNotAvailable
}

// IsLate reports whether the server gave up a statement because its time, or that of its wait for a lock, was over.
func IsLate(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == codeQueryCanceled || refused.Code == codeLockNotAvailable)
}

// IsUnavailable reports whether err says that the database cannot do the work *now*: not reachable, no free
// connection, shutting down, failed over to a read-only server, out of resources, or not in time. The same request
// may well succeed later, so the caller answers "try again" and nothing is wrong with the statement.
//
// It is to be asked about errors of database calls only: a deadline that ran out counts as unavailable.
func IsUnavailable(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, ErrCommitUnknown) || errors.Is(err, errAcquire) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return unavailableCode(refused.Code)
	}
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	return unconnected || pgconn.Timeout(err) || brokenConnection(err)
}

func unavailableCode(code string) bool {
	switch code {
	case codeReadOnlyTransaction, codeIdleInTransaction, codeLockNotAvailable, codeQueryCanceled:
		return true
	}
	for _, class := range []string{
		"08",   // connection exceptions
		"53",   // insufficient resources: disk, memory, connections
		"57P0", // shutdown, crash, starting up, database dropped
		"58",   // errors of the system under the server
	} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}
