package seal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/ledger/seal"
)

// chain lists the heads: sequence, day, range, transactions.
func (s *shop) chain() []string {
	s.t.Helper()
	heads, err := ledger.HeadsAfter(context.WithoutCancel(s.t.Context()), s.db, 0, 1000)
	s.must(err)
	var lines []string
	for _, h := range heads {
		lines = append(lines, fmt.Sprintf("%d %s (%d, %d] %d", h.Sequence, h.Day, h.FromID, h.UpToID, h.Transactions))
	}
	return lines
}

func TestSealer_OneHeadPerDayInOrder(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.seal() // nothing has been written: yesterday ended all the same
	s.sell(50_000, 0)
	s.seal() // the day goes on
	s.nextDay()
	s.sell(30_000, 0) // before the cut: in the section of the day that ended
	s.seal()
	s.seal() // once
	s.nextDay()
	s.nextDay()
	s.sell(20_000, 0)
	s.nextDay()
	s.seal() // three days made up: the earliest holds what they brought
	want := []string{
		"1 2026-04-30 (0, 0] 0",
		"2 2026-05-01 (0, 2] 2",
		"3 2026-05-02 (2, 3] 1",
		"4 2026-05-03 (3, 3] 0",
		"5 2026-05-04 (3, 3] 0",
	}
	if diff := cmp.Diff(want, s.chain()); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
	witnessed, err := seal.NewWitness(s.heads).Read()
	s.must(err)
	if len(witnessed) != len(want) {
		t.Errorf("got %d heads witnessed, want %d", len(witnessed), len(want))
	}
	if got, want := s.gauge("daesa_seal_sealed_until_timestamp_seconds"), ledger.Day("2026-05-05").Start().Unix(); got != want {
		t.Errorf("got sealed until %d, want %d", got, want)
	}
	ledgertest.RequireSound(t, s.db)
}

// TestSealer_WithoutAKey cuts sections and makes no heads; a key that comes later seals them all.
func TestSealer_WithoutAKey(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.sell(50_000, 0)
	s.nextDay()
	s.must(s.sealerOn(s.db, nil, "").Run(t.Context()))
	if got := s.gauge("daesa_seal_key_missing"); got != 1 {
		t.Errorf("got key missing %d, want 1", got)
	}
	s.sell(10_000, 0)
	s.nextDay()
	s.must(s.sealerOn(s.db, nil, "").Run(t.Context()))
	if got := s.chain(); len(got) != 0 {
		t.Errorf("got %v without a key, want no head", got)
	}
	s.seal()
	if diff := cmp.Diff([]string{"1 2026-05-01 (0, 1] 1", "2 2026-05-02 (1, 2] 1"}, s.chain()); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
	if got := s.gauge("daesa_seal_key_missing"); got != 0 {
		t.Errorf("got key missing %d with a key, want 0", got)
	}
}

