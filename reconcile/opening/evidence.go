package opening

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"daesa/ledger"
	"daesa/pgclient"
)

var errUnanswered = errors.New("the gateway does not answer")

// asksMax is how often one payment is asked about before its row is left for the next run.
const asksMax = 5

// ask brings the gateway's evidence. What it says for good is a reason; what may pass is asked again, later each time.
func (i *Importer) ask(ctx context.Context, paymentKey string) (seen ledger.Observation, reason string, err error) {
	for n := range asksMax {
		if err := i.limit.Wait(ctx); err != nil {
			return seen, "", err
		}
		seen, err = i.cfg.Gateway.Recover(ctx, ledger.ChannelImport, paymentKey)
		failure, failed := errors.AsType[*pgclient.Error](err)
		switch {
		case err == nil:
			return seen, "", nil
		case ctx.Err() != nil:
			return seen, "", context.Cause(ctx)
		case !failed:
			return seen, "", err
		case failure.Reason == pgclient.ReasonKeyRefused:
			return seen, "", err // every other row would meet the same
		case slices.Contains([]pgclient.Reason{pgclient.ReasonNotFound, pgclient.ReasonInconsistent, pgclient.ReasonRefused}, failure.Reason):
			return seen, "the gateway: " + cmp.Or(failure.Detail, failure.Error()), nil
		}
		if err := pause(ctx, max(failure.RetryAfter, time.Second<<n)); err != nil {
			return seen, "", err
		}
	}
	return seen, "", fmt.Errorf("%w: %w", errUnanswered, err)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(min(d, time.Minute))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func captured(seen ledger.Observation) ledger.Money {
	if seen.Evidence == ledger.EvidenceCaptured {
		return seen.Total
	}
	return ledger.Money{Currency: seen.Total.Currency}
}

func canceled(seen ledger.Observation) ledger.Money {
	sum := ledger.Money{Currency: seen.Total.Currency}
	if seen.Evidence != ledger.EvidenceCaptured {
		return sum
	}
	for _, c := range seen.Cancels {
		if c.State == ledger.CancelDone {
			sum.Minor += c.Amount.Minor // never above the total: the gateway client has added it up
		}
	}
	return sum
}
