package ledger

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Currency is an ISO 4217 code whose minor unit the ledger knows.
type Currency string

// The currencies the gateway settles in. Credits are counted in the same journal under their own unit.
const (
	KRW     Currency = "KRW"
	USD     Currency = "USD"
	JPY     Currency = "JPY"
	Credits Currency = "CREDIT"
)

// ErrMoney reports an amount that cannot be held exactly: an unknown currency, a fraction the currency does
// not have, or a number too large. Such money is quarantined, never rounded.
var ErrMoney = errors.New("amount cannot be held exactly")

// Money is an exact amount: minor units (won, cents, yen) of one currency.
type Money struct {
	Minor    int64
	Currency Currency
}

// Won is n won.
func Won(n int64) Money { return Money{Minor: n, Currency: KRW} }

// decimals returns how many digits the minor unit has.
func (c Currency) decimals() (int, bool) {
	switch c {
	case KRW, JPY, Credits:
		return 0, true
	case USD:
		return 2, true
	}
	return 0, false
}

// Known reports whether the ledger can hold the currency as money of a payment.
func (c Currency) Known() bool {
	_, ok := c.decimals()
	return ok && c != Credits
}

// numberLengthMax bounds what ParseMoney reads: no real amount is longer, and a hostile one must cost nothing.
const numberLengthMax = 40

// ParseMoney reads a decimal number as JSON writes it ("50000", "726.24", "5000.0", "5e4") into minor units.
// A value that the currency cannot hold exactly gives ErrMoney. Negative numbers are read: the sign of a
// cancel row is not documented by the gateway, so the caller judges it.
func ParseMoney(number string, currency Currency) (Money, error) {
	decimals, ok := currency.decimals()
	if !ok || currency == Credits {
		return Money{}, fmt.Errorf("currency %.8q: %w", string(currency), ErrMoney)
	}
	minor, ok := scaled(number, decimals)
	if !ok {
		return Money{}, fmt.Errorf("%.48q %s: %w", number, currency, ErrMoney)
	}
	return Money{Minor: minor, Currency: currency}, nil
}

// scaled returns number × 10^decimals when that is an integer that fits.
func scaled(number string, decimals int) (int64, bool) {
	if number == "" || len(number) > numberLengthMax {
		return 0, false
	}
	digits, negative := strings.CutPrefix(number, "-")
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(digits), "e")
	shift := decimals
	if hasExponent {
		e, err := strconv.Atoi(exponent)
		if err != nil || e < -numberLengthMax || e > numberLengthMax {
			return 0, false
		}
		shift += e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole == "" || !allDigits(whole) || !allDigits(fraction) {
		return 0, false
	}
	shift -= len(fraction)
	text := strings.TrimLeft(whole+fraction, "0")
	for ; shift < 0 && strings.HasSuffix(text, "0"); shift++ {
		text = text[:len(text)-1]
	}
	if text == "" {
		return 0, true
	}
	if shift < 0 {
		return 0, false
	}
	value, err := strconv.ParseInt(text+strings.Repeat("0", shift), 10, 64)
	if err != nil {
		return 0, false
	}
	if negative {
		value = -value
	}
	return value, true
}

func allDigits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// Decimal writes the amount as a decimal number without thousands separators: "50000", "726.24".
func (m Money) Decimal() string {
	decimals, _ := m.Currency.decimals()
	if decimals == 0 {
		return strconv.FormatInt(m.Minor, 10)
	}
	sign, digits := "", strconv.FormatInt(m.Minor, 10)
	if m.Minor < 0 {
		sign, digits = "-", digits[1:]
	}
	if pad := decimals + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	at := len(digits) - decimals
	return sign + digits[:at] + "." + digits[at:]
}

// String writes the amount for people: "50000 KRW".
func (m Money) String() string { return m.Decimal() + " " + string(m.Currency) }

// IsZero reports whether the amount is nothing, in any currency.
func (m Money) IsZero() bool { return m.Minor == 0 }

// Positive reports whether the amount is above nothing.
func (m Money) Positive() bool { return m.Minor > 0 }

// Add returns m + n. Different currencies or an overflow give ErrMoney.
func (m Money) Add(n Money) (Money, error) {
	sum := m.Minor + n.Minor
	if m.Currency != n.Currency || (n.Minor > 0 && sum < m.Minor) || (n.Minor < 0 && sum > m.Minor) {
		return Money{}, fmt.Errorf("add %s to %s: %w", n, m, ErrMoney)
	}
	return Money{Minor: sum, Currency: m.Currency}, nil
}

// Sub returns m − n, under the same conditions as Add.
func (m Money) Sub(n Money) (Money, error) {
	if n.Minor == math.MinInt64 {
		return Money{}, fmt.Errorf("subtract %s: %w", n, ErrMoney)
	}
	return m.Add(Money{Minor: -n.Minor, Currency: n.Currency})
}

// Share returns floor(whole × part ÷ of) without overflow, for 0 ≤ part ≤ of and 0 < of: how many of the
// credits granted are revoked once part of a capture is canceled.
func Share(whole, part, of int64) int64 {
	if whole <= 0 || part <= 0 || of <= 0 {
		return 0
	}
	if part >= of {
		return whole
	}
	high, low := bits.Mul64(uint64(whole), uint64(part))
	quotient, _ := bits.Div64(high, low, uint64(of))
	return int64(quotient) //nolint:gosec // below whole, because part is below of
}
