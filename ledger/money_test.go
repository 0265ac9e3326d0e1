package ledger

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseMoney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		number string
		in     Currency
		want   int64
	}{
		{"won", "50000", KRW, 50_000},
		{"won with an empty fraction", "5000.0", KRW, 5_000},
		{"won with a long empty fraction", "5000.000000", KRW, 5_000},
		{"nothing", "0", KRW, 0},
		{"nothing with a fraction", "0.0", KRW, 0},
		{"nothing below nothing", "-0.0", KRW, 0},
		{"nothing, however raised", "0e40", KRW, 0},
		{"exponent", "5e4", KRW, 50_000},
		{"capital exponent", "5E4", KRW, 50_000},
		{"exponent with plus", "5e+4", KRW, 50_000},
		{"exponent below nothing", "500000e-1", KRW, 50_000},
		{"exponent and fraction", "1.5e3", KRW, 1_500},
		{"exponent that clears the fraction", "726.24e2", KRW, 72_624},
		{"leading zeros", "0050000", KRW, 50_000},
		{"below nothing", "-100", KRW, -100},
		{"the most", "9223372036854775807", KRW, math.MaxInt64},
		{"cents", "726.24", USD, 72_624},
		{"dimes", "726.2", USD, 72_620},
		{"dollars", "726", USD, 72_600},
		{"cents by exponent", "72624e-2", USD, 72_624},
		{"a cent", "0.01", USD, 1},
		{"cents below nothing", "-0.01", USD, -1},
		{"cents with an empty third digit", "726.240", USD, 72_624},
		{"yen", "1000", JPY, 1_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseMoney(c.number, c.in)
			if want := (Money{Minor: c.want, Currency: c.in}); err != nil || got != want {
				t.Errorf("%s: got %v and %v, want %v", c.number, got, err, want)
			}
		})
	}
}

func TestParseMoney_QuarantinesWhatItCannotHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		number string
		in     Currency
	}{
		{"half a won", "50000.5", KRW},
		{"less than half a won", "50000.4", KRW},
		{"a won and a hair", "50000.000000000000000001", KRW},
		{"a tenth by exponent", "1e-1", KRW},
		{"half a cent", "726.245", USD},
		{"a fraction of a yen", "726.24", JPY},
		{"one above the most", "9223372036854775808", KRW},
		{"the most below nothing and one", "-9223372036854775809", KRW},
		{"above the most in cents", "92233720368547758.08", USD},
		{"a large exponent", "1e400", KRW},
		{"a huge exponent", "1e999999999", KRW},
		{"an exponent beyond int", "1e99999999999999999999", KRW},
		{"a tiny exponent", "1e-999999999", KRW},
		{"very long", strings.Repeat("9", 41), KRW},
		{"a megabyte", strings.Repeat("0", 1<<20) + "1", KRW},
		{"empty", "", KRW},
		{"a sign alone", "-", KRW},
		{"a plus", "+1", KRW},
		{"two signs", "--1", KRW},
		{"hexadecimal", "0x1", KRW},
		{"underscores", "50_000", KRW},
		{"separators", "50,000", KRW},
		{"fullwidth digits", "１２", KRW},
		{"arabic digits", "٣", KRW},
		{"a leading point", ".5", KRW},
		{"two points", "1.0.0", KRW},
		{"two exponents", "1e1e1", KRW},
		{"an empty exponent", "1e", KRW},
		{"a fraction in the exponent", "1e1.0", KRW},
		{"infinity", "Infinity", KRW},
		{"not a number", "NaN", KRW},
		{"null", "null", KRW},
		{"a string", `"50000"`, KRW},
		{"a space", " 50000", KRW},
		{"a NUL", "50000\x00", KRW},
		{"micro dollars", "726240000", "MUSD"},
		{"a small currency", "1", "krw"},
		{"no currency", "1", ""},
		{"credits are no money of a payment", "1", Credits},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseMoney(c.number, c.in)
			if !errors.Is(err, ErrMoney) || got != (Money{}) {
				t.Errorf("got %v and %v, want nothing and %v", got, err, ErrMoney)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("got an error of %d bytes, want a bounded one", len(err.Error()))
			}
		})
	}
}

func TestMoney_AddAndSub(t *testing.T) {
	t.Parallel()
	most, least := Won(math.MaxInt64), Won(math.MinInt64)
	for _, c := range []struct {
		name      string
		m, n      Money
		sum, diff int64 // -1: not to be held
		refused   string
	}{
		{"small", Won(3), Won(2), 5, 1, ""},
		{"to the edge", Won(math.MaxInt64 - 1), Won(1), math.MaxInt64, math.MaxInt64 - 2, ""},
		{"over the edge", most, Won(1), 0, math.MaxInt64 - 1, "sum"},
		{"under the edge", least, Won(1), math.MinInt64 + 1, 0, "difference"},
		{"the least added", Won(0), least, math.MinInt64, 0, "difference"},
		{"the least taken from the least", least, least, 0, 0, "sum difference"},
		{"two currencies", Won(1), Money{Minor: 1, Currency: JPY}, 0, 0, "sum difference"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sum, err := c.m.Add(c.n)
			checkMoney(t, "sum", sum, err, c.sum, strings.Contains(c.refused, "sum"))
			diff, err := c.m.Sub(c.n)
			checkMoney(t, "difference", diff, err, c.diff, strings.Contains(c.refused, "difference"))
		})
	}
}

