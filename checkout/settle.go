package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"daesa/checkout/store"
	"daesa/internal/postgres"
	"daesa/ledger"
)

// StoreQueue is the queue of what follows from the store's acceptances.
const StoreQueue = "store"

// SettleAcceptancesArgs wakes the settler.
type SettleAcceptancesArgs struct{}

// Kind names the job.
func (SettleAcceptancesArgs) Kind() string { return "settle_acceptances" }

// InsertOpts keeps ticks from piling up behind one that takes long. Finished ones do not stand in the way.
func (SettleAcceptancesArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{
		ByPeriod: time.Minute,
		ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled,
		},
	}}
}

// SettlerConfig is what a Settler needs.
type SettlerConfig struct {
	DB      *pgxpool.Pool
	Notices *Notices
	Store   Store // nil = none is configured; then nobody can be told of a release
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// Settler follows the payments of the store's acceptances: it keeps those that took the money, releases those that came to
// nothing, and tells the merchant where somebody has to look.
//
// What is due and since when is in the rows. A job only wakes it, so one that is lost, doubled or late costs time and
// nothing else, and a crash between any two statements leaves a row that comes due again. The store hears of a release at
// least once.
type Settler struct {
	river.WorkerDefaults[SettleAcceptancesArgs]

	cfg SettlerConfig
}

// NewSettler makes a Settler.
func NewSettler(cfg SettlerConfig) (*Settler, error) {
	if cfg.DB == nil || cfg.Notices == nil || cfg.Metrics == nil || cfg.Log == nil || cfg.Now == nil {
		return nil, errors.New("checkout: Settler needs DB, Notices, Metrics, Log and Now")
	}
	return &Settler{cfg: cfg}, nil
}

const (
	settleBatch = 100
	// settleFor is how long one job goes on taking rows; the next one goes on where it stopped.
	settleFor = 20 * time.Second
	// releaseLease is for how long rows in hand are out of others' reach: past the longest time that a batch takes.
	releaseLease = 2 * time.Minute
)

// Work settles what is due.
func (s *Settler) Work(ctx context.Context, _ *river.Job[SettleAcceptancesArgs]) error {
	until := s.cfg.Now().Add(settleFor)
	return s.settle(ctx, func() bool { return ctx.Err() == nil && s.cfg.Now().Before(until) })
}

// Settle settles everything that is due now.
func (s *Settler) Settle(ctx context.Context) error {
	return s.settle(ctx, func() bool { return ctx.Err() == nil })
}

func (s *Settler) settle(ctx context.Context, more func() bool) error {
	for more() {
		t, err := s.take(ctx)
		if err != nil {
			return err
		}
		if err := s.release(ctx, t.owed, more); err != nil {
			return err
		}
		if t.rows < settleBatch {
			break
		}
	}
	return s.count(ctx)
}

type acceptanceRow struct {
	ID         string          `db:"acceptance_id"`
	OrderID    string          `db:"order_id"`
	PaymentKey string          `db:"payment_key"`
	Attempt    int             `db:"attempt"`
	Currency   ledger.Currency `db:"currency"`
	Amount     int64           `db:"amount"`
	State      acceptanceState `db:"state"`
	Word       store.Word      `db:"word"`
	Sent       bool            `db:"sent"`
	AskedAt    time.Time       `db:"asked_at"`
	OwedAt     *time.Time      `db:"owed_at"`
	EndedAt    *time.Time      `db:"ended_at"`
	Told       bool            `db:"told"`
	Releases   int             `db:"releases"`

	Status         *ledger.Status `db:"status"`
	PaymentAttempt *int           `db:"payment_attempt"`
	Took           *bool          `db:"took"`
}

func (r acceptanceRow) question() question {
	q := question{
		state: r.State, word: r.Word, sent: r.Sent, attempt: r.Attempt, askedAt: r.AskedAt, owedAt: postgres.Time(r.OwedAt),
		endedAt: postgres.Time(r.EndedAt), told: r.Told, releases: r.Releases,
	}
	if r.Status != nil {
		q.payment = &paymentNow{status: *r.Status, attempt: *r.PaymentAttempt, took: *r.Took}
	}
	return q
}

func (r acceptanceRow) acceptance() store.Acceptance {
	return store.Acceptance{ID: r.ID, OrderID: r.OrderID, Amount: ledger.Money{Minor: r.Amount, Currency: r.Currency}}
}

// taken is what was decided about rows that were due.
type taken struct {
	rows    int
	owed    []acceptanceRow // whose release is to be sent
	tell    []ledger.Announcement
	checks  []checkReason
	givenUp int
}

// take decides about rows that are due, in one transaction, and returns those whose release is to be sent; these it puts
// out of others' reach. A payment is read as it stands, without its lock: what changes right afterwards is seen at the next
// look.
func (s *Settler) take(ctx context.Context) (t taken, err error) {
	err = postgres.InTx(ctx, s.cfg.DB, func(tx pgx.Tx) error {
		t = taken{} // of an earlier try of the same transaction
		now := s.cfg.Now()
		rows, err := tx.Query(ctx, `
			SELECT a.acceptance_id, a.order_id, a.payment_key, COALESCE(a.attempt, 0) AS attempt, a.currency, a.amount, a.state,
				a.word, a.sent, a.asked_at, a.owed_at, a.ended_at, a.told_at IS NOT NULL AS told, a.releases,
				p.status, p.attempt AS payment_attempt, p.captured > 0 AND NOT p.surplus AS took
			FROM acceptances a
			LEFT JOIN payments p ON p.payment_key = a.payment_key
			WHERE a.due_at <= @now
			ORDER BY a.due_at
			LIMIT @limit
			FOR UPDATE OF a SKIP LOCKED`, pgx.StrictNamedArgs{"now": now, "limit": settleBatch})
		if err != nil {
			return fmt.Errorf("take acceptances: %w", err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[acceptanceRow])
		if err != nil {
			return fmt.Errorf("take acceptances: %w", err)
		}
		if len(found) == 0 {
			return nil
		}
		b := &pgx.Batch{}
		for _, r := range found {
			f := decideFate(r.question(), now)
			t.add(r, &f, now)
			queueFate(b, r, f, now)
		}
		for _, a := range t.tell {
			ledger.QueueAnnouncement(b, a, now)
		}
		if err := s.cfg.Notices.Notify(ctx, b, t.tell); err != nil {
			return err
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("settle acceptances: %w", err)
		}
		return nil
	})
	if err != nil {
		return taken{}, err
	}
	for _, reason := range t.checks {
		s.cfg.Metrics.check(reason)
	}
	for range t.givenUp {
		s.cfg.Metrics.released(releaseGivenUp)
	}
	return t, nil
}

// add notes what a fate asks for.
func (t *taken) add(r acceptanceRow, f *fate, now time.Time) {
	t.rows++
	if f.send {
		f.due = now.Add(releaseLease)
		t.owed = append(t.owed, r)
	}
	if f.tell != "" {
		t.tell = append(t.tell, r.check(f.tell, now))
		t.checks = append(t.checks, f.tell)
	}
	if f.state == acceptanceGivenUp && r.State != acceptanceGivenUp {
		t.givenUp++
	}
}

// queueFate writes what was decided about a row that is locked.
func queueFate(b *pgx.Batch, r acceptanceRow, f fate, now time.Time) {
	b.Queue(`
		UPDATE acceptances
		SET state = @state, due_at = @due_at,
			owed_at = CASE WHEN @state = 'releasing' THEN COALESCE(owed_at, @now) ELSE owed_at END,
			ended_at = CASE WHEN @open THEN NULL ELSE COALESCE(ended_at, @now) END,
			told_at = CASE WHEN @tell THEN @now ELSE told_at END
		WHERE acceptance_id = @acceptance_id`,
		pgx.StrictNamedArgs{
			"acceptance_id": r.ID, "state": f.state, "due_at": postgres.NullTime(f.due), "now": now, "open": f.state.open(),
			"tell": f.tell != "",
		})
}

// check is the event by which the merchant hears that somebody has to look at an order.
func (r acceptanceRow) check(reason checkReason, now time.Time) ledger.Announcement {
	a := r.acceptance()
	return ledger.NewAnnouncement(ledger.EventStoreCheck, ledger.AudienceMerchant, r.OrderID, r.PaymentKey, r.ID+" "+string(reason),
		map[string]any{
			"order_id": r.OrderID, "payment_key": r.PaymentKey, "amount": a.Amount.Decimal(), "currency": a.Amount.Currency,
			"acceptance_id": r.ID, "reason": reason, "occurred_at": now.UTC(),
		}, now)
}

// errNoStore is the answer to a release when no store is configured any more.
var errNoStore = errors.New("no store is configured")

// release tells the store of the rows in hand, a few at a time. When one is not heard it is enough for now: the others
// would fare the same, and the store has enough to do.
func (s *Settler) release(ctx context.Context, owed []acceptanceRow, more func() bool) error {
	for n := 0; n < len(owed); n += store.ReleasesAtOnce {
		if n > 0 && !more() && ctx.Err() == nil {
			return s.handBack(ctx, owed[n:], 0)
		}
		few := owed[n:min(n+store.ReleasesAtOnce, len(owed))]
		failures := s.send(ctx, few)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was we who stopped: the lease brings the rows back
		}
		failed := false
		var busy []acceptanceRow
		for i, r := range few {
			if errors.Is(failures[i], store.ErrBusy) {
				busy = append(busy, r)
				continue
			}
			failed = failed || failures[i] != nil
			if err := s.note(ctx, r, failures[i]); err != nil {
				return err
			}
		}
		if err := s.handBack(ctx, busy, time.Second); err != nil {
			return err
		}
		if failed {
			return s.handBack(ctx, owed[n+len(few):], releaseFirst)
		}
	}
	return nil
}

// send tells the store of a few rows at once.
func (s *Settler) send(ctx context.Context, rows []acceptanceRow) []error {
	failures := make([]error, len(rows))
	var group sync.WaitGroup
	for n, r := range rows {
		group.Go(func() {
			failures[n] = errNoStore
			if s.cfg.Store != nil {
				failures[n] = s.cfg.Store.Release(ctx, r.acceptance())
			}
		})
	}
	group.Wait()
	return failures
}

// note writes what came of an attempt to release.
func (s *Settler) note(ctx context.Context, r acceptanceRow, failure error) error {
	now := s.cfg.Now()
	f, answer, came := heardFate(r.question(), now), "heard", releaseHeard
	if failure != nil {
		f = fate{state: acceptanceReleasing, due: nextRelease(r.Releases, now)}
		answer, came = failure.Error(), releaseFailed
	}
	s.cfg.Metrics.released(came)
	_, err := s.cfg.DB.Exec(ctx, `
		UPDATE acceptances
		SET state = @state, due_at = @due_at, releases = releases + 1, last_answer = left(@answer, 200),
			ended_at = CASE WHEN @open THEN NULL ELSE @now::timestamptz END
		WHERE acceptance_id = @acceptance_id AND state = 'releasing'`,
		pgx.StrictNamedArgs{
			"acceptance_id": r.ID, "state": f.state, "due_at": postgres.NullTime(f.due), "answer": answer, "open": f.state.open(),
			"now": now,
		})
	if err != nil {
		return fmt.Errorf("note the release of acceptance %s: %w", r.ID, err)
	}
	return nil
}

// handBack lets rows that were taken in vain come due after a while.
func (s *Settler) handBack(ctx context.Context, rows []acceptanceRow, after time.Duration) error {
	ids := make([]string, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := s.cfg.DB.Exec(ctx, `
		UPDATE acceptances SET due_at = @due_at WHERE acceptance_id = ANY (@ids) AND state = 'releasing'`,
		pgx.StrictNamedArgs{"ids": ids, "due_at": s.cfg.Now().Add(after)})
	if err != nil {
		return fmt.Errorf("hand %d releases back: %w", len(ids), err)
	}
	return nil
}

// count exports what is open and how old the oldest release is.
func (s *Settler) count(ctx context.Context) error {
	type open struct {
		State acceptanceState `db:"state"`
		Count int64           `db:"count"`
		Owed  *time.Time      `db:"owed"`
	}
	rows, err := s.cfg.DB.Query(ctx, `
		SELECT state, count(*) AS count, min(owed_at) AS owed
		FROM acceptances
		WHERE state IN ('asking', 'held', 'releasing')
		GROUP BY state`)
	if err != nil {
		return fmt.Errorf("count acceptances: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[open])
	if err != nil {
		return fmt.Errorf("count acceptances: %w", err)
	}
	counts := make(map[acceptanceState]int64)
	var oldest time.Duration
	for _, o := range found {
		counts[o.State] = o.Count
		if o.State == acceptanceReleasing && o.Owed != nil {
			oldest = s.cfg.Now().Sub(*o.Owed)
		}
	}
	s.cfg.Metrics.acceptancesOpen(counts, oldest)
	return nil
}
