package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Programs are the binaries that are put under load, each built once.
type Programs struct{ daesa, tosssim string }

// Build builds the programs of this module into a folder, with flags of go build.
func Build(ctx context.Context, folder string) (Programs, error) {
	build := exec.CommandContext(ctx, "go", "build", "-o", folder+string(filepath.Separator), "daesa/cmd/daesa", "daesa/cmd/tosssim") //nolint:gosec // the folder is our own
	if said, err := build.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("build the programs: %w: %s", err, said)
	}
	return Programs{filepath.Join(folder, "daesa"), filepath.Join(folder, "tosssim")}, nil
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
