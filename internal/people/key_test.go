package people

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/internal/postgres/postgrestest"
)

// keys are the keys of one database, and a keyring over another connection that counts what it asks.
type keysBench struct {
	*testing.T
	*Keys

	ring  *Keyring
	clock *clock
	asked *asked
	log   *bytes.Buffer
}

// asked counts statements.
type asked struct {
	mu sync.Mutex
	n  int
}

// TraceQueryStart counts one.
func (a *asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	return ctx
}

// TraceQueryEnd does nothing.
func (*asked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// since is how many statements there were since the last time.
func (a *asked) since() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.n
	a.n = 0
	return n
}

func newKeysBench(t *testing.T) *keysBench {
	t.Helper()
	url := postgrestest.NewURL(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 4, ApplicationName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	b := &keysBench{T: t, clock: &clock{at: time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)}, asked: &asked{}, log: &bytes.Buffer{}}
	b.Keys = NewKeys(db, b.clock.now)
	cfg := db.Config()
	cfg.ConnConfig.Tracer = b.asked
	own, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	b.ring, err = NewKeyring(KeyringConfig{DB: own, Log: slog.New(slog.NewTextHandler(b.log, nil)), Now: b.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *keysBench) add(name string, scopes ...Scope) string {
	b.Helper()
	token, err := b.Add(b.Context(), "os:root", name, scopes)
	if err != nil {
		b.Fatal(err)
	}
	return token
}

// lets requires that a token lets in, or does not.
func (b *keysBench) lets(what, token string, want bool) Key {
	b.Helper()
	key, err := b.ring.Find(b.Context(), token)
	if err != nil && !errors.Is(err, ErrKey) {
		b.Fatalf("%s: %v", what, err)
	}
	if got := err == nil; got != want {
		b.Errorf("%s lets in: %t, want %t", what, got, want)
	}
	return key
}

func TestKeyring_RequestsAskNothing(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	token := b.add("shop", ScopeMoney, ScopeRead)
	if key := b.lets("a new key", token, true); key.Name != "shop" || FormatScopes(key.Scopes) != "money,read" || !strings.HasPrefix(token, key.Prefix+"_") {
		t.Errorf("got %+v of %s", key, token[:14])
	}
	b.asked.since()
	b.clock.pass(keysMost - time.Nanosecond)
	for range 100 {
		b.lets("the key", token, true)
	}
	if got := b.asked.since(); got != 0 {
		t.Errorf("100 requests asked the database %d times", got)
	}
	b.clock.pass(time.Nanosecond)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { _, _ = b.ring.Find(b.Context(), token) })
	}
	all.Wait()
	if got := b.asked.since(); got == 0 || got > 20 {
		t.Errorf("after %s the database was asked %d times", keysMost, got)
	}
}

func TestKeyring_StrangersReachNoDatabase(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	token := b.add("shop", ScopeRead)
	b.lets("the key", token, true)
	b.asked.since()
	for range 50 {
		made, _ := newKey()
		b.lets("a key made up", made, false)
	}
	for _, text := range []string{"", "daesa_", token[:len(token)-1], token + "a", strings.ToUpper(token), " " + token, token + "\n"} {
		b.lets("something else", text, false)
	}
	if got := b.asked.since(); got != 0 {
		t.Errorf("strangers asked the database %d times", got)
	}
	b.clock.pass(keysAnew)
	fresh := b.add("erp", ScopeRead)
	b.lets("a key that was made since", fresh, true)
	if got := b.asked.since(); got != 1 {
		t.Errorf("the database was asked %d times, want once", got)
	}
}

func TestKeys_RevokedIsOutAfterHalfAMinute(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	token, other := b.add("shop", ScopeRead), b.add("erp", ScopeRead)
	b.lets("the key", token, true)
	revoked, err := b.Revoke(t.Context(), "os:root", "SHOP", "")
	if err != nil || len(revoked) != 1 || !strings.HasPrefix(token, revoked[0]) {
		t.Fatalf("got %v, %v", revoked, err)
	}
	b.clock.pass(keysMost)
	b.lets("a revoked key", token, false)
	b.lets("another", other, true)
	if _, err := b.Revoke(t.Context(), "os:root", "shop", ""); !errors.Is(err, ErrNoKey) {
		t.Errorf("revoked once more: %v", err)
	}
	b.lets("made again", b.addAfter(keysAnew, "shop", ScopeRead), true)
}

func (b *keysBench) addAfter(d time.Duration, name string, scopes ...Scope) string {
	b.Helper()
	b.clock.pass(d)
	return b.add(name, scopes...)
}

