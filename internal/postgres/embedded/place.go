package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// socketPathMax is the longest path of a Unix socket that every system takes.
const socketPathMax = 103

// place is the folder of one server.
type place struct {
	dir string
}

func newPlace(dir string) (place, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return place{}, fmt.Errorf("embedded: folder %s: %w", dir, err)
	}
	at := place{dir: absolute}
	if longest := at.socketDir() + "/.s.PGSQL.65535"; len(longest) > socketPathMax {
		return place{}, fmt.Errorf("embedded: %s is too long for a Unix socket (%d bytes, %d at most); choose a shorter folder",
			longest, len(longest), socketPathMax)
	}
	return at, nil
}

func (p place) data() string      { return filepath.Join(p.dir, "data") }
func (p place) socketDir() string { return filepath.Join(p.dir, "s") }
func (p place) password() string  { return filepath.Join(p.dir, "password") }
func (p place) port() string      { return filepath.Join(p.dir, "port") }
func (p place) log() string       { return filepath.Join(p.dir, "postgres.log") }
func (p place) startLock() string { return filepath.Join(p.dir, "start.lock") }
func (p place) useLock() string   { return filepath.Join(p.dir, "use.lock") }

// prepare makes the folders. Parents stay open to all, or the account could not come in; only our own is private.
func (p place) prepare(who *account) error {
	if err := who.canReach(p.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.dir), 0o755); err != nil { //nolint:gosec // see above
		return fmt.Errorf("embedded: make the folder: %w", err)
	}
	if err := who.canReach(p.dir); err != nil {
		return err // the file mode mask closed a parent that we made
	}
	for _, dir := range []string{p.dir, p.socketDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("embedded: make the folder: %w", err)
		}
		if err := who.own(dir); err != nil {
			return fmt.Errorf("embedded: hand over the folder: %w", err)
		}
	}
	return nil
}

// socketURL reaches a database over the Unix socket.
func (p place) socketURL(database string, port int) string {
	query := url.Values{"host": {p.socketDir()}, "port": {strconv.Itoa(port)}, "sslmode": {"disable"}}
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: query.Encode()}).String()
}

// loopbackURL reaches a database over the loopback port.
func (p place) loopbackURL(database string, port int) (string, error) {
	password, err := os.ReadFile(p.password())
	if err != nil {
		return "", fmt.Errorf("embedded: read the password: %w", err)
	}
	return (&url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", strings.TrimSpace(string(password))),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}).String(), nil
}

// postmaster is what a server writes about itself into its data folder.
type postmaster struct {
	pid, port int
	socketDir string
	ready     bool
}

// postmaster reads the server's own note, which exists only while a server runs or after one was killed.
func (p place) postmaster() (postmaster, bool) {
	note, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	if err != nil {
		return postmaster{}, false
	}
	lines := strings.Split(string(note), "\n")
	if len(lines) < 5 {
		return postmaster{}, false
	}
	pid, pidErr := strconv.Atoi(strings.TrimSpace(lines[0]))
	port, portErr := strconv.Atoi(strings.TrimSpace(lines[3]))
	if errors.Join(pidErr, portErr) != nil || pid <= 0 {
		return postmaster{}, false
	}
	ready := len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready"
	return postmaster{pid: pid, port: port, socketDir: strings.TrimSpace(lines[4]), ready: ready}, true
}

// running finds a server that lives in the folder. The note alone proves nothing: its process may be long gone, so the
// socket must answer too.
func (p place) running(ctx context.Context) (postmaster, bool) {
	note, ok := p.postmaster()
	if !ok || !alive(note.pid) {
		return postmaster{}, false
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(note.socketDir, ".s.PGSQL."+strconv.Itoa(note.port)))
	if err != nil {
		return postmaster{}, false
	}
	return note, conn.Close() == nil
}

// alive reports whether a process of that id exists, also when it is not ours to signal.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// choosePort returns the wanted port, or the one of the last run, or any free one. A wanted port is taken as it is:
// the server says it best when it is not free.
func (p place) choosePort(ctx context.Context, wanted int) (int, error) {
	if wanted == 0 {
		if last, err := os.ReadFile(p.port()); err == nil {
			wanted = p.freePort(ctx, strings.TrimSpace(string(last)))
		}
		if wanted == 0 {
			wanted = p.freePort(ctx, "0")
		}
	}
	if wanted == 0 {
		return 0, errors.New("embedded: no loopback port is free")
	}
	//nolint:gosec // the folder is configuration
	if err := os.WriteFile(p.port(), []byte(strconv.Itoa(wanted)), 0o600); err != nil {
		return 0, fmt.Errorf("embedded: note the port: %w", err)
	}
	return wanted, nil
}

// freePort returns the port if it is free, and 0 if not.
func (p place) freePort(ctx context.Context, port string) int {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return 0
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return address.Port
}
