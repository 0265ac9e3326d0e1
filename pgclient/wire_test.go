package pgclient

import (
	"testing"
	"time"

	"daesa/ledger"
)

func TestParseTime_EveryShapeSeen(t *testing.T) {
	t.Parallel()
	at := func(nanoseconds int) time.Time { return time.Date(2026, 5, 1, 4, 30, 0, nanoseconds, time.UTC) }
	for _, test := range []struct {
		text string
		want time.Time
	}{
		{"2026-05-01T13:30:00+09:00", at(0)},
		{"2026-05-01T04:30:00+00:00", at(0)},
		{"2026-05-01T04:30:00Z", at(0)},
		{"2026-05-01T13:30:00+0900", at(0)},
		{"2026-05-01T13:30:00.65+0900", at(650000000)},
		{"2026-05-01T13:30:00.653270+09:00", at(653270000)},
		{"2026-05-01T13:30:00", at(0)},
		{"2026-05-01T13:30:00.6", at(600000000)},
		{"2026-05-01T13:30:00.000", at(0)},
		{"2026-05-01T13:30:00.65327", at(653270000)},
		{"2026-05-01T13:30:00.653270", at(653270000)},
		{"2026-05-01T13:30:00.653270123", at(653270123)},
		{"", time.Time{}},
		{"2026-05-01", time.Time{}},
		{"2026-05-01 13:30:00", time.Time{}},
		{"2026-13-01T13:30:00", time.Time{}},
		{"1777609800", time.Time{}},
		{"2026-05-01T13:30:00.0000000000000000000000000000000000000", time.Time{}},
	} {
		got, ok := parseTime(test.text)
		if !got.Equal(test.want) || ok == test.want.IsZero() {
			t.Errorf("%q: got %s %t, want %s", test.text, got, ok, test.want)
		}
	}
}

func TestObject_WrongTypesAreAbsent(t *testing.T) {
	t.Parallel()
	o, ok := decodeObject([]byte("\xef\xbb\xbf" + `{"n":12,"s":"12","f":5000.0,"e":5e4,"b":true,"z":null,"o":{},"l":[1],"nul":"a\u0000b","half":"\ud800x","N":7}`))
	if !ok {
		t.Fatal("not read")
	}
	for name, want := range map[string]string{"n": "12", "s": "12", "f": "5000.0", "e": "5e4", "b": "", "z": "", "o": "", "l": "", "none": ""} {
		if got := o.number(name); got != want {
			t.Errorf("number %s: got %q, want %q", name, got, want)
		}
	}
	if o.text("n", 9) != "" || o.text("nul", 9) != "ab" || o.text("half", 9) != "x" || o.identifier("nul", 9) != "" || o.identifier("half", 9) != "" {
		t.Error("text is not clean, or an altered key passes for a key")
	}
	if amount, err := o.money("f", ledger.KRW); err != nil || amount != ledger.Won(5000) {
		t.Error(amount, err)
	}
	for _, body := range []string{"", "null", "[]", `"x"`, "7", "{}{}", `{"a":1,}`, "a=1", "\xff\xfe{\x00}"} {
		if _, ok := decodeObject([]byte(body)); ok {
			t.Errorf("%q passes for an object", body)
		}
	}
}

func TestSanitized_KeepsWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"결제 😀 \u200fאב\ufeff": "결제 😀 \u200fאב\ufeff",
		"a\x00b\nc\x7f\u0085": "abc",
		"bad \xff utf8":       "bad  utf8",
	} {
		if got := sanitized(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := bounded("가나다라", 2); got != "가나" {
		t.Error(got)
	}
}

func TestKeys_OnlyPlainOnesBecomePartOfAnAddress(t *testing.T) {
	t.Parallel()
	long := make([]byte, 201)
	for i := range long {
		long[i] = 'a'
	}
	for _, key := range []string{
		"", "../settlements", "pk_t1/cancel", "pk_t1?x=1", "pk_t1#f", "pk_t1%2Fcancel", "http://127.0.0.1:9/", "pk\nX: 1",
		"pk_t1;rm", "pk t1", "pk\x00", `pk\..`, ".", "..", "키", string(long),
	} {
		if ValidPaymentKey(key) {
			t.Errorf("%q passes", key)
		}
	}
	if !ValidPaymentKey("tmock20260415101203Ab1c2") || !ValidPaymentKey(string(long[:200])) || !ValidOrderID("a-b_c=1") ||
		ValidOrderID("short") || ValidOrderID(string(long[:65])) {
		t.Error("a plain key does not pass, or an order id of the wrong length does")
	}
}

func FuzzParseTime(f *testing.F) {
	for _, text := range []string{"2026-05-01T13:30:00.65327", "2026-05-01T13:30:00+0900", "2026-05-01T13:30:00Z", "", "x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseTime(text)
		if !ok {
			return
		}
		again, ok := parseTime(got.Format(time.RFC3339Nano))
		if got.Year() <= 9999 && (!ok || !again.Equal(got)) {
			t.Errorf("%q: %s became %s", text, got, again)
		}
	})
}
