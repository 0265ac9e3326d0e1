package checkout

import (
	"encoding/json"

	"daesa/internal/web"
	"daesa/ledger"
)

// amount is an amount as the caller wrote it: a JSON number, or a string that holds one, because the gateway's sample
// front ends take it from the address bar. It becomes money once the currency is known.
type amount string

// UnmarshalJSON takes the digits verbatim. Anything but a number or a string is no amount: null is not zero.
func (a *amount) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	switch {
	case len(raw) > 0 && raw[0] == '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return errNoNumber()
		}
	case len(raw) == 0 || (raw[0] != '-' && (raw[0] < '0' || raw[0] > '9')):
		return errNoNumber()
	}
	*a = amount(text)
	return nil
}

func errNoNumber() error {
	return web.WithDetail(ErrAmount, "an amount must be a number, or a string that holds one")
}

// money reads the amount exactly. Nothing, less than nothing and fractions the currency lacks are refused.
func (a amount) money(currency ledger.Currency) (ledger.Money, error) {
	m, err := ledger.ParseMoney(string(a), currency)
	if err != nil || !m.Positive() {
		return ledger.Money{}, ErrAmount
	}
	return m, nil
}
