package main

import (
	"strings"
	"testing"
)

// TestDrill: the drill that people run gets everything back.
func TestDrill(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"daesa verify: whole", "pg_restore", "refunds in the restored books: 5", "Nothing is lost."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
