package harness

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Goroutines is how many an instance has, by what they are for.
type Goroutines struct {
	All  int
	Idle int // the two ends of connections that wait for the next request
}

// Busy are those that are not explained by an idle connection.
func (g Goroutines) Busy() int { return g.All - g.Idle }

// Goroutines asks the first instance for its profile.
func (b *Bench) Goroutines(ctx context.Context) (Goroutines, error) {
	profile, err := b.Instances[0].private(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return Goroutines{}, err
	}
	return countGoroutines(profile)
}

// countGoroutines reads a profile: groups of equal stacks, each with its number.
func countGoroutines(profile []byte) (g Goroutines, err error) {
	for group := range strings.SplitSeq(string(profile), "\n\n") {
		n, stack := 0, ""
		for lines := bufio.NewScanner(bytes.NewReader([]byte(group))); lines.Scan(); {
			line := lines.Text()
			if strings.Contains(line, " @ 0x") {
				if _, err := fmt.Sscanf(line, "%d @", &n); err != nil {
					return g, fmt.Errorf("read the list of goroutines: %w", err)
				}
			}
			stack += line + "\n"
		}
		g.All += n
		if idle(stack) {
			g.Idle += n
		}
	}
	return g, nil
}

// idle reports whether a stack is that of a connection, ours or a client's, without a request of this program on it. Who
// waits for the answer on a connection is no part of it.
func idle(stack string) bool {
	if strings.Contains(stack, "daesa/") || strings.Contains(stack, "net/http/pprof") {
		return false
	}
	for _, loop := range []string{"net/http.(*persistConn).readLoop+", "net/http.(*persistConn).writeLoop+", "net/http.(*conn).serve+"} {
		if strings.Contains(stack, loop) {
			return true
		}
	}
	return false
}
