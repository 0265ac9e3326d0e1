package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Waits for a program.
const (
	startMax = 30 * time.Second
	stopMax  = 60 * time.Second // above the service's own stop timeout
	pollFor  = 10 * time.Millisecond
)

// process is a program that runs. What it prints goes into a file, so that nobody has to keep up with it.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	end  chan struct{} // closed when it has ended
	err  error         // of its end; read it after end
}

// launch starts a program. It is not in our group, so that Ctrl-C reaches only us and it is stopped in order.
func launch(folder, name, program string, args, env []string) (*process, error) {
	p := &process{name: name, log: filepath.Join(folder, name+".log"), end: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("keep what %s prints: %w", name, err)
	}
	defer func() { _ = out.Close() }()     // the program has it by then
	p.cmd = exec.Command(program, args...) //nolint:gosec,noctx // one of our own programs; Stop ends it
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.end)
	}()
	return p, nil
}

// pid is the process's id.
func (p *process) pid() int { return p.cmd.Process.Pid }

// said waits until a line of what the program printed is one that the caller looks for.
func (p *process) said(ctx context.Context, find func(line []byte) bool) error {
	ctx, stop := context.WithTimeout(ctx, startMax)
	defer stop()
	return Until(ctx, p.name+" to serve", func() (bool, error) {
		printed, err := os.ReadFile(p.log)
		if err != nil {
			return false, fmt.Errorf("read what %s prints: %w", p.name, err)
		}
		for line := range bytes.Lines(printed) {
			if bytes.HasSuffix(line, []byte("\n")) && find(line) {
				return true, nil
			}
		}
		select {
		case <-p.end:
			return false, fmt.Errorf("%s has ended: %w: %s", p.name, p.err, lastOf(printed))
		default:
			return false, nil
		}
	})
}

// lastOf is the end of a text.
func lastOf(text []byte) []byte { return text[max(0, len(text)-2000):] }

// stop asks the program to end, and waits. One that does not is killed, and that is an error.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	timer := time.NewTimer(stopMax)
	defer timer.Stop()
	select {
	case <-p.end:
	case <-timer.C:
		_ = p.cmd.Process.Kill() // whatever it was doing
		<-p.end
		return fmt.Errorf("%s did not end within %s and was killed", p.name, stopMax)
	}
	if p.err != nil {
		printed, _ := os.ReadFile(p.log) // for the error's text only
		return fmt.Errorf("%s ended badly: %w: %s", p.name, p.err, lastOf(printed))
	}
	return nil
}

// Until looks again and again until something is so, or the context ends.
func Until(ctx context.Context, what string, so func() (bool, error)) error {
	tick := time.NewTicker(pollFor)
	defer tick.Stop()
	for {
		if done, err := so(); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
