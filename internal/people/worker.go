package people

import (
	"context"
	"time"

	"github.com/riverqueue/river"
)

// ForgetArgs asks for sessions that are over to be taken away.
type ForgetArgs struct{}

// Kind names the job.
func (ForgetArgs) Kind() string { return "forget_sessions" }

// ForgetWorker takes away sessions that are over. Running it twice is harmless: what is gone is gone.
type ForgetWorker struct {
	river.WorkerDefaults[ForgetArgs]

	Accounts *Accounts
}

// Timeout bounds one run; the next goes on where it ended.
func (*ForgetWorker) Timeout(*river.Job[ForgetArgs]) time.Duration { return time.Minute }

// Work forgets.
func (w *ForgetWorker) Work(ctx context.Context, _ *river.Job[ForgetArgs]) error {
	return w.Accounts.Forget(ctx)
}
