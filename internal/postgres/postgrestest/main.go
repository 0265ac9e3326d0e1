package postgrestest

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"daesa/internal/postgres/embedded"
)

// watchmanArgument makes a test binary stop the server of a folder once nobody uses it, instead of running tests.
const watchmanArgument = "postgrestest-watchman"

// Run runs the tests of a package, stops what they shared, and fails the package if a goroutine is left over.
// It does not return:
//
//	func TestMain(m *testing.M) { postgrestest.Run(m) }
//
// Whatever else the tests of the package shared is ended by ends, before leaks are looked for.
func Run(m *testing.M, ends ...func() error) {
	if len(os.Args) == 3 && os.Args[1] == watchmanArgument {
		if err := embedded.StopWhenUnused(context.Background(), os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	binary.allowed = true
	goleak.VerifyTestMain(suite{m, append(ends, binary.stop)})
}

// suite ends what tests shared before leaks are looked for.
type suite struct {
	m    *testing.M
	ends []func() error
}

// Run runs the tests and returns the exit code.
func (s suite) Run() int {
	code := s.m.Run()
	for _, end := range s.ends {
		if err := end(); err != nil {
			_, _ = os.Stderr.WriteString("postgrestest: " + err.Error() + "\n")
			code = max(code, 1)
		}
	}
	return code
}
