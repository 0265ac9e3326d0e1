package postgrestest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// innerZone tells a process that InZones started it.
const innerZone = "DAESA_TEST_ZONE_INNER"

// InZones runs tests of the package in processes with other ideas of the time, each with a server of its own that has them
// too, and requires that they pass. zones holds the environment of each by its name, where neither TZ nor ZONEINFO is set
// otherwise. The test that calls it is skipped in such a process.
func InZones(t *testing.T, zones map[string][]string, tests ...string) {
	t.Helper()
	//nolint:forbidigo // a test binary is its own program, and this is between two of its processes
	if os.Getenv(innerZone) != "" {
		t.Skip("it is the outer one that starts others")
	}
	var base []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TZ=") && !strings.HasPrefix(v, "ZONEINFO=") {
			base = append(base, v)
		}
	}
	for name, env := range zones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := inner(t.Context(), append(append([]string{innerZone + "=1"}, base...), env...), tests)
			for _, passes := range tests {
				if err != nil || !strings.Contains(out, "--- PASS: "+passes) {
					t.Fatalf("%s: got %v:\n%s", passes, err, out)
				}
			}
		})
	}
}

func inner(ctx context.Context, env, tests []string) (string, error) {
	//nolint:gosec // the test binary itself, and tests that it names
	run := exec.CommandContext(ctx, os.Args[0], "-test.run=^("+strings.Join(tests, "|")+")$", "-test.v")
	run.Env = env
	out, err := run.CombinedOutput()
	return string(out), err
}
