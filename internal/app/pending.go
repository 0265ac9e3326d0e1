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
		return fmt.Errorf("--after %q: %w", c.After, err)
	}
	return withDesk(ctx, databaseURL, func(d *desk.Desk) error {
		list, err := d.Pending(ctx, after, c.Limit)
		if err != nil {
			return err
		}
		return printed(stdout, c.JSON, list)
	})
}