// TestSealer_NoRowLandsBehindASeal: writers keep transactions open while days end and are sealed, ids commit in any
// order, and yet no section ever gets a row after its cut.
func TestSealer_NoRowLandsBehindASeal(t *testing.T) {
	t.Parallel()
	s := open(t)
	const writers, each = 4, 25
	var group sync.WaitGroup
	failures := make(chan error, writers)
	stop := make(chan struct{})
	for w := range writers {
		group.Go(func() {
			for n := range each {
				if err := s.writeSlowly(w, n); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	go func() { group.Wait(); close(stop) }()
	cuts := 0
	for running := true; running; {
		select {
		case <-stop:
			running = false
		default:
		}
		s.nextDay()
		switch err := s.sealer().Run(t.Context()); {
		case errors.Is(err, seal.ErrBusy):
		case err != nil:
			t.Fatal(err)
		default:
			cuts++
		}
	}
	close(failures)
	s.must(<-failures)
	if cuts < 3 {
		t.Fatalf("got %d cuts while rows were written, want some", cuts)
	}
	var behind, rows int64
	s.must(s.db.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM journal_transactions), COALESCE(sum(abs(h.transactions - n.rows)), 0)
		FROM journal_heads h
		CROSS JOIN LATERAL (SELECT count(*) AS rows FROM journal_transactions t
			WHERE t.transaction_id > h.from_id AND t.transaction_id <= h.up_to_id) n`).Scan(&rows, &behind))
	if behind != 0 || rows != writers*each {
		t.Errorf("got %d rows behind a seal of %d, want none of %d", behind, rows, writers*each)
	}
	if report := s.verify(); len(report.Breaks) != 0 {
		// These rows belong to no payment; what is looked for is a head that does not fit.
		for _, b := range report.Breaks {
			if b.Head != 0 {
				t.Errorf("got %s, want every head to fit", b)
			}
		}
	}
}

// writeSlowly takes an id, lets others overtake, and commits.
func (s *shop) writeSlowly(writer, n int) error {
	return postgres.InTx(s.t.Context(), s.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(s.t.Context(), `INSERT INTO journal_transactions (kind, reference, occurred_at, recorded_at)
			VALUES ('capture', 'w' || $1::int || '#' || $2::int, clock_timestamp(), clock_timestamp())`, writer, n)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(s.t.Context(), `SELECT pg_sleep($1::int / 1000.0)`, (writer*7+n*3)%9); err != nil {
			return err
		}
		_, err = tx.Exec(s.t.Context(), `INSERT INTO journal_entries (transaction_id, line, account, currency, amount)
			SELECT currval('journal_transactions_transaction_id_seq'), line, account, 'KRW', amount
			FROM (VALUES (1, 'gateway_receivable', 100), (2, 'sales', -100)) AS e (line, account, amount)`)
		return err
	})
}

// TestSealer_NeverHoldsUpTheMoneyPath: while somebody keeps the journal open for long, the cut gives up soon, and those
// who write meanwhile wait no longer than it does.
func TestSealer_NeverHoldsUpTheMoneyPath(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.sell(50_000, 0)
	s.nextDay()
	held, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- postgres.InTx(t.Context(), s.db, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO journal_transactions (kind, reference, occurred_at, recorded_at)
				VALUES ('capture', 'held', clock_timestamp(), clock_timestamp())`)
			close(held)
			<-release
			return errors.Join(err, errUndo)
		})
	}()
	<-held
	sealing := make(chan error, 1)
	began := time.Now()
	go func() { sealing <- s.sealer().Run(t.Context()) }()
	s.waitForLock()
	begin := time.Now()
	s.must(s.writeSlowly(9, 0))
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("got %s for a payment beside the cut, want little more than the 200 ms that the cut waits", took)
	}
	if err := <-sealing; !errors.Is(err, seal.ErrBusy) {
		t.Errorf("got %v, want %v", err, seal.ErrBusy)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("got %s until the cut gave up, want 200 ms", took)
	}
	close(release)
	if err := <-ended; !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	s.seal()
	if got := len(s.chain()); got != 1 {
		t.Errorf("got %d heads after the next tick, want 1", got)
	}
}

var errUndo = errors.New("undo")

// waitForLock waits until the cut stands in the queue for the journal.
func (s *shop) waitForLock() {
	s.t.Helper()
	for range 10_000 {
		var waiting bool
		s.must(s.db.QueryRow(s.t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_locks
			WHERE NOT granted AND relation = 'journal_transactions'::regclass
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&waiting))
		if waiting {
			return
		}
	}
	s.t.Fatal("the cut never asked for the lock")
}

