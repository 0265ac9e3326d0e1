package people

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
)

// Action is what somebody did or looked at.
type Action string

// The actions.
const (
	ActionAccountMade    Action = "account_made"
	ActionRolesSet       Action = "roles_set"
	ActionPasswordGiven  Action = "password_given"
	ActionPasswordChosen Action = "password_chosen"
	ActionDisabled       Action = "account_disabled"
	ActionEnabled        Action = "account_enabled"
	ActionSignedIn       Action = "signed_in"
	ActionSignInRefused  Action = "sign_in_refused"
	ActionSignedOut      Action = "signed_out"
	ActionReportTaken    Action = "report_taken" // as a file
	ActionGatewayAsked   Action = "gateway_asked"
	ActionNoticeSeen     Action = "notice_seen"        // the masked body of one
	ActionRehearsed      Action = "delivery_rehearsed" // nothing was changed
	ActionReplayed       Action = "delivery_replayed"

	ActionKeyMade    Action = "key_made" // an API key, of the merchant's servers
	ActionKeyRotated Action = "key_rotated"
	ActionKeyRevoked Action = "key_revoked"
)

// Actions lists every action.
func Actions() []Action {
	return []Action{
		ActionAccountMade, ActionRolesSet, ActionPasswordGiven, ActionPasswordChosen, ActionDisabled, ActionEnabled,
		ActionSignedIn, ActionSignInRefused, ActionSignedOut, ActionReportTaken, ActionGatewayAsked, ActionNoticeSeen,
		ActionRehearsed, ActionReplayed,
		ActionKeyMade, ActionKeyRotated, ActionKeyRevoked,
	}
}

// Deed is one line of the trail.
type Deed struct {
	At      time.Time `db:"at"`
	By      By        `db:"actor"`
	Action  Action    `db:"action"`
	Subject string    `db:"subject"` // the account, key, order, day or mismatch that it was done with
	Detail  string    `db:"detail"`
	Source  string    `db:"source"` // the address that it came from; empty for commands
}

// ReasonMost is how many characters a reason may have that somebody gives for what they do.
const ReasonMost = 200

// Person is who came in as an account.
func Person(name string) By { return By("person:" + name) }

// note adds a line to the trail, in the transaction of what was done.
func note(ctx context.Context, tx interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}, d Deed,
) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO deeds (at, actor, action, subject, detail, source)
		VALUES (@at, @by, @action, @subject, @detail, @source)`,
		pgx.StrictNamedArgs{"at": d.At, "by": d.By, "action": d.Action, "subject": d.Subject, "detail": d.Detail, "source": d.Source})
	if err != nil {
		return fmt.Errorf("note that %s did %s: %w", d.By, d.Action, err)
	}
	return nil
}

// write does something together with its line in the trail: both or neither.
func write(ctx context.Context, db *pgxpool.Pool, d Deed, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return note(ctx, tx, d)
	})
}

// Note adds a line to the trail of what has no transaction of its own.
func (a *Accounts) Note(ctx context.Context, d Deed) error {
	return a.write(ctx, d, func(pgx.Tx, time.Time) error { return nil })
}

// Deeds reads the newest lines of the trail, newest first.
func (a *Accounts) Deeds(ctx context.Context, limit int) ([]Deed, error) {
	return postgres.Collect[Deed](ctx, a.db, "the trail", `
		SELECT at, actor, action, subject, detail, source
		FROM deeds
		ORDER BY deed_id DESC
		LIMIT @limit`, pgx.StrictNamedArgs{"limit": limit})
}
