package people

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"daesa/internal/postgres"
)

// Errors of coming in with a key.
var (
	// ErrKey means that a token is no key that lets in.
	ErrKey = errors.New("the key is not known, or lets in no more")
	// ErrKeysUnread means that the keys cannot be read at present, so that nobody knows who may come in.
	ErrKeysUnread = errors.New("the API keys cannot be read at present")
)

// How the keyring keeps up with the database. What one instance revokes, every instance lets in for keysMost at most.
const (
	keysMost  = 30 * time.Second // older than this, what was read lets nobody in
	keysEvery = 10 * time.Second // read again meanwhile, so that requests need not
	keysAnew  = time.Second      // a key that is not known may have been made since: looked for this often, however many come with one
	keysWait  = 3 * time.Second  // for the database
	usedEvery = time.Minute      // when a key was last used is written this often
)

// KeyringConfig is what a keyring needs.
type KeyringConfig struct {
	DB  *pgxpool.Pool
	Log *slog.Logger
	Now func() time.Time
}

// Keyring lets in by the keys in the database, of which it has all in memory: there are a few dozen. So a request costs no
// statement, and a stranger who makes keys up reaches no database. Use one for each instance.
type Keyring struct {
	db      *pgxpool.Pool
	log     *slog.Logger
	now     func() time.Time
	known   atomic.Pointer[knownKeys]
	reading singleflight.Group

	mu   sync.Mutex
	used map[int64]time.Time // not written yet
}

// knownKeys are the keys as they were at a moment.
type knownKeys struct {
	at       time.Time // before they were read
	byDigest map[[sha256.Size]byte]Key
}

// NewKeyring makes a Keyring.
func NewKeyring(cfg KeyringConfig) (*Keyring, error) {
	if cfg.DB == nil || cfg.Log == nil || cfg.Now == nil {
		return nil, errors.New("people: DB, Log and Now are required of a keyring")
	}
	return &Keyring{db: cfg.DB, log: cfg.Log, now: cfg.Now, used: make(map[int64]time.Time)}, nil
}

// Find is the key that a token is. It is looked up by its digest, so that the time this takes tells nothing of any key.
// ErrKey, ErrKeysUnread.
func (r *Keyring) Find(ctx context.Context, token string) (Key, error) {
	if !keyForm.MatchString(token) {
		return Key{}, ErrKey
	}
	digest, now := sha256.Sum256([]byte(token)), r.now()
	for _, most := range []time.Duration{keysMost, keysAnew} {
		known, err := r.keys(ctx, now, most)
		if err != nil {
			return Key{}, err
		}
		key, ok := known.byDigest[digest]
		switch {
		case !ok:
			continue
		case !key.Lets(now):
			return Key{}, ErrKey
		}
		r.mark(key.ID, now)
		return key, nil
	}
	return Key{}, ErrKey
}

// keys are the keys as they were at most so long ago.
func (r *Keyring) keys(ctx context.Context, now time.Time, most time.Duration) (*knownKeys, error) {
	if known := r.known.Load(); known != nil {
		if age := now.Sub(known.at); age >= 0 && age < most {
			return known, nil
		}
	}
	read, err, _ := r.reading.Do("", func() (any, error) { return r.read(context.WithoutCancel(ctx)) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysUnread, err)
	}
	return read.(*knownKeys), nil //nolint:forcetypeassert // what read returns
}

// read reads the keys that let in, for all who wait for them.
func (r *Keyring) read(ctx context.Context) (*knownKeys, error) {
	ctx, stop := context.WithTimeout(ctx, keysWait)
	defer stop()
	type row struct {
		Key

		Digest []byte `db:"digest"`
	}
	known := &knownKeys{at: r.now(), byDigest: make(map[[sha256.Size]byte]Key)}
	rows, err := postgres.Collect[row](ctx, r.db, "the API keys", `
		SELECT `+keyColumns+`, digest
		FROM api_keys
		WHERE revoked_at IS NULL AND (ends_at IS NULL OR ends_at > @now)`, pgx.StrictNamedArgs{"now": known.at})
	if err != nil {
		return nil, err
	}
	for _, k := range rows {
		known.byDigest[[sha256.Size]byte(k.Digest)] = k.Key
	}
	r.known.Store(known)
	return known, nil
}

func (r *Keyring) mark(id int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used[id] = now
}

// Run reads the keys again before requests have to, and writes when they were last used, until ctx ends.
func (r *Keyring) Run(ctx context.Context) {
	tick, written := time.NewTicker(keysEvery), r.now()
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := r.now()
		if _, err := r.keys(ctx, now, keysEvery/2); err != nil {
			r.log.LogAttrs(ctx, slog.LevelWarn, "API keys not read again", slog.Any("error", err))
		}
		if now.Sub(written) >= usedEvery {
			r.writeUsed(ctx)
			written = now
		}
	}
}

// Rest writes what is not written yet, when nobody comes in any more.
func (r *Keyring) Rest() { r.writeUsed(context.Background()) }

// writeUsed writes when keys were last used. What cannot be written waits for the next time.
func (r *Keyring) writeUsed(ctx context.Context) {
	if err := r.WriteUsed(ctx); err != nil {
		r.log.LogAttrs(ctx, slog.LevelWarn, "last use of API keys not written", slog.Any("error", err))
	}
}

// WriteUsed writes when keys were last used, each at most once a minute, however many instances there are.
func (r *Keyring) WriteUsed(ctx context.Context) error {
	r.mu.Lock()
	used := maps.Clone(r.used)
	r.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, keysWait)
	defer stop()
	ids := slices.Sorted(maps.Keys(used)) // in order, so that two instances do not wait for each other
	at := make([]time.Time, len(ids))
	for i, id := range ids {
		at[i] = used[id]
	}
	_, err := r.db.Exec(ctx, `
		UPDATE api_keys k SET last_used_at = u.at
		FROM unnest(@ids::bigint[], @at::timestamptz[]) AS u (key_id, at)
		WHERE k.key_id = u.key_id AND (k.last_used_at IS NULL OR k.last_used_at <= u.at - @every::interval)`,
		pgx.StrictNamedArgs{"ids": ids, "at": at, "every": usedEvery})
	if err != nil {
		return fmt.Errorf("write when API keys were last used: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.used, func(id int64, last time.Time) bool { return last.Equal(used[id]) })
	return nil
}
