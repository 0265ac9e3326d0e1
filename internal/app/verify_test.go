package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daesa/internal/app"
	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

// TestVerify_ExitCodes: 0 whole, 1 broken, 2 when it could not look; and the output says what was covered.
func TestVerify_ExitCodes(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewURL(t)
	key := filepath.Join(t.TempDir(), "seal.pem")
	run := func(args ...string) (int, string) {
		var out, trouble bytes.Buffer
		code := app.Main(append([]string{"--database-url", url}, args...), &out, &trouble)
		return code, out.String() + trouble.String()
	}
	if code, text := run("seal-key", "--out", key); code != app.ExitOK || !strings.Contains(text, "BEGIN PUBLIC KEY") {
		t.Fatalf("make a key: got %d and %s", code, text)
	}
	public := filepath.Join(t.TempDir(), "seal.pub")
	_, text := run("seal-key", "--show", key)
	if err := os.WriteFile(public, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"an empty journal":           {[]string{"verify", "--public-key", public}, app.ExitOK, "0 transactions"},
		"with the private key":       {[]string{"verify", "--seal-key-file", key}, app.ExitOK, "verdict    whole"},
		"a heads file that is not":   {[]string{"verify", "--heads-file", key + ".none"}, app.ExitIncomplete, "does not exist"},
		"a head that is no hash":     {[]string{"verify", "--head", "x"}, app.ExitIncomplete, "not a SHA-256"},
		"a head that is not there":   {[]string{"verify", "--head", strings.Repeat("0", 64)}, app.ExitBreaks, "BROKEN"},
		"a day that is not sealed":   {[]string{"verify", "--through", "2026-05-01"}, app.ExitIncomplete, "not sealed"},
		"a new heads file, unsigned": {[]string{"verify", "--new-heads-file", key + ".new"}, app.ExitIncomplete, "verified with a key"},
		"neither out nor show":       {[]string{"seal-key"}, app.ExitIncomplete, "--out for a new key, or --show"},
		"a report without a base":    {[]string{"--database-url", "postgres://nobody@127.0.0.1:1/none", "report", "order", "o"}, app.ExitIncomplete, "daesa: "},
		"no such day":                {[]string{"verify", "--through", "2026-02-30"}, app.ExitIncomplete, "not a day"},
	} {
		if code, text := run(c.args...); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: got %d, want %d and %q in:\n%s", name, code, c.code, c.says, text)
		}
	}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(t.Context(), `BEGIN; SET LOCAL session_replication_role = replica;
		INSERT INTO journal_transactions (kind, reference, occurred_at, recorded_at) VALUES ('capture', 'x#1', now(), now()); COMMIT`)
	if err != nil {
		t.Fatal(err)
	}
	if code, text := run("verify"); code != app.ExitBreaks || !strings.Contains(text, "first at transaction 1: it has fewer than two entries") {
		t.Errorf("a broken journal: got %d and:\n%s", code, text)
	}
}
