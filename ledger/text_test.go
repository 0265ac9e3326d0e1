package ledger

import (
	"testing"
	"time"
)

func TestGrouped(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"0": "0", "999": "999", "1000": "1,000", "-100": "-100", "-1000": "-1,000", "1234567.89": "1,234,567.89", "-0.05": "-0.05",
	} {
		if got := Grouped(number); got != want {
			t.Errorf("%s: got %s, want %s", number, got, want)
		}
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	if got, want := Stamp(time.Date(2026, 12, 31, 15, 0, 0, 999, time.UTC)), "2027-01-01 00:00:00 KST"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
