package capacity

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pgbench is PostgreSQL's own load generator.
type pgbench struct{ program, folder string }

// findPgbench prefers the program that belongs to the server.
func findPgbench(ctx context.Context, db *pgxpool.Pool, folder string) (p pgbench, err error) {
	rows, err := db.Query(ctx, `SELECT setting FROM pg_config WHERE name = 'BINDIR'`)
	if err != nil {
		return p, fmt.Errorf("find pgbench: %w", err)
	}
	bin, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
	if err != nil {
		return p, fmt.Errorf("find pgbench: %w", err)
	}
	p = pgbench{program: filepath.Join(bin, "pgbench"), folder: folder}
	if _, err := os.Stat(p.program); err != nil {
		if p.program, err = exec.LookPath("pgbench"); err != nil {
			return p, fmt.Errorf("install pgbench, which comes with PostgreSQL's server: %w", err)
		}
	}
	return p, nil
}

var (
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)/(\d+)`)
	perSecond = regexp.MustCompile(`tps = ([0-9.]+) \(without initial connection time\)`)
)

// run runs a script once for each payment from first on, and says how many it did in a second and what of processors it
// used itself.
func (p pgbench) run(ctx context.Context, address, text string, defines []string, first, payments, clients int) (rate float64, used time.Duration, err error) {
	file := filepath.Join(p.folder, "cancel.pgbench")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return 0, 0, fmt.Errorf("write the script: %w", err)
	}
	each := payments / clients
	args := []string{
		"--no-vacuum", "--protocol=prepared", "--client=" + strconv.Itoa(clients), "--jobs=2", "--transactions=" + strconv.Itoa(each),
		"--file=" + file, "--define=done=0", "--define=first=" + strconv.Itoa(first), "--define=each=" + strconv.Itoa(each),
	}
	for _, d := range defines {
		args = append(args, "--define="+d)
	}
	command := exec.CommandContext(ctx, p.program, append(args, address)...) //nolint:gosec // PostgreSQL's own program
	said, err := command.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("pgbench: %w: %s", err, lastOf(string(said)))
	}
	done := processed.FindStringSubmatch(string(said))
	tps := perSecond.FindStringSubmatch(string(said))
	if done == nil || tps == nil || done[1] != strconv.Itoa(payments) {
		return 0, 0, fmt.Errorf("pgbench did not do all of %d: %s", payments, lastOf(string(said)))
	}
	rate, err = strconv.ParseFloat(tps[1], 64)
	return rate, command.ProcessState.UserTime() + command.ProcessState.SystemTime(), err
}

func lastOf(text string) string {
	return strings.TrimSpace(text[max(0, len(text)-2000):])
}
