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

	Key     *Key    // nil: no heads
	Witness Witness // where each head is also written
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
type Sealer struct{ cfg Config }

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Sealer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Metrics.configured(cfg.Key != nil)
	return &Sealer{cfg: cfg}, nil
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
	if s.cfg.Key != nil {
		if err := s.checkWitness(ctx); err != nil {
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
		sealed, err := s.sealNext(ctx)
		if err != nil {
			return err
		}
		if !sealed {
			return s.show(ctx)
		}
	}
}

// cutDays cuts the sections of all days that have ended. The first ever is that of the day that ended last, and holds
// whatever was there before; when several days were missed, the earliest holds what they brought, so that a day's section
// always has all that was recorded on it.
func (s *Sealer) cutDays(ctx context.Context) error {
	now := s.cfg.Now().Truncate(time.Microsecond)
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

// sealNext seals the earliest section without a head; false when there is none. The witness is written after the commit,
// since one that knew a head which never came to be would raise an alarm for nothing; a crash in between is made up for
// by the next run.
func (s *Sealer) sealNext(ctx context.Context) (bool, error) {
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
		if err := s.checkPrevious(previous, next); err != nil {
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
		return false, err
	}
	if err := s.cfg.Witness.Append(sealed); err != nil {
		return false, err
	}
	s.tell(ctx, sealed)
	return true, nil
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

// checkPrevious refuses to build on a head that is not what it says, or not where this section begins.
func (s *Sealer) checkPrevious(previous ledger.Head, next *unsealed) error {
	if previous.UpToID != next.FromID {
		return fmt.Errorf("the section of %s begins after transaction %d, the newest head ends at %d: %w", next.Day, next.FromID, previous.UpToID, ErrBroken)
	}
	if previous.Sequence == 0 {
		return nil
	}
	keys := map[string]ed25519.PublicKey{s.cfg.Key.ID(): s.cfg.Key.Public()}
	if previous.KeyID != s.cfg.Key.ID() {
		keys = nil // sealed before the key was changed; daesa verify has both
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

// checkWitness holds the newest head that the witness knows against the database, and writes down the heads that other
// instances have made since, each proven to follow.
func (s *Sealer) checkWitness(ctx context.Context) error {
	known, err := s.cfg.Witness.Read()
	if err != nil {
		return err
	}
	var newest Witnessed
	if len(known) > 0 {
		newest = known[len(known)-1]
		heads, err := ledger.HeadsAfter(ctx, s.cfg.DB, newest.Sequence-1, 1)
		if err != nil {
			return err
		}
		if len(heads) == 0 || heads[0].Sequence != newest.Sequence || heads[0].Hash != newest.Hash || heads[0].Digest() != newest.Hash {
			return fmt.Errorf("head %d of %s was witnessed and is not in the database: %w", newest.Sequence, newest.Day, ErrBroken)
		}
	}
	return s.catchUp(ctx, newest)
}

// catchUp adds to the witness what follows its newest head.
func (s *Sealer) catchUp(ctx context.Context, newest Witnessed) error {
	for {
		heads, err := ledger.HeadsAfter(ctx, s.cfg.DB, newest.Sequence, 100)
		if err != nil || len(heads) == 0 {
			return err
		}
		for _, h := range heads {
			keys := map[string]ed25519.PublicKey{s.cfg.Key.ID(): s.cfg.Key.Public()}
			if h.KeyID != s.cfg.Key.ID() {
				keys = nil
			}
			wrong := checkSignature(h, keys)
			if h.Sequence != newest.Sequence+1 || h.Previous != newest.Hash {
				wrong = "it does not follow the one before"
			}
			if wrong != "" {
				return fmt.Errorf("head %d of %s: %s: %w", h.Sequence, h.Day, wrong, ErrBroken)
			}
			if err := s.cfg.Witness.Append(h); err != nil {
				return err
			}
			newest = Witnessed{Sequence: h.Sequence, Day: h.Day, Hash: h.Hash}
		}
	}
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