// TestSealer_DiesAnywhere breaks the line to the database at every round trip of a run that has two days to seal. What
// the next run leaves is the same every time.
func TestSealer_DiesAnywhere(t *testing.T) {
	t.Parallel()
	for _, how := range postgrestest.Breakages() {
		t.Run(how.Name, func(t *testing.T) {
			t.Parallel()
			url := postgrestest.NewURL(t)
			db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			s := openOn(t, db)
			s.seal()
			first, step := how.Stride()
			at, met := first, true
			for ; met; at += step {
				met = s.diesAt(url, at, how)
			}
			if at-step < 8 {
				t.Errorf("got a whole run after %d round trips, want more to die at", at-step)
			}
			s.requireWhole("after all of them")
		})
	}
}

// diesAt has two days sealed by an instance that meets the breakage, then by one that is well, and reports whether it was
// met.
func (s *shop) diesAt(url string, at int, how postgrestest.Breakage) bool {
	s.t.Helper()
	before := s.chain()
	s.sell(50_000, 3)
	s.nextDay()
	s.sell(30_000, 0)
	s.nextDay()
	line := postgrestest.NewLine()
	broken, err := postgres.Open(s.t.Context(), postgres.Config{URL: url, Dial: line.Dial})
	s.must(err)
	defer broken.Close()
	line.Arm(at, how)
	failed := s.sealerOn(broken, s.key, s.heads).Run(s.t.Context())
	met := line.Mend()
	if met && failed == nil && how.Stays {
		s.t.Errorf("round trip %d: got a success without a database", at)
	}
	s.seal()
	heads, err := ledger.HeadsAfter(s.t.Context(), s.db, int64(len(before)), 10)
	s.must(err)
	if len(heads) != 2 || heads[0].Transactions != 3 || heads[1].Transactions != 0 || heads[1].Day.Next() != ledger.DayOf(s.now) {
		s.t.Fatalf("round trip %d: got %v after %v, want two more days sealed", at, s.chain(), before)
	}
	return met
}

// requireWhole asserts that the witness knows every head once, in order, and that everything verifies.
func (s *shop) requireWhole(what string) {
	s.t.Helper()
	witnessed, err := seal.NewWitness(s.heads).Read()
	s.must(err)
	for i, w := range witnessed {
		if w.Sequence != int64(i+1) {
			s.t.Errorf("%s: got witness %v, want every head once", what, witnessed)
		}
	}
	if len(witnessed) != len(s.chain()) {
		s.t.Errorf("%s: got %d heads witnessed of %d", what, len(witnessed), len(s.chain()))
	}
	if report := s.verify(); len(report.Breaks) != 0 {
		s.t.Errorf("%s: got %v, want nothing broken", what, report.Breaks)
	}
}

