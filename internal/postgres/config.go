package postgres

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says which database to use and how long anything may take there. Only URL is required.
//
// A value that the URL itself carries (for example statement_timeout as a query parameter) wins over the one here.
type Config struct {
	// URL is a connection string in URL or in keyword form.
	URL string
	// ApplicationName is what the server shows for our sessions.
	ApplicationName string
	// MaxConns bounds the pool. One transaction holds one connection, so it also bounds how much is written at once.
	MaxConns int32

	// ConnectTimeout bounds the opening of one connection.
	ConnectTimeout time.Duration
	// StatementTimeout bounds one statement. It is a net under forgotten deadlines, not a budget.
	StatementTimeout time.Duration
	// LockTimeout bounds the wait for one row or table lock.
	LockTimeout time.Duration
	// IdleInTransactionTimeout ends a transaction whose program has stopped talking while it holds locks.
	IdleInTransactionTimeout time.Duration

	// RelaxedCommit answers a commit before it is on disk, and before a standby has it. It is for what may be lost in a
	// crash, whatever the URL asks for.
	RelaxedCommit bool

	// Dial opens the network connection; nil means a plain dialer. Tests count or cut connections here.
	Dial pgconn.DialFunc
}

func (c Config) withDefaults() Config {
	c.ApplicationName = cmp.Or(c.ApplicationName, "daesa")
	c.MaxConns = cmp.Or(c.MaxConns, 20)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 5*time.Second)
	c.StatementTimeout = cmp.Or(c.StatementTimeout, 60*time.Second)
	c.LockTimeout = cmp.Or(c.LockTimeout, 5*time.Second)
	c.IdleInTransactionTimeout = cmp.Or(c.IdleInTransactionTimeout, 30*time.Second)
	if c.Dial == nil {
		// A short keep-alive notices a server that vanished without a word.
		c.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	return c
}

func (c Config) validate() error {
	if c.URL == "" {
		return errors.New("postgres: no database URL is set; it looks like postgres://user:password@host:5432/database")
	}
	if c.MaxConns < 1 {
		return errors.New("postgres: MaxConns must be at least 1")
	}
	if c.ConnectTimeout < 0 || c.StatementTimeout < 0 || c.LockTimeout < 0 || c.IdleInTransactionTimeout < 0 {
		return errors.New("postgres: a timeout must not be negative")
	}
	return nil
}

// poolConfig turns the settings into the driver's.
func (c Config) poolConfig() (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errURL
	}

	pool.MaxConns = c.MaxConns
	pool.PingTimeout = c.ConnectTimeout
	// A connection that was just used is not asked for a sign of life first: that would be one more round trip.
	pool.ShouldPing = func(_ context.Context, last pgxpool.ShouldPingParams) bool {
		return last.IdleDuration > pingAfterIdle
	}

	conn := pool.ConnConfig
	conn.DialFunc = c.Dial
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = c.ConnectTimeout
	}
	for name, value := range map[string]string{
		"application_name":                    c.ApplicationName,
		"timezone":                            "UTC",
		"statement_timeout":                   milliseconds(c.StatementTimeout),
		"lock_timeout":                        milliseconds(c.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(c.IdleInTransactionTimeout),
	} {
		if _, set := conn.RuntimeParams[name]; !set {
			conn.RuntimeParams[name] = value
		}
	}
	if c.RelaxedCommit {
		conn.RuntimeParams["synchronous_commit"] = "off"
	}
	return pool, nil
}

// errURL takes the place of the driver's own message, which repeats the string and strikes a password out only where it
// recognizes one.
var errURL = errors.New("postgres: the database URL cannot be read; write postgres://user:password@host:5432/database, " +
	"percent-encode special characters of the password, and check port and parameters such as sslmode")

// pingAfterIdle is how long a connection may have been idle before it is checked when it is taken from the pool.
const pingAfterIdle = 10 * time.Second

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}
