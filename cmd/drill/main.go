// Command drill loses the books on purpose and gets them back, on this machine: a PostgreSQL of its own, a simulated
// gateway, and the service between them. It sells, backs up, sells and refunds on, loses the database, restores the back-up,
// and proves that both books agree again. It ends with 0 when they do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "restore-drill:", err)
		os.Exit(1)
	}
}

// run is the whole drill, step by step, and stops at the first that does not end as it should.
func run(ctx context.Context, out io.Writer) (err error) {
	d, err := prepare(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }() //nolint:contextcheck // what was begun is undone also when ctx is over
	for n, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Yesterday: sales and refunds, then the day is closed and its journal sealed", d.yesterday},
		{"A back-up is made", d.backUp},
		{"Today goes on: sales and refunds that no back-up has", d.today},
		{"The database is lost", d.lose},
		{"The back-up is restored, and verified against the heads file", d.restore},
		{"The service starts: what the gateway did meanwhile is found in its list", d.catchUp},
		{"The shop sends again the orders that the back-up does not have", d.sendAgain},
		{"Both books agree", d.prove},
	} {
		fmt.Fprintf(out, "%d. %s\n", n+1, step.title)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("step %d, %s: %w", n+1, step.title, err)
		}
	}
	fmt.Fprintln(out, "\nNothing is lost.")
	return nil
}
