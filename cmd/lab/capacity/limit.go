package capacity

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/internal/postgres"
)

// size is how large the experiment is.
type size struct {
	payments int // in each run of each arm
	warm     int // before each run
	history  int // paid before and left alone, so that tables and indexes have a size
	rounds   int
	inFlight int
}

func sizeOf(quick bool) size {
	if quick {
		return size{payments: 96, warm: 64, history: 200, rounds: 1, inFlight: 16}
	}
	return size{payments: 20_000, warm: 640, history: 100_000, rounds: 3, inFlight: 16}
}

// settings of the service: a limit that refuses nobody, whose statement runs nonetheless. All else is as it ships.
func settings() []string { return []string{"DAESA_WEBHOOK_RATE_LIMIT=6000000"} }

// limit is the experiment while it runs.
type limit struct {
	size

	lab       *harness.Lab
	constant  harness.Programs // with a program that answers every notice alike
	gateway   *harness.Gateway
	databases *databases
	server    server
	pgbench   pgbench
	model     model
	script    script
	runs      []run
}

// Limit asks how many cancels the service can apply in a second with 16 of them under way, the question to a gateway
// that answers at once included, and what each costs. What PostgreSQL can do at most is asked in the same minutes.
func Limit(ctx context.Context, lab *harness.Lab) (r report.Result, err error) {
	l := &limit{size: sizeOf(lab.Quick), lab: lab}
	defer func() { err = errors.Join(err, l.close(context.WithoutCancel(ctx))) }()
	if err := l.prepare(ctx); err != nil {
		return r, err
	}
	for round := 1; round <= l.rounds; round++ {
		arms := []func(context.Context, int) error{l.service, l.oneByOne, l.pipelined}
		turn := (round - 1) % len(arms)
		for _, arm := range slices.Concat(arms[turn:], arms[:turn]) { // each is first once
			if err := arm(ctx, round); err != nil {
				return r, err
			}
		}
	}
	l.report(&r)
	return r, nil
}

func (l *limit) close(ctx context.Context) error {
	var errs []error
	if l.gateway != nil {
		errs = append(errs, l.gateway.Stop())
	}
	if l.databases != nil {
		errs = append(errs, l.databases.close(ctx))
	}
	return errors.Join(errs...)
}

// prepare sells the model, copies it in the books and at the gateway, and writes the script.
func (l *limit) prepare(ctx context.Context) (err error) {
	if err := l.build(ctx); err != nil {
		return err
	}
	if l.gateway, err = l.lab.Programs.StartGateway(ctx, l.lab.Folder); err != nil {
		return err
	}
	address, err := l.lab.Fresh(ctx, "lab_limit")
	if err != nil {
		return err
	}
	if l.databases, err = openDatabases(ctx, address); err != nil {
		return err
	}
	if l.server, err = watchServer(ctx, l.databases.admin); err != nil {
		return err
	}
	if l.pgbench, err = findPgbench(ctx, l.databases.admin, l.lab.Folder); err != nil {
		return err
	}
	if err := l.fill(ctx, address); err != nil {
		return err
	}
	return l.record(ctx)
}

func (l *limit) build(ctx context.Context) error {
	program := filepath.Join(l.lab.Folder, "constant")
	said, err := exec.CommandContext(ctx, "go", "build", "-o", program, "daesa/cmd/lab/constant").CombinedOutput() //nolint:gosec // our own program
	if err != nil {
		return fmt.Errorf("build the program to compare with: %w: %s", err, said)
	}
	l.constant = l.lab.Programs.With(program)
	return nil
}

// fill sells the model through the service, and copies it as it is then: paid. Only then is it canceled, and its own
// cancel applied, or the service would find it in the gateway's list and apply it some time.
func (l *limit) fill(ctx context.Context, address string) error {
	l.lab.Say("limit: %d payments, and %d of before", l.warm+l.payments, l.history)
	service, err := l.lab.Programs.StartInstance(ctx, l.lab.Folder, "seller", address, l.gateway.URL)
	if err != nil {
		return err
	}
	err = l.fillFrom(ctx, address, service)
	return errors.Join(err, service.Stop())
}

