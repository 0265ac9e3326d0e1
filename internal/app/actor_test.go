package app_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"daesa/internal/app"
)

const innerOperator = "DAESA_TEST_OPERATOR_INNER"

// TestOperator_NotWhatTheEnvironmentClaims: somebody without a name on the machine, who claims one, is their number.
// os/user of a build without cgo takes the claim.
func TestOperator_NotWhatTheEnvironmentClaims(t *testing.T) {
	t.Parallel()
	if os.Getenv(innerOperator) != "" {
		by, err := app.Operator()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("it is %s", by)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody without a name")
	}
	inner := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestOperator_NotWhatTheEnvironmentClaims$", "-test.v")
	inner.Dir = "/"
	inner.Env = []string{innerOperator + "=1", "USER=kim", "LOGNAME=kim", "HOME=/"}
	inner.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54_321, Gid: 54_321}}
	out, err := inner.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "it is os:uid-54321\n") {
		t.Errorf("got %v, want os:uid-54321 in:\n%s", err, out)
	}
}
