package seal

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/ledger"
)

// Config is what sealing needs. Without a key sections are cut and no heads made: a state of its own, which a metric and
// daesa verify show.
type Config struct {
	DB      *pgxpool.Pool
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
	// DatabaseNow is the database's own clock; nil asks it. Tests have clocks of their own.
	DatabaseNow func(context.Context) (time.Time, error)

	Key     *Key                // nil: no heads
	OldKeys []ed25519.PublicKey // others that may have signed heads which the witness does not know yet
	Witness Witness             // where each head is also written
}

func (c Config) validate() error {
	switch {
	case c.DB == nil:
		return errors.New("seal: DB is required")
	case c.Metrics == nil:
		return errors.New("seal: Metrics is required")
	case c.Log == nil:
		return errors.New("seal: Log is required")
	case c.Now == nil:
		return errors.New("seal: Now is required")
	case c.Key != nil && c.Witness.path == "":
		return errors.New("seal: a key needs a witness file")
	}
	return nil
}

// Sealer cuts and seals the journal.
type Sealer struct {
	cfg  Config
	keys map[string]ed25519.PublicKey
}

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Sealer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.DatabaseNow == nil {
		cfg.DatabaseNow = cfg.databaseNow
	}
	cfg.Metrics.configured(cfg.Key != nil)
	s := &Sealer{cfg: cfg, keys: make(map[string]ed25519.PublicKey)}
	for _, k := range cfg.OldKeys {
		s.keys[KeyID(k)] = k
	}
	if cfg.Key != nil {
		s.keys[cfg.Key.ID()] = cfg.Key.Public()
	}
	return s, nil
}

// Run cuts and seals every business day that has ended and is not yet, in order. Each section and each head is one
// transaction, so a run that dies anywhere has left whole ones, and the next goes on.
func (s *Sealer) Run(ctx context.Context) error {
	err := s.run(ctx)
	if errors.Is(err, ErrBroken) {
		s.cfg.Metrics.broken(true)
		return err
	}
	if err == nil {
		s.cfg.Metrics.broken(false)
	}
	return err
}

func (s *Sealer) run(ctx context.Context) error {
	var newest Witnessed
	if s.cfg.Key != nil {
		var err error
		if newest, err = s.checkWitness(ctx); err != nil {
			return err
		}
	}
	if err := s.cutDays(ctx); err != nil {
		return err
	}
	if s.cfg.Key == nil {
		return nil
	}
	for {
		sealed, err := s.sealNext(ctx, newest)
		if err != nil {
			return err
		}
		if sealed.Sequence == 0 {
			return s.show(ctx)
		}
		newest = witnessed(sealed)
	}
}