func (l *limit) fillFrom(ctx context.Context, address string, service *harness.Instance) (err error) {
	if l.model, err = sell(ctx, service, l.gateway); err != nil {
		return err
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: address, MaxConns: 2, ApplicationName: "lab"})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := l.model.copy(ctx, db, l.warm+l.payments, l.history); err != nil {
		return err
	}
	if l.model, err = l.model.cancel(ctx, l.gateway); err != nil {
		return err
	}
	sender, err := newSender(service.URL, 1)
	if err != nil {
		return err
	}
	got, err := sender.deliver(ctx, 0, 1, func(int) []byte { return l.model.notice })
	if err == nil && got.outcomes[appliedFull]+got.outcomes[duplicateSkipped] != 1 {
		err = fmt.Errorf("got %v for the model's notice, want it applied", got.outcomes)
	}
	return errors.Join(err, l.model.give(ctx, l.gateway, l.warm+l.payments))
}

// recordings is how many notices are recorded, after as many by which the service has prepared its statements. The
// shortest is the one in which nothing more had to be.
const recordings = 20

// recordingsTried is how many recordings may be tried for as many that are of use: what the service does by itself can come
// in between, and on a busy machine the rate limit can be too late to be asked.
const recordingsTried = 3 * recordings

// record runs the service with a recorder on its line to the database, and writes the script of what it does.
func (l *limit) record(ctx context.Context) (err error) {
	address, err := l.databases.copyOf(ctx, "recorded")
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: address, MaxConns: 2, ApplicationName: "lab"})
	if err != nil {
		return err
	}
	defer db.Close()
	at := db.Config().ConnConfig
	network, server := pgconn.NetworkAddress(at.Host, at.Port)
	on, err := record(ctx, network, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	through, err := on.through(address)
	if err != nil {
		return err
	}
	service, err := l.lab.Programs.StartInstance(ctx, l.lab.Folder, "recorded", through, l.gateway.URL, settings()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Stop()) }()
	sender, err := newSender(service.URL, 1)
	if err != nil {
		return err
	}
	if _, err := sender.deliver(ctx, 1, recordings, l.model.notices()); err != nil {
		return err
	}
	var mixed error
	for n, good := recordings+1, 0; good < recordings && n <= recordings+min(recordingsTried, l.payments); n++ {
		switch err := l.recordOne(ctx, db, on, sender, n); {
		case errors.Is(err, errMixed):
			mixed = err
		case err != nil:
			return err
		default:
			good++
		}
	}
	if l.script.oneByOne == "" {
		return mixed
	}
	return nil
}

func (l *limit) recordOne(ctx context.Context, db *pgxpool.Pool, on *recorder, sender sender, n int) error {
	on.forget()
	got, err := sender.deliver(ctx, n, 1, l.model.notices())
	if err != nil {
		return err
	}
	if got.outcomes[appliedFull] != 1 {
		return fmt.Errorf("got %v for a notice, want it applied", got.outcomes)
	}
	seen := on.noted()
	events, err := readEvents(ctx, db, keyName.of(n))
	if err != nil {
		return err
	}
	own, made := marksOf(n), marksOfEvents(events)
	s, err := storyOf(seen, own, made)
	if err != nil || (l.script.oneByOne != "" && s.trips >= l.script.story.trips) {
		return err
	}
	l.script, err = write(ctx, db, s, slices.Concat(own, made))
	return err
}

// readEvents are the ids of the events that a payment's cancel has led to, in one order for every payment.
func readEvents(ctx context.Context, db *pgxpool.Pool, key string) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT event_id FROM events WHERE payment_key = @key AND kind <> 'order.paid' ORDER BY kind, audience`,
		pgx.StrictNamedArgs{"key": key})
	if err != nil {
		return nil, fmt.Errorf("read the events of %s: %w", key, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the events of %s: %w", key, err)
	}
	return ids, nil
}
