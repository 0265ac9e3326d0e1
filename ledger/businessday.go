package ledger

import (
	"errors"
	"fmt"
	"time"
)

// ErrDay reports a text that is not a calendar day.
var ErrDay = errors.New("not a day of the form 2006-01-02")

// Seoul is the zone of every business day. Korea has kept UTC+9 without summer time since 1988, so a fixed
// zone is exact and needs no zone data on the machine.
func Seoul() *time.Location { return time.FixedZone("KST", 9*60*60) }

// Day is a Korean business day, written 2006-01-02.
type Day string

// DayOf is the business day that holds t.
func DayOf(t time.Time) Day { return Day(t.In(Seoul()).Format(time.DateOnly)) }

// ParseDay reads 2006-01-02.
func ParseDay(text string) (Day, error) {
	if _, err := time.ParseInLocation(time.DateOnly, text, Seoul()); err != nil {
		return "", fmt.Errorf("%.24q: %w", text, ErrDay)
	}
	return Day(text), nil
}

// Start is the day's first instant; the day ends where the next one starts.
func (d Day) Start() time.Time {
	t, _ := time.ParseInLocation(time.DateOnly, string(d), Seoul())
	return t
}

// Next is the following day.
func (d Day) Next() Day { return DayOf(d.Start().Add(36 * time.Hour)) }

// End is the first instant that no longer belongs to the day.
func (d Day) End() time.Time { return d.Start().Add(24 * time.Hour) }

// Contains reports whether t falls on the day.
func (d Day) Contains(t time.Time) bool { return DayOf(t) == d }
