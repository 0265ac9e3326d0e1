package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// sample is one look at the service while notices are under way.
type sample struct {
	waiting    int   // notices under way
	acquired   int   // connections taken from the service's pool
	Open       int   `db:"open"`      // transactions the database has open for the service
	OldestMS   int64 `db:"oldest_ms"` // the oldest of them
	goroutines int
	handlers   int // goroutines in the notice handler; -1 when not counted in this look
}

const (
	lookEvery     = 20 * time.Millisecond
	countEvery    = 10 // looks: a count of goroutines stops the program for a moment
	idleLooks     = 15
	handlerMethod = "daesa/webhook.(*Handler)"
)

// watch looks again and again until ctx ends. The first error ends it: a watch that failed half-way has seen half.
func (b *bench) watch(ctx context.Context, waiting func() int) ([]sample, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var samples []sample
	for {
		seen, err := b.look(context.WithoutCancel(ctx), waiting, len(samples)%countEvery == 0)
		if err != nil {
			return nil, err
		}
		samples = append(samples, seen)
		select {
		case <-ctx.Done():
			return samples, nil
		case <-tick.C:
		}
	}
}

// look asks the database and the program once. An idle session with a transaction is the server's own doing: it reads
// a notification there, and dates that by the session's last statement, however long ago it was.
func (b *bench) look(ctx context.Context, waiting func() int, count bool) (sample, error) {
	rows, err := b.meter.Query(ctx, `
		SELECT count(*)::int AS open,
			COALESCE(max(extract(epoch FROM clock_timestamp() - xact_start) * 1000), 0)::bigint AS oldest_ms
		FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'daesa' AND xact_start IS NOT NULL AND state <> 'idle'`)
	if err != nil {
		return sample{}, fmt.Errorf("look at the database's sessions: %w", err)
	}
	seen, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[sample])
	if err != nil {
		return sample{}, fmt.Errorf("look at the database's sessions: %w", err)
	}
	seen.waiting, seen.acquired = waiting(), int(b.App.DB().Stat().AcquiredConns())
	seen.goroutines, seen.handlers = runtime.NumGoroutine(), -1
	if count {
		seen.handlers, err = goroutinesIn(handlerMethod)
	}
	return seen, err
}

// idle is how many connections the service holds while nothing happens: the one on which its jobs listen.
func (b *bench) idle(ctx context.Context) (least int, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	least = int(b.App.DB().Stat().AcquiredConns())
	for range idleLooks {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
			least = min(least, int(b.App.DB().Stat().AcquiredConns()))
		}
	}
	return least, nil
}

// handlersLeft is how many goroutines are still in the notice handler once it had the time to return: it is there for a
// moment after its last answer has arrived.
func (b *bench) handlersLeft(ctx context.Context) (left int, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for range idleLooks {
		if left, err = goroutinesIn(handlerMethod); err != nil || left == 0 {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-tick.C:
		}
	}
	return left, nil
}

// goroutinesIn counts the goroutines with a function of that name on their stack.
func goroutinesIn(function string) (int, error) {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return 0, fmt.Errorf("list goroutines: %w", err)
	}
	total, group, counted := 0, 0, false
	for lines := bufio.NewScanner(&profile); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.Contains(line, " @ 0x"):
			group, counted = 0, false
			if _, err := fmt.Sscanf(line, "%d @", &group); err != nil {
				return 0, fmt.Errorf("read the list of goroutines: %w", err)
			}
		case !counted && strings.Contains(line, function):
			total, counted = total+group, true
		}
	}
	return total, nil
}
