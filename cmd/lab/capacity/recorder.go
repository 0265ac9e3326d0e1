package capacity

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgproto3"
)

// recorder stands on the line between the service and PostgreSQL and notes every statement with its parameters, and
// each time the service waited for an answer.
type recorder struct {
	listener        net.Listener
	network, server string // address of PostgreSQL

	order  atomic.Int64 // of statements, over all lines
	mu     sync.Mutex
	lines  []*line
	closed bool
	under  sync.WaitGroup
}

// line is one connection of the service's.
type line struct {
	client, server net.Conn
	order          *atomic.Int64 // the recorder's

	mu       sync.Mutex // held also while the recorder reads what was noted
	prepared map[string]string
	bound    statement
	seen     []statement
	asking   bool // the service has written since PostgreSQL last did
	turn     int
}

// statement is one that was run.
type statement struct {
	sql    string
	values [][]byte // nil is NULL
	binary []bool   // how each is written
	turn   int      // statements of one turn were sent together
	synced bool     // its answer was asked for with it
	order  int64    // among those of every line
}

// record begins to listen for a server. The service is given the recorder's address in place of the server's.
func record(ctx context.Context, network, server string) (*recorder, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stand on the line to PostgreSQL: %w", err)
	}
	r := &recorder{listener: listener, network: network, server: server}
	r.under.Go(r.accept)
	return r, nil
}

// through is the address of a database by way of the recorder.
func (r *recorder) through(address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("read the database's address: %w", err)
	}
	settings := at.Query()
	settings.Del("host") // a socket's folder, where there is one
	settings.Del("port")
	at.Host, at.RawQuery = r.listener.Addr().String(), settings.Encode()
	return at.String(), nil
}

// close ends every line.
func (r *recorder) close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for _, l := range r.lines {
		_, _ = l.client.Close(), l.server.Close()
	}
	r.mu.Unlock()
	r.under.Wait()
	return err
}

func (r *recorder) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial(r.network, r.server) //nolint:noctx // of the recorder's own life
		if err != nil {
			_ = client.Close() // the service sees a database that cannot be reached
			continue
		}
		l := &line{client: client, server: server, order: &r.order, prepared: map[string]string{}}
		r.mu.Lock()
		r.lines = append(r.lines, l)
		if r.closed {
			_, _ = client.Close(), server.Close()
		}
		r.mu.Unlock()
		r.under.Go(l.forward)
		r.under.Go(l.back)
	}
}

// forget throws away what was noted so far.
func (r *recorder) forget() {
	r.each(func(l *line) { l.seen = nil })
}

// noted is what each line has carried since.
func (r *recorder) noted() (all [][]statement) {
	r.each(func(l *line) {
		if len(l.seen) > 0 {
			all = append(all, append([]statement(nil), l.seen...))
		}
	})
	return all
}

func (r *recorder) each(look func(*line)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		l.mu.Lock()
		look(l)
		l.mu.Unlock()
	}
}

// back carries what PostgreSQL says.
func (l *line) back() {
	defer func() { _ = l.client.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buffer)
		if n > 0 {
			l.mu.Lock()
			l.asking = false
			l.mu.Unlock()
			if _, err := l.client.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// forward carries what the service says, one message at a time, and notes it before it goes on.
func (l *line) forward() {
	defer func() { _ = l.server.Close() }()
	in := bufio.NewReaderSize(l.client, 256<<10)
	out := bufio.NewWriterSize(l.server, 256<<10)
	typed := false // what begins a connection has no type
	for {
		kind, message, err := readMessage(in, typed)
		if err != nil {
			return
		}
		if typed {
			l.note(kind, message[5:])
		}
		typed = typed || !asksForEncryption(message)
		if _, err := out.Write(message); err != nil {
			return
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// asksForEncryption tells whether a connection begins with the question whether it may be encrypted, after which it begins
// once more.
func asksForEncryption(message []byte) bool {
	const tls, gss = 80877103, 80877104
	if len(message) != 8 {
		return false
	}
	code := binary.BigEndian.Uint32(message[4:])
	return code == tls || code == gss
}

func readMessage(in *bufio.Reader, typed bool) (kind byte, message []byte, err error) {
	head := 4
	if typed {
		head = 5
	}
	start, err := in.Peek(head)
	if err != nil {
		return 0, nil, err
	}
	length := int(binary.BigEndian.Uint32(start[head-4:])) + head - 4
	if length < head || length > 64<<20 {
		return 0, nil, errors.New("that is no message")
	}
	message = make([]byte, length)
	_, err = io.ReadFull(in, message)
	return message[0], message, err
}

// note reads one message of the protocol, as far as it says what is run.
func (l *line) note(kind byte, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asking {
		l.asking = true
		l.turn++
	}
	switch kind {
	case 'P':
		var m pgproto3.Parse
		if m.Decode(body) == nil {
			l.prepared[m.Name] = m.Query
		}
	case 'B':
		var m pgproto3.Bind
		if m.Decode(body) == nil {
			l.bound = statement{sql: l.prepared[m.PreparedStatement]}
			for n, value := range m.Parameters {
				l.bound.values = append(l.bound.values, append([]byte(nil), value...))
				if value == nil {
					l.bound.values[n] = nil
				} else if l.bound.values[n] == nil {
					l.bound.values[n] = []byte{}
				}
				l.bound.binary = append(l.bound.binary, formatOf(m.ParameterFormatCodes, n) == 1)
			}
		}
	case 'E':
		l.bound.turn, l.bound.order = l.turn, l.order.Add(1)
		l.seen = append(l.seen, l.bound)
	case 'Q':
		var m pgproto3.Query
		if m.Decode(body) == nil {
			l.seen = append(l.seen, statement{sql: m.String, turn: l.turn, synced: true, order: l.order.Add(1)})
		}
	case 'S':
		if n := len(l.seen); n > 0 {
			l.seen[n-1].synced = true
		}
	}
}

func formatOf(codes []int16, n int) int16 {
	switch len(codes) {
	case 0:
		return 0
	case 1:
		return codes[0]
	}
	return codes[n]
}
