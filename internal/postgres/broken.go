package postgres

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// brokenConnection reports whether err is a network connection that ended under a statement.
func brokenConnection(err error) bool {
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded,
		syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE,
		pgconn.ErrConnClosed, // the driver closed it after an earlier failure
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	_, failed := errors.AsType[*net.OpError](err)
	return failed
}
