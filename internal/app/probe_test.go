package app_test

import (
	"strings"
	"testing"

	"daesa/internal/app"
)

// A container asks whether its own instance is ready.
func TestHealth_Command(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := strings.TrimPrefix(w.run().PrivateURL(), "http://")
	if code, said, trouble := command("health", "-private-listen", at); code != app.ExitOK || !strings.Contains(said, "ready") {
		t.Errorf("got exit %d, %s%s, want a ready instance", code, said, trouble)
	}
	if code, said, _ := command("health", "-private-listen", "127.0.0.1:1"); code != app.ExitBreaks {
		t.Errorf("got exit %d, %s where nobody listens", code, said)
	}
	if code, _, _ := command("health", "-private-listen", "no such\naddress"); code != app.ExitIncomplete {
		t.Errorf("got exit %d for an address that is none", code)
	}
}
