package seal

import (
	"context"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// KindSeal is the kind of the job that cuts and seals the journal.
const KindSeal = "seal_journal"

// Args wakes the sealer, which reads from its own rows which days are owed.
type Args struct{}

// Kind names the job.
func (Args) Kind() string { return KindSeal }

// InsertOpts keeps ticks from piling up: the next tick is the retry.
func (Args) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		MaxAttempts: 1,
		UniqueOpts: river.UniqueOpts{
			ByPeriod: time.Minute,
			ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled,
			},
		},
	}
}

// Worker runs the sealer. It is idempotent: a day has one section and one head, each written whole or not at all.
type Worker struct {
	river.WorkerDefaults[Args]

	Sealer *Sealer
}

// Timeout bounds one run: the first may have years to seal.
func (w *Worker) Timeout(*river.Job[Args]) time.Duration { return time.Hour }

// Work cuts and seals what is owed.
func (w *Worker) Work(ctx context.Context, _ *river.Job[Args]) error { return w.Sealer.Run(ctx) }
