package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"daesa/internal/postgres/embedded"
)

// useArgument makes the test binary play another program that uses a server.
const useArgument = "use-server"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == useArgument {
		useUntilKilled(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

// useUntilKilled starts or adopts the server, says so, and stays until its standard input ends.
func useUntilKilled(dir string) {
	s, err := embedded.Start(context.Background(), config(dir))
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
	if err := s.Stop(); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func config(dir string) embedded.Config {
	return embedded.Config{Dir: dir, Database: "books", Throwaway: true, Log: slog.New(slog.DiscardHandler)}
}

// folder is a folder that the account which runs the server for root can reach, unlike the usual one of a test.
func folder(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server, which -short leaves out")
	}
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // the path must be short, and open to another account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "d")
}

func start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// pid is the process of the server in the folder, 0 when none runs.
func pid(t *testing.T, dir string) int {
	t.Helper()
	note, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(note), "\n")
	id, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestStart_KeepsDataOverRestarts(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, dir)
	exec1(t, s.URL, `CREATE TABLE kept (n integer)`)
	exec1(t, s.DSN, `INSERT INTO kept VALUES (1)`)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
	if got := pid(t, dir); got != 0 {
		t.Fatalf("server %d still runs", got)
	}

	again := start(t, dir)
	exec1(t, again.URL, `INSERT INTO kept VALUES (2)`)
	if again.Adopted || again.URL != s.URL {
		t.Errorf("got adopted %t and %s, want a new start at %s", again.Adopted, again.URL, s.URL)
	}
}

func TestStart_SeveralAtOnceShareOne(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	servers := make([]*embedded.Server, 3)
	var starts sync.WaitGroup
	for i := range servers {
		starts.Go(func() {
			var err error
			if servers[i], err = embedded.Start(t.Context(), config(dir)); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	if t.Failed() {
		t.FailNow()
	}
	adopted := 0
	for _, s := range servers {
		if s.Adopted {
			adopted++
		}
	}
	if adopted != 2 {
		t.Errorf("%d of 3 adopted, want 2", adopted)
	}
	for i, s := range servers {
		exec1(t, s.URL, `SELECT 1`)
		if err := s.Stop(); err != nil {
			t.Errorf("stop %d: %v", i, err)
		}
	}
	if got := pid(t, dir); got != 0 {
		t.Errorf("server %d still runs after its last user stopped", got)
	}
}

// user starts another program that uses the server, and waits until it does.
func user(t *testing.T, dir string) (kill, leave func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, useArgument, dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, err := stdout.Read(said)
	if err != nil || !strings.HasPrefix(string(said[:n]), "ready") {
		t.Fatalf("got %q and %v, want ready", said[:n], err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports the signal
	}
	leave = func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other program: %v", err)
		}
	}
	return kill, leave
}

func TestStart_AdoptsAfterKill(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	kill, _ := user(t, dir)
	before := pid(t, dir)
	kill()

	s := start(t, dir)
	exec1(t, s.URL, `SELECT 1`)
	if !s.Adopted || pid(t, dir) != before {
		t.Errorf("got adopted %t and server %d, want the running server %d", s.Adopted, pid(t, dir), before)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := pid(t, dir); got != 0 {
		t.Errorf("server %d still runs", got)
	}
}

func TestStop_LeavesTheServerToOthers(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, dir)
	_, leave := user(t, dir)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	exec1(t, s.URL, `SELECT 1`)
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("created by daesa/internal/postgres/embedded.")) {
		t.Errorf("a goroutine stays behind for a server that is left to others:\n%s", stacks)
	}
	leave()
	if got := pid(t, dir); got != 0 {
		t.Errorf("server %d still runs after its last user left", got)
	}
}

func TestStopWhenUnused(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	kill, _ := user(t, dir)
	watchman := make(chan error, 1)
	go func() { watchman <- embedded.StopWhenUnused(t.Context(), dir) }()
	if pid(t, dir) == 0 {
		t.Fatal("no server runs")
	}
	kill()
	if err := <-watchman; err != nil {
		t.Fatal(err)
	}
	if got := pid(t, dir); got != 0 {
		t.Errorf("server %d still runs after its only user was killed", got)
	}
}

func TestStart_AfterTheServerWasKilled(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, dir)
	exec1(t, s.URL, `CREATE TABLE kept (n integer)`)
	if err := syscall.Kill(pid(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err == nil {
		t.Error("the end by a signal was not reported")
	}
	again := start(t, dir)
	exec1(t, again.URL, `SELECT 1`)
}

func TestStart_HalfAnInitializationNeverCounts(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	if err := os.MkdirAll(filepath.Join(dir, "data.new", "base"), 0o755); err != nil {
		t.Fatal(err)
	}
	exec1(t, start(t, dir).URL, `SELECT 1`)
}

func TestStart_OtherVersion(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	if err := start(t, dir).Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := config(dir)
	kept.Throwaway = false
	if _, err := embedded.Start(t.Context(), kept); err == nil || !strings.Contains(err.Error(), "was made by PostgreSQL 9") {
		t.Errorf("got %v, want an error that names the version", err)
	}
	exec1(t, start(t, dir).URL, `SELECT 1`) // data that may be thrown away are made anew
}

func TestStart_CanceledContext(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := embedded.Start(ctx, config(dir)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestAsNobody runs two of the tests again as an ordinary account, when we are root.
func TestAsNobody(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another account")
	}
	dir := filepath.Dir(folder(t))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "embedded.test") // the original lies in a folder closed to others
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, copied, "-test.run=TestStart_KeepsDataOverRestarts|TestDefaultDir", "-test.v")
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{nobody}}}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME=/nonexistent", "TMPDIR=/tmp")
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: TestStart_KeepsDataOverRestarts") {
		t.Errorf("as nobody: %v\n%s", err, output)
	}
}
