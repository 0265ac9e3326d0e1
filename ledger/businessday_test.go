package ledger

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata" // the test names zones that the machine may not know

	"pgregory.net/rapid"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDayOf(t *testing.T) {
	t.Parallel()
	seoul, newYork := zone(t, "Asia/Seoul"), zone(t, "America/New_York")
	for _, c := range []struct {
		name string
		at   time.Time
		want Day
	}{
		{"the last instant", time.Date(2026, 5, 1, 23, 59, 59, 999_999_999, seoul), "2026-05-01"},
		{"the first instant", time.Date(2026, 5, 2, 0, 0, 0, 0, seoul), "2026-05-02"},
		{"still yesterday in UTC", time.Date(2026, 5, 1, 15, 0, 0, 0, time.UTC), "2026-05-02"},
		{"the same day in UTC", time.Date(2026, 5, 1, 14, 59, 59, 0, time.UTC), "2026-05-01"},
		{"New York in summer", time.Date(2026, 7, 1, 11, 0, 0, 0, newYork), "2026-07-02"},
		{"New York in winter", time.Date(2026, 1, 1, 9, 59, 59, 0, newYork), "2026-01-01"},
		{"the end of a month", time.Date(2026, 2, 28, 15, 0, 0, 0, time.UTC), "2026-03-01"},
		{"a leap day", time.Date(2028, 2, 28, 15, 0, 0, 0, time.UTC), "2028-02-29"},
		{"the end of a year", time.Date(2026, 12, 31, 15, 0, 0, 0, time.UTC), "2027-01-01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := DayOf(c.at)
			if got != c.want || !c.want.Contains(c.at) || c.want.Next().Contains(c.at) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDay_FollowEachOtherWithoutGap(t *testing.T) {
	t.Parallel()
	seoul := zone(t, "Asia/Seoul")
	rapid.Check(t, func(r *rapid.T) {
		at := time.Unix(0, rapid.Int64Range(946_684_800e9, 4_102_444_800e9).Draw(r, "at")) // 2000 to 2100
		day := DayOf(at)
		if at.Before(day.Start()) || !at.Before(day.End()) || !day.End().Equal(day.Next().Start()) {
			r.Fatalf("%s does not lie in %s, from %s to %s", at, day, day.Start(), day.End())
		}
		if want := at.In(seoul).Format(time.DateOnly); string(day) != want {
			r.Fatalf("got %s, want %s as the zone data say", day, want)
		}
		if again, err := ParseDay(string(day)); err != nil || again != day {
			r.Fatalf("got %s and %v, want %s", again, err, day)
		}
	})
}

// TestSeoul_NeedsNoZoneData: the zone is made, not loaded. Zone data would say UTC+10 for the summer of 1988, when Seoul
// last put its clocks forward.
func TestSeoul_NeedsNoZoneData(t *testing.T) {
	t.Parallel()
	at := time.Date(1988, 7, 1, 12, 0, 0, 0, time.UTC)
	if _, loaded := at.In(zone(t, "Asia/Seoul")).Zone(); loaded != 10*60*60 {
		t.Fatalf("got %d, want the zone data to tell one from the other", loaded)
	}
	if name, offset := at.In(Seoul()).Zone(); name != "KST" || offset != 9*60*60 {
		t.Errorf("got %s %d, want KST and nine hours", name, offset)
	}
}

func TestParseDay_Refuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "2026-02-30", "2026-13-01", "2026-5-1", "20260501", "2026-05-01T00:00:00", "01/05/2026", "오늘", " 2026-05-01"} {
		if day, err := ParseDay(text); !errors.Is(err, ErrDay) {
			t.Errorf("%q: got %q and %v, want %v", text, day, err, ErrDay)
		}
	}
}
