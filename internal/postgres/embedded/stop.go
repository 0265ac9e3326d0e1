package embedded

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Stop gives the server up. If no other program uses it, it is shut down and the data are left clean; the sessions
// that are still open end. It may be called again.
func (s *Server) Stop() error {
	if s.use == nil {
		return nil
	}
	use := s.use
	s.use = nil
	defer use.unlock()

	last, err := use.try(exclusive)
	if err != nil {
		return fmt.Errorf("embedded: ask who else uses the server: %w", err)
	}
	if !last || s.pid == 0 {
		return nil // another program adopted it, or it never ran
	}
	return s.place.shutDown(context.Background(), s.pid, s.child)
}

// StopWhenUnused waits until no program uses the server of a folder any more, also none that was killed, and stops it.
// It is what a watchman process runs on behalf of programs that may be killed.
func StopWhenUnused(ctx context.Context, dir string) error {
	at, err := newPlace(dir)
	if err != nil {
		return err
	}
	unused, err := lockFile(ctx, at.useLock(), exclusive)
	if err != nil {
		return err
	}
	defer unused.unlock()
	found, ok := at.running(ctx)
	if !ok {
		return nil
	}
	return at.shutDown(context.WithoutCancel(ctx), found.pid, nil)
}

// shutDown is a fast shutdown. Our own child tells when it has ended; of any other server the note in the data folder
// does, because its process may linger as a zombie of somebody else.
func (p place) shutDown(ctx context.Context, pid int, own *child) error {
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("embedded: stop postgres: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var exit error
	err := poll(ctx, func() (ended bool, _ error) {
		if own != nil {
			ended, exit = own.ended()
			return ended, nil
		}
		note, ok := p.postmaster()
		return !ok || note.pid != pid || !alive(pid), nil
	})
	if err != nil {
		return fmt.Errorf("embedded: postgres %d did not stop: %w", pid, err)
	}
	return exit
}