func TestKeys_RotateLetsBothInForTheGrace(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	first := b.add("shop", ScopeMoney)
	second, err := b.Rotate(t.Context(), "os:root", "Shop", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b.lets("the key before", first, true)
	if key := b.lets("the new key", second, true); key.Name != "shop" || FormatScopes(key.Scopes) != "money" {
		t.Errorf("the new key is %+v", key)
	}
	b.clock.pass(time.Hour - keysMost)
	third, err := b.Rotate(t.Context(), "os:root", "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	b.clock.pass(keysMost - time.Nanosecond)
	b.lets("the first, before its end", first, true)
	b.lets("the second, which had no grace", second, false)
	b.clock.pass(time.Nanosecond) // the keyring has read it as one that lets in
	b.lets("the first, at its end", first, false)
	b.lets("the third", third, true)
	for _, grace := range []time.Duration{-1, graceMost + 1} {
		if _, err := b.Rotate(t.Context(), "os:root", "shop", grace); !errors.Is(err, ErrGrace) {
			t.Errorf("a grace of %s: %v", grace, err)
		}
	}
}

func TestKeys_RevokeOneOfTwo(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	first := b.add("shop", ScopeMoney)
	second, err := b.Rotate(t.Context(), "os:root", "shop", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Revoke(t.Context(), "os:root", "shop", first[:14]); err != nil {
		t.Fatal(err)
	}
	b.lets("the one that was revoked", first, false)
	b.lets("the other", second, true)
}

func TestKeys_TwoRotateAtOnce(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	b.add("shop", ScopeMoney)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := b.Rotate(t.Context(), "os:root", "shop", time.Hour); err != nil && !errors.Is(err, ErrNoKey) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	keys, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	current := 0
	for _, k := range keys {
		if k.Ends == nil {
			current++
		}
	}
	if current != 1 {
		t.Errorf("%d keys of one name are current", current)
	}
}

func TestKeyring_WithoutTheDatabase(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	token := b.add("shop", ScopeRead)
	b.lets("the key", token, true)
	b.ring.db.Close()
	b.clock.pass(keysMost - time.Nanosecond)
	b.lets("what was read before", token, true)
	b.clock.pass(time.Nanosecond)
	if _, err := b.ring.Find(t.Context(), token); !errors.Is(err, ErrKeysUnread) {
		t.Errorf("a key that may have been revoked meanwhile: %v", err)
	}
	b.ring.Rest()
	if !strings.Contains(b.log.String(), "last use of API keys not written") {
		t.Errorf("the log says %q", b.log)
	}
}

func TestKeyring_LastUsedIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	token := b.add("shop", ScopeRead)
	b.add("unused", ScopeRead)
	last := func() *time.Time {
		t.Helper()
		keys, err := b.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if keys[1].LastUsed != nil {
			t.Error("a key is used that nobody has used")
		}
		return keys[0].LastUsed
	}
	use := func() {
		t.Helper()
		b.lets("the key", token, true)
		if err := b.ring.WriteUsed(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.lets("the key", token, true)
	if got := last(); got != nil {
		t.Errorf("a request wrote %s", got)
	}
	first := b.clock.at
	use()
	b.clock.pass(usedEvery - time.Microsecond)
	use()
	if got := last(); got == nil || !got.Equal(first) {
		t.Errorf("got %v, want %s still", got, first)
	}
	b.clock.pass(time.Microsecond)
	use()
	if got := last(); !got.Equal(b.clock.at) {
		t.Errorf("got %s, want %s", got, b.clock.at)
	}
	b.asked.since()
	if err := b.ring.WriteUsed(t.Context()); err != nil || b.asked.since() != 0 {
		t.Errorf("nothing was used, and something written: %v", err)
	}
}

// Whoever reads the database comes in nowhere, and everything that was done stands in the trail.
func TestKeys_OnlyADigestAndATrail(t *testing.T) {
	t.Parallel()
	b := newKeysBench(t)
	first := b.add("shop", ScopeMoney, ScopeRead)
	second, err := b.Rotate(t.Context(), "os:kim", "shop", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Revoke(t.Context(), "os:lee", "shop", ""); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[error]func() error{
		ErrName:  func() error { _, err := b.Add(t.Context(), "os:root", "a b", Scopes()); return err },
		ErrScope: func() error { _, err := b.Add(t.Context(), "os:root", "erp", nil); return err },
		ErrNoKey: func() error { _, err := b.Rotate(t.Context(), "os:root", "shop", 0); return err },
	} {
		if err := do(); !errors.Is(err, name) {
			t.Errorf("got %v, want %v", err, name)
		}
	}
	b.add("erp", ScopeRead)
	if _, err := b.Add(t.Context(), "os:root", "ERP", Scopes()); !errors.Is(err, ErrKeyTaken) {
		t.Errorf("got %v, want %v", err, ErrKeyTaken)
	}
	a, err := New(Config{DB: b.db, Now: b.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range deeds(t, a)[1:] {
		got = append(got, strings.Join([]string{string(d.By), string(d.Action), d.Subject, d.Detail}, " "))
	}
	one, two := first[:14], second[:14]
	revoked := []string{one, two}
	if two < one {
		revoked = []string{two, one}
	}
	want := []string{
		"os:lee key_revoked shop " + strings.Join(revoked, " "),
		"os:kim key_rotated shop " + two + "; the one before ends 2026-05-01T10:00:00Z",
		"os:root key_made shop " + one + " money,read",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
	var rows string
	if err := b.db.QueryRow(t.Context(), `SELECT string_agg(k::text, ' ') || (SELECT string_agg(d::text, ' ') FROM deeds d) FROM api_keys k`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{first, second} {
		if strings.Contains(rows, token[15:]) {
			t.Error("a key's secret stands in the database")
		}
	}
}
