package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// clocksMost is how far this machine's clock and the database's may lie apart for the list to be read: far less than every
// poll reads again.
const clocksMost = time.Minute

// ErrClocks reports a machine whose clock is not the database's. Nothing was read; the next tick tries again.
var ErrClocks = errors.New("the clocks of machine and database lie apart")

// clocksAgree refuses a reader whose clock is wrong. One that is ahead would note time as read that has not come, and the
// next poll after a pause would begin behind it; one that lags would take back what others have read.
func (m *Mirror) clocksAgree(ctx context.Context) error {
	theirs, err := m.cfg.DatabaseNow(ctx)
	if err != nil {
		return err
	}
	if apart := m.cfg.now().Sub(theirs); apart.Abs() > clocksMost {
		return fmt.Errorf("the list is not read, this machine's clock is %s ahead of the database's: %w", apart, ErrClocks)
	}
	return nil
}

// databaseNow is the database's clock.
func (c Config) databaseNow(ctx context.Context) (now time.Time, err error) {
	if err := c.DB.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return now, fmt.Errorf("ask the database for the time: %w", err)
	}
	return now, nil
}
