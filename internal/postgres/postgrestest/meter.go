package postgrestest

import (
	"context"
	"net"
	"sync/atomic"

	"daesa/internal/postgres"
)

// Meter counts the round trips of all connections of a pool: each time something is written after something was read.
// What a program waits for is this number times the distance to the server, so tests hold it to a budget.
type Meter struct {
	turns atomic.Int64
}

// CountRoundTrips makes the connections that are opened from cfg count.
func CountRoundTrips(cfg *postgres.Config) *Meter {
	meter := &Meter{}
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &meteredConn{Conn: conn, meter: meter}, nil
	}
	return meter
}

// RoundTrips is the number since the start or the last Reset, those of opening connections included.
func (m *Meter) RoundTrips() int64 {
	return m.turns.Load()
}

// Reset starts anew from zero.
func (m *Meter) Reset() {
	m.turns.Store(0)
}

// meteredConn counts a turn at the first write after a read.
type meteredConn struct {
	net.Conn

	meter   *Meter
	writing atomic.Bool
}

// Write counts the beginning of a turn.
func (c *meteredConn) Write(b []byte) (int, error) {
	if c.writing.CompareAndSwap(false, true) {
		c.meter.turns.Add(1)
	}
	return c.Conn.Write(b)
}

// Read ends the turn once an answer has arrived.
func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.writing.Store(false)
	}
	return n, err
}
