package app_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"syscall"

	"daesa/internal/app"
)

// breakage is how the line to the database breaks.
type breakage struct {
	name string
	// executed lets the server do what the last round trip asked for, and loses its answer only: a COMMIT may be done.
	executed bool
	// stays keeps the database out of reach until the line is mended, as if the process had died there and then. Without
	// it only the one connection breaks, and the next one can be opened.
	stays bool
}

func breakages() []breakage {
	return []breakage{
		{name: "dies before", stays: true},
		{name: "dies after", executed: true, stays: true},
		{name: "connection lost before", executed: false},
		{name: "connection lost after", executed: true},
	}
}

// stride is which points are tried: every one at which the process dies, and of those at which a mere connection is lost
// the even ones before and the odd ones after, so that each is tried one way.
func (b breakage) stride() (first, step int) {
	switch {
	case b.stays:
		return 0, 1
	case b.executed:
		return 1, 2
	}
	return 0, 2
}

// The errors of a network whose other end is gone.
func errDial() error  { return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} }
func errWrite() error { return &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE} }

// line is the wire between one instance and the database. Once armed it counts round trips over all connections, each a
// write that follows a read, and breaks at the chosen one.
type line struct {
	mu    sync.Mutex
	how   breakage
	left  int // round trips until it breaks; -1 never
	down  bool
	broke bool
	conns map[*wire]struct{}
}

func newLine() *line { return &line{left: -1, conns: make(map[*wire]struct{})} }

// under makes an instance use the line. Few connections, so that what was warmed up is what is used.
func (l *line) under(c *app.Config) { c.Dial, c.DatabaseMax = l.dial, 4 }

// arm makes the line break at the round trip of that number, counted from 0.
func (l *line) arm(at int, how breakage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.how = at, how
}

// mend reports whether the line had broken, and makes it whole.
func (l *line) mend() (broke bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	broke = l.broke
	l.left, l.down, l.broke = -1, false, false
	return broke
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down {
		return nil, errDial()
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, line: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[w] = struct{}{}
	return w, nil
}

// turn counts the beginning of a round trip on w and tells whether w breaks with it, and how.
func (l *line) turn(w *wire) (breaks bool, how breakage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return true, breakage{stays: true}
	}
	if l.left < 0 {
		return false, l.how
	}
	l.left--
	if l.left >= 0 {
		return false, l.how
	}
	l.broke, l.down = true, l.how.stays
	if l.down {
		for other := range l.conns {
			if other != w {
				_ = other.Conn.Close()
			}
		}
	}
	return true, l.how
}

func (l *line) forget(w *wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, w)
}

// wire is one connection of a line.
type wire struct {
	net.Conn

	line *line

	mu      sync.Mutex
	writing bool
	deaf    bool // the server does what it is asked and is not heard
	cut     bool
}

// Write sends, unless the line breaks here.
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return 0, errWrite()
	}
	if !w.writing && !w.deaf {
		w.writing = true
		if breaks, how := w.line.turn(w); breaks {
			if !how.executed {
				w.cut = true
				_ = w.Conn.Close()
				return 0, errWrite()
			}
			w.deaf = true
		}
	}
	return w.Conn.Write(b)
}

// Read hears the server, or waits until a server that is not heard has done what it was asked.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf {
		w.cut = true
		w.untilReady(b[:n], err)
		_ = w.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	if n > 0 {
		w.writing = false
	}
	return n, err
}

// untilReady reads on until the server says that it is ready for the next query: what came before is done.
func (w *wire) untilReady(heard []byte, err error) {
	tail := bytes.Clone(heard)
	buffer := make([]byte, 8<<10)
	for err == nil && !ready(tail) {
		var n int
		n, err = w.Conn.Read(buffer)
		tail = append(tail, buffer[:n]...)
		tail = tail[max(0, len(tail)-6):]
	}
}

// ready reports whether the bytes end in ReadyForQuery: its letter, a length of 5, the state of the transaction.
func ready(tail []byte) bool {
	return len(tail) >= 6 && bytes.HasPrefix(tail[len(tail)-6:], []byte{'Z', 0, 0, 0, 5})
}

// Close ends the connection.
func (w *wire) Close() error {
	w.line.forget(w)
	return w.Conn.Close()
}
