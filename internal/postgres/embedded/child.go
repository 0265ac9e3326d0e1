package embedded

import (
	"errors"
	"fmt"
	"syscall"
)

// child is a server that this program started. It is asked whether it has ended and never waited for: it may outlive
// this program, with others still using it, and nothing of ours must stay behind for that.
type child struct{ pid int }

// errExit says that a server ended by itself, or not as it should.
var errExit = errors.New("embedded: postgres ended")

// ended reports whether the process has ended, and how: nil after a clean shutdown. Once it has said so, the process is
// forgotten and must not be asked about again.
func (c *child) ended() (bool, error) {
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(c.pid, &status, syscall.WNOHANG, nil)
	switch {
	case errors.Is(err, syscall.EINTR):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("embedded: ask for postgres %d: %w", c.pid, err)
	case pid == 0:
		return false, nil
	case status.Exited() && status.ExitStatus() == 0:
		return true, nil
	case status.Signaled():
		return true, fmt.Errorf("%w by signal %s", errExit, status.Signal())
	}
	return true, fmt.Errorf("%w with status %d", errExit, status.ExitStatus())
}
