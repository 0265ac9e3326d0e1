package app

import (
	"context"
	"fmt"
	"io"

	"daesa/reconcile"
	"daesa/reconcile/desk"
)

// pendingCommand shows what is waiting.
type pendingCommand struct {
	JSON  bool   `help:"Print JSON."`
	After string `help:"Begin after what an earlier page named."`
	Limit int    `default:"100" help:"How many, at most 500."`
}

func (c pendingCommand) run(ctx context.Context, databaseURL string, stdout io.Writer) error {
	after, err := reconcile.ParsePendingCursor(c.After)
	if err != nil {
		return misuse{fmt.Errorf("--after %q: %w", c.After, err)}
	}
	return atDesk(ctx, databaseURL, stdout, c.JSON, func(d *desk.Desk) (texts, error) { return d.Pending(ctx, after, c.Limit) })
}
