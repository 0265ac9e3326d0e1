package webhook

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
)

// ReapArgs asks for the deliveries of a crash to be closed. It carries nothing: what is to be done stands in the rows.
type ReapArgs struct{}

// Kind names the job.
func (ReapArgs) Kind() string { return "webhook_reap" }

// ReapWorker closes the deliveries of a crash. Running it twice is harmless: a closed delivery is not found again.
type ReapWorker struct {
	river.WorkerDefaults[ReapArgs]

	Handler *Handler
}

// Timeout bounds one run.
func (*ReapWorker) Timeout(*river.Job[ReapArgs]) time.Duration { return 30 * time.Second }

// Work runs the reaper.
func (w *ReapWorker) Work(ctx context.Context, _ *river.Job[ReapArgs]) error {
	n, err := w.Handler.Reap(ctx)
	if n > 0 {
		w.Handler.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "deliveries of a crash closed", slog.Int("deliveries", n))
	}
	return err
}

// RetainArgs asks for what need not be kept to be taken away.
type RetainArgs struct{}

// Kind names the job.
func (RetainArgs) Kind() string { return "webhook_retain" }

// RetainWorker takes away what need not be kept. Running it twice is harmless: what is gone is gone.
type RetainWorker struct {
	river.WorkerDefaults[RetainArgs]

	Handler *Handler
}

// Timeout bounds one run; the next goes on where it ended.
func (*RetainWorker) Timeout(*river.Job[RetainArgs]) time.Duration { return 10 * time.Minute }

// Work runs the retention.
func (w *RetainWorker) Work(ctx context.Context, _ *river.Job[RetainArgs]) error {
	done, err := w.Handler.Retain(ctx)
	w.Handler.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "deliveries retained",
		slog.Int64("bodies", done.Bodies), slog.Int64("deliveries", done.Deliveries),
		slog.Int64("expired", done.Expired), slog.Int64("claims", done.Claims))
	return err
}