// TestSealer_TwoInstances seal in turns, each with its own witness, and at once.
func TestSealer_TwoInstances(t *testing.T) {
	t.Parallel()
	s := open(t)
	other := s.heads + ".other"
	s.sell(10_000, 0)
	s.nextDay()
	s.seal()
	s.must(seal.NewWitness(other).Create(s.verify()))
	for day := range 4 {
		s.sell(10_000, 0)
		s.nextDay()
		if day%2 == 0 {
			s.seal()
			continue
		}
		s.must(s.sealerOn(s.db, s.key, other).Run(t.Context()))
	}
	s.sell(10_000, 0)
	s.nextDay()
	var group sync.WaitGroup
	a, b := s.sealerOn(s.db, s.key, s.heads), s.sealerOn(s.db, s.key, other)
	for _, sealer := range []*seal.Sealer{a, b} {
		group.Go(func() {
			if err := sealer.Run(t.Context()); err != nil && !errors.Is(err, seal.ErrBusy) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s.must(a.Run(t.Context()))
	s.must(b.Run(t.Context()))
	if got := len(s.chain()); got != 6 {
		t.Errorf("got heads %v, want 6", s.chain())
	}
	s.requireWhole("the first")
	s.heads = other
	s.requireWhole("the other")
}

// TestSealer_RefusesAShortenedHistory: the heads and rows of the last day are cut off by somebody who can do everything in
// the database. The service must not seal what is left.
func TestSealer_RefusesAShortenedHistory(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]string{
		"the newest head":                   `DELETE FROM journal_marks WHERE sequence = 2; DELETE FROM journal_heads WHERE sequence = 2`,
		"and its section and rows":          cutTail,
		"every head":                        `DELETE FROM journal_marks; DELETE FROM journal_heads`,
		"a head rewritten":                  `UPDATE journal_heads SET up_to_id = up_to_id WHERE sequence = 2; UPDATE journal_heads SET hash = sha256('other') WHERE sequence = 2`,
		"the tail, heads and sections left": `DELETE FROM journal_entries WHERE transaction_id > 6; DELETE FROM journal_transactions WHERE transaction_id > 6`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.sell(50_000, 10)
			s.sell(1_000, 0)
			s.nextDay()
			s.seal()
			s.sell(70_000, 5)
			s.nextDay()
			s.seal()
			s.nextDay()
			s.superuser(strings.ReplaceAll(cut, "> 6", "> 3"))
			before := s.chain()
			err := s.sealer().Run(t.Context())
			if !errors.Is(err, seal.ErrBroken) {
				t.Fatalf("got %v, want %v", err, seal.ErrBroken)
			}
			if got := s.gauge("daesa_seal_head_broken"); got != 1 {
				t.Errorf("got head broken %d, want 1", got)
			}
			if diff := cmp.Diff(before, s.chain()); diff != "" {
				t.Errorf("heads were made over a broken chain (-before +after):\n%s", diff)
			}
		})
	}
}

// cutTail takes the last day out, as if it had never been sealed.
const cutTail = `
	DELETE FROM journal_entries WHERE transaction_id > 6;
	DELETE FROM journal_transactions WHERE transaction_id > 6;
	DELETE FROM journal_marks WHERE sequence = 2;
	DELETE FROM journal_heads WHERE sequence = 2;
	DELETE FROM journal_balances WHERE day = '2026-05-02';
	DELETE FROM journal_sections WHERE day = '2026-05-02'`

// superuser does what no trigger and no constraint hinders.
func (s *shop) superuser(statements string) {
	s.t.Helper()
	s.must(asSuperuser(s.t.Context(), s.db, statements))
}

func asSuperuser(ctx context.Context, db *pgxpool.Pool, statements string) error {
	return postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SET LOCAL session_replication_role = replica; `+statements)
		return err
	})
}

func TestWitness_LinesCutShort(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.days()
	whole, err := os.ReadFile(s.heads)
	s.must(err)
	first := bytes.IndexByte(whole, '\n') + 1
	for cut := range whole {
		if cut < first {
			continue // a witness that knows nothing is refused
		}
		if near := cut % (len(whole) / 3); near > 1 && near < len(whole)/3-1 && cut%17 != 0 {
			continue // within a line one place is like another; what matters is around its end
		}
		s.must(os.WriteFile(s.heads, whole[:cut], 0o600))
		s.seal()
		s.requireWhole(fmt.Sprintf("cut after %d bytes", cut))
	}
	s.must(os.WriteFile(s.heads, append([]byte("1 2026-05-01 nonsense\n"), whole...), 0o600))
	if err := s.sealer().Run(t.Context()); err == nil {
		t.Error("got no error for a line that says nothing, want one: the file is evidence")
	}
}

func TestReadKey_OpenToOthers(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.must(os.Chmod(s.keyFile, 0o640))
	if _, err := seal.ReadKey(s.keyFile); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v, want a refusal that says what to do", err)
	}
	s.must(os.Chmod(s.keyFile, 0o600))
	key, err := seal.ReadKey(s.keyFile)
	if err != nil || key.ID() != s.key.ID() {
		t.Errorf("got %v and %v, want the key", key, err)
	}
	if _, err := seal.GenerateKey(s.keyFile); err == nil {
		t.Error("got a key in the place of another, want a refusal")
	}
}
