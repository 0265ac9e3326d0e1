package people

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
)

// Errors of accounts.
var (
	// ErrNoAccount means that nobody has the name.
	ErrNoAccount = errors.New("there is no such account")
	// ErrAccountTaken means that somebody has the name already, perhaps with other capitals.
	ErrAccountTaken = errors.New("there is an account of this name")
	// ErrName reports a name that cannot stand in a trail.
	ErrName = errors.New("a name has letters, digits and . _ @ -, begins with a letter or a digit, and has at most 100 of them")
)

// nameForm is that of whoever can stand in the trails of the books.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$`)

// Account is somebody who may come in.
type Account struct {
	ID         int64      `db:"account_id"`
	Name       string     `db:"name"`
	Roles      []Role     `db:"roles"`
	MustChange bool       `db:"must_change"` // the password was given, not chosen
	Epoch      int        `db:"epoch"`       // sessions of an earlier one are over
	Disabled   *time.Time `db:"disabled_at"`
	Locked     *time.Time `db:"locked_until"`
	SignedIn   *time.Time `db:"signed_in_at"`
	Created    time.Time  `db:"created_at"`
}

// May reports whether one of the account's roles allows it. Who has to change a password may do nothing before.
func (a Account) May(p Permission) bool {
	return !a.MustChange && slices.ContainsFunc(a.Roles, func(r Role) bool { return r.Allows(p) })
}

// Config is what accounts need.
type Config struct {
	DB   *pgxpool.Pool
	Cost Cost // of a look at a password
	Now  func() time.Time
}

// Accounts are all who may come in.
type Accounts struct {
	db     *pgxpool.Pool
	now    func() time.Time
	hasher hasher
}

// New makes Accounts.
func New(cfg Config) (*Accounts, error) {
	if cfg.DB == nil || cfg.Now == nil {
		return nil, errors.New("people: DB and Now are required")
	}
	return &Accounts{db: cfg.DB, now: cfg.Now, hasher: newHasher(cfg.Cost)}, nil
}

// By is who does something with an account, as trails name them: os:<user> or person:<name>.
type By string

// Add makes an account with a password that must be changed at the first sign-in, and returns it. ErrName, ErrRole,
// ErrAccountTaken.
func (a *Accounts) Add(ctx context.Context, by By, name string, roles []Role) (password string, err error) {
	if !nameForm.MatchString(name) {
		return "", fmt.Errorf("%.40q: %w", name, ErrName)
	}
	if len(roles) == 0 {
		return "", ErrRole
	}
	password = OneTimePassword()
	hash, err := a.hasher.hash(ctx, password)
	if err != nil {
		return "", err
	}
	return password, a.write(ctx, Deed{By: by, Action: ActionAccountMade, Subject: name, Detail: FormatRoles(roles)}, func(tx pgx.Tx, now time.Time) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO accounts (name, roles, password, must_change, created_at, created_by)
			VALUES (@name, @roles, @hash, true, @now, @by)`,
			pgx.StrictNamedArgs{"name": name, "roles": roles, "hash": hash, "now": now, "by": by})
		if postgres.Violates(err, "accounts_name_is_one") {
			return fmt.Errorf("%s: %w", name, ErrAccountTaken)
		}
		if err != nil {
			return fmt.Errorf("make the account %s: %w", name, err)
		}
		return nil
	})
}

// SetRoles gives an account other roles, from its next request on. ErrRole, ErrNoAccount.
func (a *Accounts) SetRoles(ctx context.Context, by By, name string, roles []Role) error {
	if len(roles) == 0 {
		return ErrRole
	}
	deed := Deed{By: by, Action: ActionRolesSet, Subject: name, Detail: FormatRoles(roles)}
	return a.change(ctx, deed, `UPDATE accounts SET roles = @roles WHERE lower(name) = lower(@name)`,
		pgx.StrictNamedArgs{"name": name, "roles": roles})
}

// GivePassword ends the sessions of an account and gives it a password that must be changed. It is let in again if it was
// locked. ErrNoAccount.
func (a *Accounts) GivePassword(ctx context.Context, by By, name string) (password string, err error) {
	password = OneTimePassword()
	hash, err := a.hasher.hash(ctx, password)
	if err != nil {
		return "", err
	}
	return password, a.change(ctx, Deed{By: by, Action: ActionPasswordGiven, Subject: name}, `
		UPDATE accounts SET password = @hash, must_change = true, epoch = epoch + 1, failures = 0, locked_until = NULL
		WHERE lower(name) = lower(@name)`,
		pgx.StrictNamedArgs{"name": name, "hash": hash})
}

// Disable ends the sessions of an account and lets it in no more. ErrNoAccount.
func (a *Accounts) Disable(ctx context.Context, by By, name string) error {
	return a.change(ctx, Deed{By: by, Action: ActionDisabled, Subject: name}, `
		UPDATE accounts SET disabled_at = COALESCE(disabled_at, @now), epoch = epoch + 1
		WHERE lower(name) = lower(@name)`,
		pgx.StrictNamedArgs{"name": name, "now": a.now()})
}

// Enable lets an account in again. ErrNoAccount.
func (a *Accounts) Enable(ctx context.Context, by By, name string) error {
	return a.change(ctx, Deed{By: by, Action: ActionEnabled, Subject: name}, `
		UPDATE accounts SET disabled_at = NULL, failures = 0, locked_until = NULL
		WHERE lower(name) = lower(@name)`,
		pgx.StrictNamedArgs{"name": name})
}

// List reads all accounts, by name.
func (a *Accounts) List(ctx context.Context) ([]Account, error) {
	return postgres.Collect[Account](ctx, a.db, "the accounts", `SELECT `+accountColumns+` FROM accounts ORDER BY lower(name)`)
}

// Any reports whether there is an account at all.
func (a *Accounts) Any(ctx context.Context) (there bool, err error) {
	if err := a.db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM accounts)`).Scan(&there); err != nil {
		return false, fmt.Errorf("look for an account: %w", err)
	}
	return there, nil
}

const accountColumns = `account_id, name, roles, must_change, epoch, disabled_at, locked_until, signed_in_at, created_at`

// change makes one change of the account that the deed is about, and notes the deed with it. ErrNoAccount.
func (a *Accounts) change(ctx context.Context, d Deed, sql string, args pgx.StrictNamedArgs) error {
	return a.write(ctx, d, func(tx pgx.Tx, _ time.Time) error {
		done, err := tx.Exec(ctx, sql, args)
		if err != nil {
			return fmt.Errorf("%s %s: %w", d.Action, d.Subject, err)
		}
		if done.RowsAffected() == 0 {
			return fmt.Errorf("%.40q: %w", d.Subject, ErrNoAccount)
		}
		return nil
	})
}

// write does something together with its line in the trail: both or neither.
func (a *Accounts) write(ctx context.Context, d Deed, fn func(tx pgx.Tx, now time.Time) error) error {
	d.At = a.now()
	return write(ctx, a.db, d, func(tx pgx.Tx) error { return fn(tx, d.At) })
}