func checkMoney(t *testing.T, what string, got Money, err error, want int64, refused bool) {
	t.Helper()
	switch {
	case refused && (!errors.Is(err, ErrMoney) || got != (Money{})):
		t.Errorf("%s: got %v and %v, want %v", what, got, err, ErrMoney)
	case !refused && (err != nil || got != Won(want)):
		t.Errorf("%s: got %v and %v, want %d", what, got, err, want)
	}
}

func TestMoney_AddAgreesWithBigIntegers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m, n := Won(rapid.Int64().Draw(r, "m")), Won(rapid.Int64().Draw(r, "n"))
		want := new(big.Int).Add(big.NewInt(m.Minor), big.NewInt(n.Minor))
		got, err := m.Add(n)
		if want.IsInt64() != (err == nil) || err == nil && got != Won(want.Int64()) {
			r.Fatalf("got %v and %v, want %s", got, err, want)
		}
	})
}

func TestMoney_DecimalIsReadBackAsItIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := Money{Minor: rapid.Int64().Draw(r, "minor"), Currency: rapid.SampledFrom([]Currency{KRW, USD, JPY}).Draw(r, "currency")}
		if m.Minor == math.MinInt64 {
			return // its absolute value cannot be held, and no amount is it
		}
		if got, err := ParseMoney(m.Decimal(), m.Currency); err != nil || got != m {
			r.Fatalf("%s: got %v and %v, want %v", m.Decimal(), got, err, m)
		}
	})
}

func TestMoney_Decimal(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Money{
		"0 KRW": Won(0), "50000 KRW": Won(50_000), "-1 KRW": Won(-1),
		"0.00 USD": {0, USD}, "0.01 USD": {1, USD}, "-0.01 USD": {-1, USD}, "726.24 USD": {72_624, USD}, "-10.00 USD": {-1_000, USD},
		"-92233720368547758.08 USD": {math.MinInt64, USD},
	} {
		if got := m.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestShare_AgreesWithBigIntegers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		whole := rapid.Int64Range(0, math.MaxInt64).Draw(r, "whole")
		of := rapid.Int64Range(1, math.MaxInt64).Draw(r, "of")
		part := rapid.Int64Range(0, of).Draw(r, "part")
		want := new(big.Int).Mul(big.NewInt(whole), big.NewInt(part))
		want.Quo(want, big.NewInt(of))
		if got := Share(whole, part, of); got != want.Int64() {
			r.Fatalf("got %d, want %s", got, want)
		}
	})
}

func TestShare_OutsideItsRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ whole, part, of, want int64 }{
		{7, 0, 50_000, 0},
		{7, 50_000, 50_000, 7},
		{7, 50_001, 50_000, 7},
		{0, 1, 2, 0},
		{7, 1, 0, 0},
		{-7, 1, 2, 0},
		{7, -1, 2, 0},
		{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 - 1},
	} {
		if got := Share(c.whole, c.part, c.of); got != c.want {
			t.Errorf("Share(%d, %d, %d): got %d, want %d", c.whole, c.part, c.of, got, c.want)
		}
	}
}

// FuzzParseMoney compares with exact rational arithmetic: what is accepted is a JSON number (leading zeros aside)
// whose value is exactly the minor units told.
func FuzzParseMoney(f *testing.F) {
	for _, seed := range []string{
		"50000", "726.24", "5000.0", "0.0", "50000.4", "-100", "1e400", "1e999999999", "5e4", "5E-1", "", "0x1", "１２", "-", "1.", "1.e1",
		"9223372036854775807", "9223372036854775808", "-0", "00", "1e-0", "1e+", "0e-40", "1_0",
	} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$`)
	f.Fuzz(func(t *testing.T, number string) {
		for _, currency := range []Currency{KRW, USD} {
			decimals, _ := currency.decimals()
			unit := []int64{1, 10, 100}[decimals]
			got, err := ParseMoney(number, currency)
			if err != nil {
				continue
			}
			if !form.MatchString(number) {
				t.Fatalf("%q: got %v for what is no number", number, got)
			}
			value, ok := new(big.Rat).SetString(number)
			if !ok || value.Mul(value, big.NewRat(unit, 1)).Cmp(new(big.Rat).SetInt64(got.Minor)) != 0 {
				t.Fatalf("%q: got %v, want exactly %s minor units", number, got, value.RatString())
			}
		}
	})
}
