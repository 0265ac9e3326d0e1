package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daesa/internal/postgres/embedded"
)

func TestStart_Refusals(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		root bool
		edit func(*embedded.Config)
		want string
	}{
		{"no folder", false, func(c *embedded.Config) { c.Dir = "" }, "no folder"},
		{"no log", false, func(c *embedded.Config) { c.Log = nil }, "Log is required"},
		{"no such port", false, func(c *embedded.Config) { c.Port = 70_000 }, "not a port"},
		{"long path", false, func(c *embedded.Config) { c.Dir = "/tmp/" + strings.Repeat("x", 90) }, "too long for a Unix socket"},
		{"no programs", false, func(c *embedded.Config) { c.BinDir = closed }, "were not found in " + closed},
		{"closed parent", true, func(c *embedded.Config) { c.Dir = filepath.Join(closed, "d") }, "cannot enter"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.root && os.Geteuid() != 0 {
				t.Skip("only root hands the server to another account")
			}
			cfg := config(dir)
			test.edit(&cfg)
			_, err := embedded.Start(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	dir, err := embedded.DefaultDir("", "demo")
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(dir) || filepath.Base(dir) != "demo" {
		t.Errorf("got %s, want a folder named demo", dir)
	}
	if os.Geteuid() == 0 && dir != "/var/lib/daesa/demo" {
		t.Errorf("got %s for root, want a folder that other accounts can reach", dir)
	}
	if state, err := embedded.DefaultDir("/state", "demo"); os.Geteuid() != 0 && (err != nil || state != "/state/daesa/demo") {
		t.Errorf("got %s and %v, want the state folder", state, err)
	}
	for _, name := range []string{"", "../demo", "a/b"} {
		if dir, err := embedded.DefaultDir("", name); err == nil {
			t.Errorf("%q: got %s, want a refusal", name, dir)
		}
	}
}
