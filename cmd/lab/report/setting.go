package report

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Setting is where and with what a run was made: figures mean little without it.
type Setting struct {
	Version string // of this repository, "" when it cannot be told
	Machine string
}

// String writes the setting as one phrase.
func (s Setting) String() string {
	text := s.Machine
	if s.Version != "" {
		text = "version " + s.Version + ", " + text
	}
	return text
}

// Where finds out. It asks git for the version; changes that are not committed are said.
func Where(ctx context.Context) Setting {
	s := Setting{Machine: fmt.Sprintf("%d cores%s, %s/%s, %s", runtime.NumCPU(), processor(), runtime.GOOS, runtime.GOARCH, runtime.Version())}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return s // a copy without history runs too
	}
	s.Version = strings.TrimSpace(string(commit))
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err != nil || len(bytes.TrimSpace(changes)) > 0 {
		s.Version += " with changes"
	}
	return s
}

// processor is the model of the processor and the memory, where the system tells.
func processor() (text string) {
	for _, line := range linesOf("/proc/cpuinfo") {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			text = " (" + strings.TrimSpace(model) + ")"
			break
		}
	}
	for _, line := range linesOf("/proc/meminfo") {
		kilobytes := 0
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kilobytes); err == nil {
			return fmt.Sprintf("%s, %d GiB", text, (kilobytes+1<<19)>>20)
		}
	}
	return text
}

func linesOf(file string) []string {
	content, err := os.ReadFile(file) //nolint:gosec // one of two names above
	if err != nil {
		return nil // not every system has it
	}
	return strings.Split(string(content), "\n")
}

// LoadAverage is how busy the machine was during the last minute: times mean little on a machine that is busy with
// something else.
func LoadAverage() string {
	minute, _, _ := strings.Cut(strings.Join(linesOf("/proc/loadavg"), ""), " ")
	return minute
}
