package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
)

// Errors of API keys.
var (
	// ErrNoKey means that no key that lets in has the name, or the prefix.
	ErrNoKey = errors.New("there is no such key that still lets in")
	// ErrKeyTaken means that the name has a key already, which is rotated rather than made again.
	ErrKeyTaken = errors.New("there is a key of this name; rotate or revoke it")
	// ErrGrace reports a grace that is not one.
	ErrGrace = errors.New("an old key lets in for at most 30 days more")
)

// graceMost is how long a key may go on letting in after another took its place. One that never ends is two keys.
const graceMost = 30 * 24 * time.Hour

// Key is one secret of one of the merchant's servers, without the secret.
type Key struct {
	ID       int64      `db:"key_id"`
	Name     string     `db:"name"`
	Prefix   string     `db:"prefix"` // how it begins; no secret
	Scopes   []Scope    `db:"scopes"`
	Made     time.Time  `db:"made_at"`
	By       By         `db:"made_by"`
	Ends     *time.Time `db:"ends_at"` // another took its place
	Revoked  *time.Time `db:"revoked_at"`
	LastUsed *time.Time `db:"last_used_at"`
}

const keyColumns = `key_id, name, prefix, scopes, made_at, made_by, ends_at, revoked_at, last_used_at`

// Lets reports whether the key lets in at a moment.
func (k Key) Lets(at time.Time) bool {
	return k.Revoked == nil && (k.Ends == nil || at.Before(*k.Ends))
}

// For reports whether the key is for a scope.
func (k Key) For(scope string) bool { return slices.Contains(k.Scopes, Scope(scope)) }

// Of a key as it is written: daesa_, eight letters and digits that say which one it is, and the secret.
const (
	keyBegin       = "daesa_"
	keyMarkBytes   = 5
	keySecretBytes = 32
)

var keyForm = regexp.MustCompile(`^daesa_[a-z2-7]{8}_[a-z2-7]{52}$`)

// newKey makes up a key of 256 random bits. Nothing can be guessed of one, so a plain SHA-256 keeps it as well as a slow
// hash would, and costs a request nothing.
func newKey() (token, prefix string) {
	random := make([]byte, keyMarkBytes+keySecretBytes)
	_, _ = rand.Read(random) // it never fails
	write := func(raw []byte) string {
		return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw))
	}
	prefix = keyBegin + write(random[:keyMarkBytes])
	return prefix + "_" + write(random[keyMarkBytes:]), prefix
}

// Keys are the API keys in the database, for whoever looks after them. [Keyring] lets in by them.
type Keys struct {
	db  *pgxpool.Pool
	now func() time.Time
}

// NewKeys makes Keys.
func NewKeys(db *pgxpool.Pool, now func() time.Time) *Keys { return &Keys{db: db, now: now} }

// Add makes a key and returns it as it is to be sent. It cannot be read again. ErrName, ErrScope, ErrKeyTaken.
func (k *Keys) Add(ctx context.Context, by By, name string, scopes []Scope) (token string, err error) {
	if !nameForm.MatchString(name) {
		return "", fmt.Errorf("%.40q: %w", name, ErrName)
	}
	if len(scopes) == 0 {
		return "", ErrScope
	}
	token, prefix := newKey()
	deed := Deed{By: by, Action: ActionKeyMade, Subject: name, Detail: prefix + " " + FormatScopes(scopes), At: k.now()}
	err = write(ctx, k.db, deed, func(tx pgx.Tx) error { return insertKey(ctx, tx, deed, name, token, prefix, scopes) })
	if postgres.Violates(err, "api_keys_one_is_current") {
		return "", fmt.Errorf("%s: %w", name, ErrKeyTaken)
	}
	return token, err
}

func insertKey(ctx context.Context, tx pgx.Tx, d Deed, name, token, prefix string, scopes []Scope) error {
	digest := sha256.Sum256([]byte(token))
	_, err := tx.Exec(ctx, `
		INSERT INTO api_keys (name, prefix, digest, scopes, made_at, made_by)
		VALUES (@name, @prefix, @digest, @scopes, @now, @by)`,
		pgx.StrictNamedArgs{"name": name, "prefix": prefix, "digest": digest[:], "scopes": scopes, "now": d.At, "by": d.By})
	if err != nil {
		return fmt.Errorf("make the key %s: %w", name, err)
	}
	return nil
}

// Rotate makes another key of the same name and scopes, and returns it. The one before lets in for as long as the grace.
// Those of earlier rotations end when they were to. ErrNoKey, ErrGrace.
func (k *Keys) Rotate(ctx context.Context, by By, name string, grace time.Duration) (token string, err error) {
	if grace < 0 || grace > graceMost {
		return "", ErrGrace
	}
	token, prefix := newKey()
	now := k.now()
	ends := now.Add(grace)
	deed := Deed{
		By: by, Action: ActionKeyRotated, Subject: name, At: now,
		Detail: fmt.Sprintf("%s; the one before ends %s", prefix, ends.UTC().Format(time.RFC3339)),
	}
	return token, write(ctx, k.db, deed, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			UPDATE api_keys SET ends_at = @ends
			WHERE lower(name) = lower(@name) AND ends_at IS NULL AND revoked_at IS NULL
			RETURNING `+keyColumns,
			pgx.StrictNamedArgs{"name": name, "ends": ends})
		if err != nil {
			return fmt.Errorf("end the key %s: %w", name, err)
		}
		before, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Key])
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%.40q: %w", name, ErrNoKey)
		}
		if err != nil {
			return fmt.Errorf("end the key %s: %w", name, err)
		}
		return insertKey(ctx, tx, deed, before.Name, token, prefix, before.Scopes)
	})
}

// Revoke lets every key of a name in no more, or only the one that begins with a prefix, and returns how they begin. ErrNoKey.
func (k *Keys) Revoke(ctx context.Context, by By, name, prefix string) (revoked []string, err error) {
	now := k.now()
	err = postgres.InTx(ctx, k.db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			UPDATE api_keys SET revoked_at = @now
			WHERE lower(name) = lower(@name) AND (@prefix = '' OR prefix = @prefix)
				AND revoked_at IS NULL AND (ends_at IS NULL OR ends_at > @now)
			RETURNING prefix`,
			pgx.StrictNamedArgs{"name": name, "prefix": prefix, "now": now})
		if err != nil {
			return fmt.Errorf("revoke the key %s: %w", name, err)
		}
		if revoked, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return fmt.Errorf("revoke the key %s: %w", name, err)
		}
		if len(revoked) == 0 {
			return fmt.Errorf("%.40q: %w", name, ErrNoKey)
		}
		slices.Sort(revoked)
		return note(ctx, tx, Deed{At: now, By: by, Action: ActionKeyRevoked, Subject: name, Detail: strings.Join(revoked, " ")})
	})
	return revoked, err
}

// List reads all keys, by name, the newest of each first.
func (k *Keys) List(ctx context.Context) ([]Key, error) {
	return postgres.Collect[Key](ctx, k.db, "the API keys", `SELECT `+keyColumns+` FROM api_keys ORDER BY lower(name), key_id DESC`)
}
