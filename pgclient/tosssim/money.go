package tosssim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// decimals is how many digits the gateway writes after the point for a currency.
func decimals(currency string) int {
	if currency == "USD" {
		return 2
	}
	return 0
}

// number renders minor units as the gateway writes them: 50000 for won, 726.24, 41.5 and 0.0 for dollars.
func number(minor int64, currency string) json.RawMessage {
	if decimals(currency) == 0 {
		return json.RawMessage(strconv.FormatInt(minor, 10))
	}
	sign := ""
	if minor < 0 {
		sign, minor = "-", -minor
	}
	text := fmt.Sprintf("%s%d.%02d", sign, minor/100, minor%100)
	return json.RawMessage(strings.TrimSuffix(text, "0"))
}

// minorUnits reads an amount: a JSON number, or the same number as a string, which the official front-end samples send.
// Exponents, fractions the currency does not have, and anything else are refused.
func minorUnits(raw json.RawMessage, currency string) (int64, bool) {
	text := string(raw)
	if len(text) > 1 && text[0] == '"' {
		if json.Unmarshal(raw, &text) != nil {
			return 0, false
		}
	}
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > decimals(currency) || strings.ContainsAny(text, "eE+_ ") {
		return 0, false
	}
	fraction += strings.Repeat("0", decimals(currency)-len(fraction))
	minor, err := strconv.ParseInt(whole+fraction, 10, 64)
	return minor, err == nil
}

// vatOf is the tax inside an amount: a tenth of the net price, rounded half up. Foreign currencies carry none.
func vatOf(amount, taxFree int64, currency string) int64 {
	if currency != "KRW" || amount <= taxFree {
		return 0
	}
	return (2*(amount-taxFree) + 11) / 22
}
