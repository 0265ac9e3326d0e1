package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Programs are the binaries that are put under load, each built once.
type Programs struct {
	daesa, tosssim string
	yield          bool // the service leaves the processors to whoever else wants them
}

// yielding are the same programs, of which the service yields. Whoever sends the load stands for other machines: on one
// that it shares with a service at its limit it would have to wait for the service, and so send less to whoever can do
// less.
func (p Programs) yielding() Programs {
	p.yield = true
	return p
}

// command is what runs the service. A priority is given to a process before it has threads: each has one of its own.
func (p Programs) command() (program string, args []string) {
	if p.yield {
		return "nice", []string{"-n", "10", p.daesa, "serve"}
	}
	return p.daesa, []string{"serve"}
}

// Build builds the programs of this module into a folder, with flags of go build.
func Build(ctx context.Context, folder string) (Programs, error) {
	build := exec.CommandContext(ctx, "go", "build", "-o", folder+string(filepath.Separator), "daesa/cmd/daesa", "daesa/cmd/tosssim") //nolint:gosec // the folder is our own
	if said, err := build.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("build the programs: %w: %s", err, said)
	}
	return Programs{daesa: filepath.Join(folder, "daesa"), tosssim: filepath.Join(folder, "tosssim")}, nil
}

// environment is what a program is started with: nothing of ours leaks into its settings.
func environment(settings ...string) []string {
	env := make([]string, 0, 3+len(settings))
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return append(env, settings...)
}
