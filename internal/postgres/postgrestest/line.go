package postgrestest

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"syscall"
)

// Breakage is how the line to the database breaks.
type Breakage struct {
	Name string
	// Executed lets the server do what the last round trip asked for, and loses its answer only: a COMMIT may be done.
	Executed bool
	// Stays keeps the database out of reach until the line is mended, as if the process had died there and then. Without
	// it only the one connection breaks, and the next one can be opened.
	Stays bool
}

// Breakages lists every way.
func Breakages() []Breakage {
	return []Breakage{
		{Name: "dies before", Stays: true},
		{Name: "dies after", Executed: true, Stays: true},
		{Name: "connection lost before", Executed: false},
		{Name: "connection lost after", Executed: true},
	}
}

// Stride is which points are tried: every one at which the process dies, and of those at which a mere connection is lost
// the even ones before and the odd ones after, so that each is tried one way.
func (b Breakage) Stride() (first, step int) {
	switch {
	case b.Stays:
		return 0, 1
	case b.Executed:
		return 1, 2
	}
	return 0, 2
}

// The errors of a network whose other end is gone.
func errDial() error  { return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} }
func errWrite() error { return &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE} }

// Line is the wire between one instance and the database. Once armed it counts round trips over all connections, each a
// write that follows a read, and breaks at the chosen one.
type Line struct {
	mu    sync.Mutex
	how   Breakage
	left  int // round trips until it breaks; -1 never
	down  bool
	broke bool
	conns map[*wire]struct{}
}

// NewLine is a whole line.
func NewLine() *Line { return &Line{left: -1, conns: make(map[*wire]struct{})} }

// Arm makes the line break at the round trip of that number, counted from 0.
func (l *Line) Arm(at int, how Breakage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.how = at, how
}

// Mend reports whether the line had broken, and makes it whole.
func (l *Line) Mend() (broke bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	broke = l.broke
	l.left, l.down, l.broke = -1, false, false
	return broke
}

// Dial opens a connection over the line; see [pgconn.DialFunc].
func (l *Line) Dial(ctx context.Context, network, address string) (net.Conn, error) {
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
func (l *Line) turn(w *wire) (breaks bool, how Breakage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return true, Breakage{Stays: true}
	}
	if l.left < 0 {
		return false, l.how
	}
	l.left--
	if l.left >= 0 {
		return false, l.how
	}
	l.broke, l.down = true, l.how.Stays
	if l.down {
		for other := range l.conns {
			if other != w {
				_ = other.Conn.Close()
			}
		}
	}
	return true, l.how
}

func (l *Line) forget(w *wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, w)
}

// ping is what a pool asks a connection that was idle for a while. How often depends on the machine, so it is no round
// trip.
const ping = "-- ping"

// wire is one connection of a line.
type wire struct {
	net.Conn

	line *Line

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
	if !w.writing && !w.deaf && !bytes.Contains(b, []byte(ping)) {
		w.writing = true
		if breaks, how := w.line.turn(w); breaks {
			if !how.Executed {
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
