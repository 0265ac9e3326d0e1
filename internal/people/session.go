package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/jackc/pgx/v5"
)

// How long a session lasts: until an hour without a request, and for a working day at most.
const (
	sessionIdle = time.Hour
	sessionMost = 12 * time.Hour
)

// What a session keeps.
const (
	keyAccount = "account"
	keyEpoch   = "epoch"
)

// Sessions know who is signed in, by a cookie that only the pages are sent.
type Sessions struct {
	accounts *Accounts
	manager  *scs.SessionManager
}

// NewSessions makes Sessions. Secure says that the pages are reached by https, and keeps the cookie from anything else.
// Failed answers a request whose session cannot be read or written.
func NewSessions(a *Accounts, secure bool, failed func(http.ResponseWriter, *http.Request, error)) *Sessions {
	name := "daesa"
	if secure {
		name = "__Host-daesa" // no other host and no plain http can set it
	}
	// The library's constructor would begin with a store of its own, which has a goroutine that never ends.
	m := &scs.SessionManager{
		Store: kept{a}, Codec: scs.GobCodec{}, HashTokenInStore: true, IdleTimeout: sessionIdle, Lifetime: sessionMost, ErrorFunc: failed,
		Cookie: scs.SessionCookie{Name: name, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode},
	}
	return &Sessions{accounts: a, manager: m}
}

// Middleware reads the session of a request and writes what became of it.
func (s *Sessions) Middleware(next http.Handler) http.Handler { return s.manager.LoadAndSave(next) }

// Begin makes the session one of the account, under another token than before.
func (s *Sessions) Begin(ctx context.Context, a Account) error {
	if err := s.manager.RenewToken(ctx); err != nil {
		return fmt.Errorf("begin a session: %w", err)
	}
	s.manager.Put(ctx, keyAccount, a.ID)
	s.manager.Put(ctx, keyEpoch, a.Epoch)
	return nil
}

// End ends the session.
func (s *Sessions) End(ctx context.Context) error {
	if err := s.manager.Destroy(ctx); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return nil
}

// Who reads who is signed in; nobody is ErrNoAccount.
func (s *Sessions) Who(ctx context.Context) (Account, error) {
	id := s.manager.GetInt64(ctx, keyAccount)
	if id == 0 {
		return Account{}, ErrNoAccount
	}
	return s.accounts.Load(ctx, id, s.manager.GetInt(ctx, keyEpoch))
}

// SignOut ends the session of an account, and notes it.
func (s *Sessions) SignOut(ctx context.Context, a Account, source string) error {
	deed := Deed{By: Person(a.Name), Action: ActionSignedOut, Subject: a.Name, Source: source}
	return errors.Join(s.End(ctx), s.accounts.Note(ctx, deed))
}

// kept is where sessions are kept. The store that comes with the library waits for a connection for ever.
type kept struct{ accounts *Accounts }

// FindCtx reads a session that is not over.
func (k kept) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = k.accounts.db.QueryRow(ctx, `SELECT data FROM sessions WHERE token = @token AND expiry > now()`,
		pgx.StrictNamedArgs{"token": token}).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read a session: %w", err)
	}
	return data, true, nil
}

// CommitCtx writes a session.
func (k kept) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	_, err := k.accounts.db.Exec(ctx, `
		INSERT INTO sessions (token, data, expiry)
		VALUES (@token, @data, @expiry)
		ON CONFLICT (token) DO UPDATE SET data = EXCLUDED.data, expiry = EXCLUDED.expiry`,
		pgx.StrictNamedArgs{"token": token, "data": data, "expiry": expiry})
	if err != nil {
		return fmt.Errorf("write a session: %w", err)
	}
	return nil
}

// DeleteCtx removes a session.
func (k kept) DeleteCtx(ctx context.Context, token string) error {
	if _, err := k.accounts.db.Exec(ctx, `DELETE FROM sessions WHERE token = @token`, pgx.StrictNamedArgs{"token": token}); err != nil {
		return fmt.Errorf("remove a session: %w", err)
	}
	return nil
}

// Find, Commit and Delete are those of a store that knows no context; the library calls none of them here.
func (k kept) Find(token string) ([]byte, bool, error) { return k.FindCtx(context.Background(), token) }

// Commit is CommitCtx.
func (k kept) Commit(token string, data []byte, expiry time.Time) error {
	return k.CommitCtx(context.Background(), token, data, expiry)
}

// Delete is DeleteCtx.
func (k kept) Delete(token string) error { return k.DeleteCtx(context.Background(), token) }

// Forget removes the sessions that are over.
func (a *Accounts) Forget(ctx context.Context) error {
	if _, err := a.db.Exec(ctx, `DELETE FROM sessions WHERE expiry < now()`); err != nil {
		return fmt.Errorf("forget sessions that are over: %w", err)
	}
	return nil
}
