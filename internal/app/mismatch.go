package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/ledger"
	"daesa/reconcile/desk"
)

// mismatchCommand works on mismatches in the name of the user whom the operating system says. Above which money a second
// person is needed was set by the service, not here.
type mismatchCommand struct {
	JSON bool `help:"Print JSON."`

	List     mismatchList     `cmd:"" help:"List mismatches, newest first; those that are not resolved unless told otherwise."`
	Show     mismatchID       `cmd:"" help:"Show one with the evidence of both sides and its trail."`
	Ack      mismatchStep     `cmd:"" help:"Take an open one in hand, so that others see it."`
	Assign   mismatchAssign   `cmd:"" help:"Give it to somebody, or with no --to to nobody."`
	Resolve  mismatchResolve  `cmd:"" help:"Resolve it; above the amount: propose to."`
	Confirm  mismatchStep     `cmd:"" help:"Resolve it as somebody else has proposed."`
	Withdraw mismatchStep     `cmd:"" help:"Let a proposal fall."`
	Reopen   mismatchStep     `cmd:"" help:"Open a resolved one again."`
	Note     mismatchNoteStep `cmd:"" help:"Put a note into its trail."`
}

type mismatchList struct {
	Status     string `help:"open, acknowledged or resolved."`
	Resolution string `help:"Those resolved in one way: auto, fixed or accepted."`
	From       string `help:"Those resolved on this day (KST) or later."`
	To         string `help:"Those resolved on this day (KST) or earlier."`
	Kind       string `help:"What is wrong, as in cancel_missing_here."`
	Assignee   string `help:"os:<user>, api:<key> or person:<account>."`
	Order      string `help:"Order id."`
	Payment    string `help:"Payment key."`
	Incident   int64  `help:"Number of an incident."`
	MinAmount  string `name:"min-amount" help:"Money at risk, at least."`
	Currency   string `default:"KRW" help:"Currency of --min-amount."`
	Before     int64  `help:"Begin below this number."`
	Limit      int    `default:"50" help:"How many, at most 200."`
}

type mismatchID struct {
	ID int64 `arg:"" help:"Number of the mismatch."`
}

type mismatchStep struct {
	mismatchID

	Note     string `help:"What there is to say."`
	Revision int    `help:"Only if it has not changed since this revision."`
}

type mismatchNoteStep struct {
	mismatchID

	Text string `arg:"" help:"The note."`
}

type mismatchAssign struct {
	mismatchStep

	To string `help:"os:<user>, api:<key> or person:<account>."`
}

type mismatchResolve struct {
	mismatchStep

	As               string `required:"" enum:"fixed,accepted" help:"fixed, or accepted with a --note that says why."`
	RequestNeverDone bool   `name:"request-never-done" help:"Of a cancel of ours whose answer nobody will know: it never happened, as --note proves."`
	RequestDoneAs    string `name:"request-done-as" help:"Of such a cancel: it happened under this transaction key, which must be in the books."`
}

// texts is what can be written for a terminal.
type texts interface{ WriteText(w io.Writer) error }

// run does what the command line names.
func (c mismatchCommand) run(ctx context.Context, command, databaseURL string, stdout io.Writer) error {
	return atDesk(ctx, databaseURL, stdout, c.JSON, func(d *desk.Desk) (texts, error) { return c.answer(ctx, command, d) })
}

func (c mismatchCommand) answer(ctx context.Context, command string, d *desk.Desk) (texts, error) {
	switch command {
	case "mismatch list":
		f, err := c.List.filter()
		if err != nil {
			return nil, err
		}
		return d.List(ctx, f)
	case "mismatch show <id>":
		return d.Show(ctx, c.Show.ID)
	}
	by, err := operator()
	if err != nil {
		return nil, err
	}
	id, change, err := c.step(command)
	if err != nil {
		return nil, err
	}
	change.By = by
	return d.Change(ctx, id, change)
}

// step is what the command line asks for, but for who asks.
func (c mismatchCommand) step(command string) (int64, ledger.Change, error) {
	switch command {
	case "mismatch ack <id>":
		return c.Ack.ID, c.Ack.change(ledger.StepAcknowledge), nil
	case "mismatch assign <id>":
		change := c.Assign.change(ledger.StepAssign)
		to, err := desk.AssigneeOf(c.Assign.To)
		change.To = to
		return c.Assign.ID, change, err
	case "mismatch resolve <id>":
		change := c.Resolve.change(ledger.StepResolve)
		change.As = ledger.Resolution(c.Resolve.As)
		end, err := desk.RequestEndOf(c.Resolve.RequestNeverDone, c.Resolve.RequestDoneAs)
		change.Request = end
		return c.Resolve.ID, change, err
	case "mismatch confirm <id>":
		return c.Confirm.ID, c.Confirm.change(ledger.StepConfirm), nil
	case "mismatch withdraw <id>":
		return c.Withdraw.ID, c.Withdraw.change(ledger.StepWithdraw), nil
	case "mismatch reopen <id>":
		return c.Reopen.ID, c.Reopen.change(ledger.StepReopen), nil
	case "mismatch note <id> <text>":
		return c.Note.ID, ledger.Change{Step: ledger.StepNote, Note: c.Note.Text}, nil
	}
	return 0, ledger.Change{}, fmt.Errorf("no such command: %s", command)
}

func (s mismatchStep) change(step ledger.Step) ledger.Change {
	return ledger.Change{Step: step, Note: s.Note, Revision: s.Revision}
}

func (l mismatchList) filter() (ledger.MismatchFilter, error) {
	f := ledger.MismatchFilter{
		Status: ledger.MismatchStatus(l.Status), Resolution: ledger.Resolution(l.Resolution), From: ledger.Day(l.From), To: ledger.Day(l.To), Kind: ledger.Kind(l.Kind), Assignee: ledger.Actor(l.Assignee), OrderID: l.Order,
		PaymentKey: l.Payment, Incident: l.Incident, Before: l.Before, Limit: l.Limit,
	}
	if l.MinAmount != "" {
		var err error
		if f.AtLeast, err = ledger.ParseMoney(strings.ReplaceAll(l.MinAmount, ",", ""), ledger.Currency(l.Currency)); err != nil {
			return f, misuse{fmt.Errorf("--min-amount %q: %w", l.MinAmount, err)}
		}
	}
	return f, desk.CheckFilter(f)
}

// atDesk opens the desk for one command and prints what it answers.
func atDesk(ctx context.Context, databaseURL string, stdout io.Writer, asJSON bool, ask func(*desk.Desk) (texts, error)) error {
	return withPool(ctx, databaseURL, func(db *pgxpool.Pool) error {
		if err := requireMigrated(ctx, db); err != nil {
			return err
		}
		d, err := desk.New(desk.Config{DB: db, Now: time.Now})
		if err != nil {
			return err
		}
		answer, err := ask(d)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(stdout, answer)
		}
		return answer.WriteText(stdout)
	})
}
