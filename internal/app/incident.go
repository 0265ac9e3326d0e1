package app

import (
	"context"
	"fmt"
	"io"

	"daesa/ledger"
	"daesa/reconcile/desk"
)

// incidentCommand works on storms of mismatches.
type incidentCommand struct {
	JSON bool `help:"Print JSON."`

	List     incidentList    `cmd:"" help:"List incidents, newest first; daesa mismatch list --incident shows what is in one."`
	Show     mismatchID      `cmd:"" help:"Show one."`
	Resolve  incidentResolve `cmd:"" help:"Resolve everything that is left of it; above the amount in all: propose to."`
	Confirm  mismatchStep    `cmd:"" help:"Resolve it as somebody else has proposed."`
	Withdraw mismatchStep    `cmd:"" help:"Let a proposal fall."`
}

type incidentList struct {
	Open   bool  `help:"Only those that are not over."`
	Before int64 `help:"Begin below this number."`
}

type incidentResolve struct {
	mismatchStep

	As string `required:"" enum:"fixed,accepted" help:"fixed, or accepted with a --note that says why."`
}

func (c incidentCommand) run(ctx context.Context, command, databaseURL string, stdout io.Writer) error {
	return atDesk(ctx, databaseURL, stdout, c.JSON, func(d *desk.Desk) (texts, error) { return c.answer(ctx, command, d) })
}

func (c incidentCommand) answer(ctx context.Context, command string, d *desk.Desk) (texts, error) {
	var id int64
	var change ledger.Change
	switch command {
	case "incident list":
		return d.Incidents(ctx, c.List.Open, c.List.Before)
	case "incident show <id>":
		return d.Incident(ctx, c.Show.ID)
	case "incident resolve <id>":
		id, change = c.Resolve.ID, c.Resolve.change(ledger.StepResolve)
		change.As = ledger.Resolution(c.Resolve.As)
	case "incident confirm <id>":
		id, change = c.Confirm.ID, c.Confirm.change(ledger.StepConfirm)
	case "incident withdraw <id>":
		id, change = c.Withdraw.ID, c.Withdraw.change(ledger.StepWithdraw)
	default:
		return nil, fmt.Errorf("no such command: %s", command)
	}
	by, err := operator()
	if err != nil {
		return nil, err
	}
	change.By = by
	return d.ChangeIncident(ctx, id, change)
}
