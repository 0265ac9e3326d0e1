package postgres

import "time"

// NullTime turns a zero time into NULL.
func NullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
