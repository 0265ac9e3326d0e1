package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Kinds of lock on a file.
const (
	shared    = syscall.LOCK_SH
	exclusive = syscall.LOCK_EX
)

// pollEvery is how often a state that sends no event is looked at again.
const pollEvery = 5 * time.Millisecond

// fileLock is an advisory lock that the system takes back when the process ends, however it ends.
type fileLock struct {
	file *os.File
}

// lockFile takes the lock, waiting as long as the context allows.
func lockFile(ctx context.Context, path string, kind int) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the path is made from configuration
	if err != nil {
		return nil, fmt.Errorf("embedded: open the lock: %w", err)
	}
	lock := &fileLock{file: file}
	err = poll(ctx, func() (bool, error) { return lock.try(kind) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: lock %s: %w", path, err), file.Close())
	}
	return lock, nil
}

// try takes the lock, or changes its kind, if that is possible at once.
func (l *fileLock) try(kind int) (bool, error) {
	err := syscall.Flock(int(l.file.Fd()), kind|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// unlock gives the lock back; closing the file is enough.
func (l *fileLock) unlock() {
	_ = l.file.Close()
}

// poll asks until the answer is yes, or an error, or the context ends.
func poll(ctx context.Context, ask func() (bool, error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
