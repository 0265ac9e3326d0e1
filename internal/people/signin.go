package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrSignIn means that name and password do not let anybody in: nobody has the name, the password is another, the account
// is disabled, or locked because too many were tried. Who tries is not told which.
var ErrSignIn = errors.New("the name or the password is wrong, or the account is closed at present")

// How wrong passwords lock an account: from the fifth after each other on, for a minute and twice as long with each
// further one, up to an hour. So a stranger who knows a name tries about thirty passwords a day. They can keep its owner out
// meanwhile; an operator lets the owner in with a new password.
const (
	triesFree = 5
	lockFirst = time.Minute
	lockMost  = time.Hour
)

// found is an account whose password is tried.
type found struct {
	Account

	Password string `db:"password"`
}

// SignIn lets somebody in, and returns who it is. ErrSignIn.
func (a *Accounts) SignIn(ctx context.Context, name, password, source string) (Account, error) {
	account, err := a.try(ctx, name)
	if errors.Is(err, ErrSignIn) {
		return Account{}, errors.Join(err, a.hasher.waste(ctx, password))
	}
	if err != nil {
		return Account{}, err
	}
	same, stale, err := a.hasher.matches(ctx, password, account.Password)
	if err != nil {
		return Account{}, err
	}
	if !same {
		return Account{}, errors.Join(ErrSignIn, a.Note(ctx, Deed{
			By: Person(account.Name), Action: ActionSignInRefused, Subject: account.Name, Source: source,
		}))
	}
	hash := account.Password
	if stale {
		if hash, err = a.hasher.hash(ctx, password); err != nil {
			return Account{}, err
		}
	}
	return account.Account, a.letIn(ctx, account, hash, source)
}

// try counts the attempt and reads what it is held against. The lock that it may cause is there before the password is
// looked at. ErrSignIn.
func (a *Accounts) try(ctx context.Context, name string) (found, error) {
	if !nameForm.MatchString(name) {
		return found{}, ErrSignIn
	}
	rows, err := a.db.Query(ctx, `
		UPDATE accounts
		SET failures = failures + 1,
			locked_until = CASE WHEN failures + 1 >= @free
				THEN @now::timestamptz + LEAST(@first::interval * power(2, LEAST(failures + 1 - @free, 20)), @most::interval) END
		WHERE lower(name) = lower(@name) AND disabled_at IS NULL AND (locked_until IS NULL OR locked_until <= @now)
		RETURNING `+accountColumns+`, password`,
		pgx.StrictNamedArgs{"name": name, "now": a.now(), "free": triesFree, "first": lockFirst, "most": lockMost})
	if err != nil {
		return found{}, fmt.Errorf("look for an account: %w", err)
	}
	account, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[found])
	if errors.Is(err, pgx.ErrNoRows) {
		return found{}, ErrSignIn
	}
	if err != nil {
		return found{}, fmt.Errorf("look for an account: %w", err)
	}
	return account, nil
}

// letIn forgets the wrong passwords, unless the account was changed since its password was read.
func (a *Accounts) letIn(ctx context.Context, f found, hash, source string) error {
	deed := Deed{By: Person(f.Name), Action: ActionSignedIn, Subject: f.Name, Source: source}
	return a.write(ctx, deed, func(tx pgx.Tx, now time.Time) error {
		done, err := tx.Exec(ctx, `
			UPDATE accounts SET failures = 0, locked_until = NULL, signed_in_at = @now, password = @hash
			WHERE account_id = @id AND epoch = @epoch AND disabled_at IS NULL AND password = @was`,
			pgx.StrictNamedArgs{"id": f.ID, "epoch": f.Epoch, "now": now, "hash": hash, "was": f.Password})
		if err != nil {
			return fmt.Errorf("let %s in: %w", f.Name, err)
		}
		if done.RowsAffected() == 0 {
			return ErrSignIn
		}
		return nil
	})
}

// Choose gives an account the password that its owner chose, ends its other sessions, and returns the account as it is
// then. The old password is asked for once more, and counts as an attempt. ErrSignIn, ErrPassword.
func (a *Accounts) Choose(ctx context.Context, name, old, chosen, source string) (Account, error) {
	if err := checkPassword(name, chosen); err != nil {
		return Account{}, err
	}
	if old == chosen {
		return Account{}, fmt.Errorf("the same again: %w", ErrPassword)
	}
	account, err := a.SignIn(ctx, name, old, source)
	if err != nil {
		return Account{}, err
	}
	hash, err := a.hasher.hash(ctx, chosen)
	if err != nil {
		return Account{}, err
	}
	deed := Deed{By: Person(account.Name), Action: ActionPasswordChosen, Subject: account.Name, Source: source}
	err = a.write(ctx, deed, func(tx pgx.Tx, _ time.Time) error {
		rows, err := tx.Query(ctx, `
			UPDATE accounts SET password = @hash, must_change = false, epoch = epoch + 1
			WHERE account_id = @id AND epoch = @epoch AND disabled_at IS NULL
			RETURNING `+accountColumns,
			pgx.StrictNamedArgs{"id": account.ID, "epoch": account.Epoch, "hash": hash})
		if err != nil {
			return fmt.Errorf("keep the password of %s: %w", name, err)
		}
		account, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Account])
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrSignIn
		}
		if err != nil {
			return fmt.Errorf("keep the password of %s: %w", name, err)
		}
		return nil
	})
	return account, err
}

// Load reads the account of a session. One that is disabled, or whose sessions were ended since the epoch, is ErrNoAccount.
func (a *Accounts) Load(ctx context.Context, id int64, epoch int) (Account, error) {
	rows, err := a.db.Query(ctx, `
		SELECT `+accountColumns+`
		FROM accounts
		WHERE account_id = @id AND epoch = @epoch AND disabled_at IS NULL`,
		pgx.StrictNamedArgs{"id": id, "epoch": epoch})
	if err != nil {
		return Account{}, fmt.Errorf("read the account of a session: %w", err)
	}
	account, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Account])
	if errors.Is(err, pgx.ErrNoRows) {
		return Account{}, ErrNoAccount
	}
	if err != nil {
		return Account{}, fmt.Errorf("read the account of a session: %w", err)
	}
	return account, nil
}