// cutDays cuts the sections of all days that have ended. The first ever is that of the day that ended last, and holds
// whatever was there before; when several days were missed, the earliest holds what they brought, so that a day's section
// always has all that was recorded on it.
func (s *Sealer) cutDays(ctx context.Context) error {
	now, err := s.time(ctx)
	if err != nil {
		return err
	}
	ended := ledger.DayOf(ledger.DayOf(now).Start().Add(-time.Hour))
	last, any, err := lastCut(ctx, s.cfg.DB)
	if err != nil {
		return err
	}
	day := ended
	if any {
		day = last.Day.Next()
	}
	if day > ended {
		return nil
	}
	end, err := endOfJournal(ctx, s.cfg.DB)
	if err != nil {
		s.cfg.Metrics.refused()
		return err
	}
	if end < last.UpToID {
		return fmt.Errorf("the journal ends at transaction %d, and its sections at %d: %w", end, last.UpToID, ErrBroken)
	}
	for ; day <= ended; day = day.Next() {
		err := s.exclusively(ctx, func(tx pgx.Tx) error { return writeSection(ctx, tx, day, end, now) })
		if postgres.Violates(err, "journal_sections_pkey") {
			return fmt.Errorf("cut the journal: %w", ErrBusy) // another instance was faster
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clocksMost is how far this machine's clock and the database's may lie apart for a day to be cut.
const clocksMost = time.Minute

// time is the earlier of two clocks, this machine's and the database's: a section cannot be cut again, so a day must have
// ended by both. Where they lie further apart than clocksMost one of them is wrong, and nothing is cut.
func (s *Sealer) time(ctx context.Context) (time.Time, error) {
	theirs, err := s.cfg.DatabaseNow(ctx)
	if err != nil {
		return time.Time{}, err
	}
	ours := s.cfg.Now()
	apart := ours.Sub(theirs)
	if apart.Abs() > clocksMost {
		s.cfg.Metrics.refused()
		return time.Time{}, fmt.Errorf("this machine's clock is %s ahead of the database's: %w", apart, ErrClocks)
	}
	if theirs.Before(ours) {
		ours = theirs
	}
	return ours.Truncate(time.Microsecond), nil
}

// databaseNow is the database's clock.
func (c Config) databaseNow(ctx context.Context) (now time.Time, err error) {
	if err := c.DB.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return now, fmt.Errorf("ask the database for the time: %w", err)
	}
	return now, nil
}

// exclusively runs fn in a transaction while no other instance cuts or seals.
func (s *Sealer) exclusively(ctx context.Context, fn func(pgx.Tx) error) error {
	return postgres.InTx(ctx, s.cfg.DB, func(tx pgx.Tx) error {
		var free bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, postgres.LockSeal).Scan(&free); err != nil {
			return fmt.Errorf("take turns to seal: %w", err)
		}
		if !free {
			return fmt.Errorf("another instance seals: %w", ErrBusy)
		}
		return fn(tx)
	})
}

// unsealed is a section without a head.
type unsealed struct {
	Day          ledger.Day `db:"day"`
	FromID       int64      `db:"from_id"`
	UpToID       int64      `db:"up_to_id"`
	Transactions int64      `db:"transactions"`
}

// sealNext seals the earliest section without a head, and returns the head; none when there is no such section. The witness is written after the commit,
// since one that knew a head which never came to be would raise an alarm for nothing; a crash in between is made up for
// by the next run.
func (s *Sealer) sealNext(ctx context.Context, newest Witnessed) (ledger.Head, error) {
	var sealed ledger.Head
	err := s.exclusively(ctx, func(tx pgx.Tx) error {
		sealed = ledger.Head{}
		next, err := nextUnsealed(ctx, tx)
		if err != nil || next == nil {
			return err
		}
		previous, err := ledger.LastHead(ctx, tx)
		if err != nil && !errors.Is(err, ledger.ErrNotSealed) {
			return err
		}
		if err := s.checkPrevious(previous, next, newest); err != nil {
			return err
		}
		head := ledger.Head{
			Sequence: previous.Sequence + 1, Day: next.Day, FromID: next.FromID, UpToID: next.UpToID,
			Previous: previous.Hash, SealedAt: s.cfg.Now().Truncate(time.Microsecond),
		}
		if err := addUp(ctx, tx, &head); err != nil {
			return fmt.Errorf("seal %s: %w", next.Day, err)
		}
		if head.Transactions != next.Transactions {
			return fmt.Errorf("the section of %s was cut with %d transactions and has %d: %w", next.Day, next.Transactions, head.Transactions, ErrBroken)
		}
		s.cfg.Key.sign(&head)
		b := &pgx.Batch{}
		ledger.QueueHead(b, head)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("seal %s: %w", next.Day, err)
		}
		sealed = head
		return nil
	})
	if err != nil || sealed.Sequence == 0 {
		return ledger.Head{}, err
	}
	if err := s.cfg.Witness.Append(sealed); err != nil {
		return ledger.Head{}, err
	}
	s.tell(ctx, sealed)
	return sealed, nil
}

// tell writes the head to the log: one more place outside the database.
func (s *Sealer) tell(ctx context.Context, h ledger.Head) {
	s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "journal sealed",
		slog.Int64("sequence", h.Sequence), slog.String("day", string(h.Day)), slog.String("hash", h.Hash.String()),
		slog.Int64("up_to_id", h.UpToID), slog.Int64("transactions", h.Transactions), slog.String("key_id", h.KeyID))
}

