package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/migrations"
)

// EventsQueue is the queue of event deliveries.
const EventsQueue = "events"

// EventArgs names the event to deliver; what to say and to whom is in its row.
type EventArgs struct {
	EventID string `json:"event_id" river:"unique"`
}

// Kind names the job.
func (EventArgs) Kind() string { return "deliver_event" }

// InsertOpts says where deliveries wait and how often they are tried.
func (EventArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: EventsQueue, MaxAttempts: deliveryAttempts}
}

// quietDriver inserts jobs without telling the workers: a notification is one more statement in every transaction, and all
// its commits wait in one line. Workers look for jobs each second anyway.
type quietDriver struct{ *riverpgxv5.Driver }

// SupportsListenNotify says that nobody is to be notified.
func (quietDriver) SupportsListenNotify() bool { return false }

// SupportsListener agrees with SupportsListenNotify.
func (quietDriver) SupportsListener() bool { return false }

// Notices hands announcements to the delivery jobs, in the transaction that made them true.
type Notices struct{ client *river.Client[pgx.Tx] }

var _ ledger.Notifier = (*Notices)(nil)

// NewNotices makes a Notices. It holds no connection: it inserts in the caller's transaction.
func NewNotices(log *slog.Logger) (*Notices, error) {
	if log == nil {
		return nil, errors.New("checkout: Notices needs a log")
	}
	client, err := river.NewClient(quietDriver{riverpgxv5.New(nil)}, &river.Config{Schema: migrations.RiverSchema, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("checkout: make the client that inserts deliveries: %w", err)
	}
	return &Notices{client: client}, nil
}

// Notify adds one delivery per announcement to the batch: River's own copying of jobs, which is sent with whatever else
// makes the announcements true.
func (n *Notices) Notify(ctx context.Context, b *pgx.Batch, announcements []ledger.Announcement) error {
	if len(announcements) == 0 {
		return nil
	}
	jobs := make([]river.InsertManyParams, 0, len(announcements))
	for _, a := range announcements {
		jobs = append(jobs, river.InsertManyParams{Args: EventArgs{EventID: a.ID}})
	}
	if _, err := n.client.InsertManyFastTx(ctx, postgres.CopyInto(b), jobs); err != nil {
		return fmt.Errorf("insert deliveries: %w", err)
	}
	return nil
}

// again inserts a delivery of an event told before, unless one that was inserted this way is still to be made.
func (n *Notices) again(ctx context.Context, tx pgx.Tx, eventID string) error {
	_, err := n.client.InsertTx(ctx, tx, EventArgs{EventID: eventID}, &river.InsertOpts{
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled,
		}},
	})
	if err != nil {
		return fmt.Errorf("insert delivery of event %s: %w", eventID, err)
	}
	return nil
}