func nextUnsealed(ctx context.Context, tx pgx.Tx) (*unsealed, error) {
	rows, err := tx.Query(ctx, `
		SELECT to_char(s.day, 'YYYY-MM-DD') AS day, s.from_id, s.up_to_id, s.transactions
		FROM journal_sections s
		WHERE s.day > COALESCE((SELECT max(h.day) FROM journal_heads h), '-infinity')
		ORDER BY s.day
		LIMIT 1`)
	if err != nil {
		return nil, fmt.Errorf("look for a section to seal: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[unsealed])
	if err != nil {
		return nil, fmt.Errorf("look for a section to seal: %w", err)
	}
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // everything is sealed
	}
	return &found[0], nil
}

// checkPrevious refuses to build on a head that is not what it says, that nobody known has signed or witnessed, or that
// does not end where this section begins.
func (s *Sealer) checkPrevious(previous ledger.Head, next *unsealed, newest Witnessed) error {
	if previous.UpToID != next.FromID {
		return fmt.Errorf("the section of %s begins after transaction %d, the newest head ends at %d: %w", next.Day, next.FromID, previous.UpToID, ErrBroken)
	}
	if previous.Sequence == 0 {
		return nil
	}
	keys := s.keys
	if _, known := keys[previous.KeyID]; !known && witnessed(previous) == newest {
		keys = nil // what it says is what was seen when its key was known
	}
	if wrong := checkSignature(previous, keys); wrong != "" {
		return fmt.Errorf("head %d of %s: %s: %w", previous.Sequence, previous.Day, wrong, ErrBroken)
	}
	return nil
}

// pieceOf is how many transactions are held in memory at once while a section is added up.
const pieceOf = 8192

// addUp reads a section piece by piece on the transaction's own connection, keeps its marks, and fills the head.
func addUp(ctx context.Context, tx pgx.Tx, head *ledger.Head) error {
	sum := newSection(head.FromID)
	part := 0
	sum.keep = func(marks []byte) error {
		part++
		_, err := tx.Exec(ctx, `INSERT INTO journal_marks (sequence, part, marks) VALUES (@sequence, @part, @marks)`,
			pgx.StrictNamedArgs{"sequence": head.Sequence, "part": part, "marks": bytes.Clone(marks)})
		if err != nil {
			return fmt.Errorf("keep the marks: %w", err)
		}
		return nil
	}
	err := eachOf(ctx, tx, head.FromID, head.UpToID, sum.add)
	if stray, isStray := errors.AsType[orphan](err); isStray {
		return fmt.Errorf("%w: %w", stray, ErrBroken)
	}
	if err != nil {
		return err
	}
	return sum.fill(head)
}

// eachOf hands over the transactions with ids above from, up to and with upTo, in order.
func eachOf(ctx context.Context, tx pgx.Tx, from, upTo int64, fn func(*ledger.JournalTransaction) error) error {
	var transactions, entries bytes.Buffer
	for from < upTo {
		var last *int64
		err := tx.QueryRow(ctx, `
			SELECT max(transaction_id)
			FROM (SELECT transaction_id FROM journal_transactions
				WHERE transaction_id > @from AND transaction_id <= @up_to
				ORDER BY transaction_id
				LIMIT @piece) piece`,
			pgx.StrictNamedArgs{"from": from, "up_to": upTo, "piece": pieceOf}).Scan(&last)
		if err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
		piece := upTo
		if last != nil {
			piece = *last
		}
		var j journal
		within := fmt.Sprintf(` WHERE transaction_id > %d AND transaction_id <= %d ORDER BY transaction_id`, from, piece)
		conn := tx.Conn().PgConn()
		if j.transactions, err = copyWhole(ctx, conn, &transactions, `SELECT `+transactionColumns+` FROM journal_transactions`+within); err != nil {
			return err
		}
		if j.entries, err = copyWhole(ctx, conn, &entries, `SELECT `+entryColumns+` FROM journal_entries`+within+`, line`); err != nil {
			return err
		}
		if err := j.each(fn); err != nil {
			return err
		}
		from = piece
	}
	return nil
}

// show exports up to where the journal is sealed.
func (s *Sealer) show(ctx context.Context) error {
	h, err := ledger.LastHead(ctx, s.cfg.DB)
	if errors.Is(err, ledger.ErrNotSealed) {
		return nil
	}
	if err != nil {
		return err
	}
	s.cfg.Metrics.sealedUntil(h.Day.End())
	return nil
}
