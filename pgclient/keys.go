package pgclient

// paymentKeyMax is the gateway's own limit.
const paymentKeyMax = 200

// ValidPaymentKey reports whether the key may become part of an address. Every key seen is letters, digits, '_',
// '-' and at most '='; anything else could re-aim a request that carries our secret at another path.
func ValidPaymentKey(key string) bool {
	return len(key) > 0 && len(key) <= paymentKeyMax && plain(key)
}

// ValidOrderID reports whether an order number that we make has the form the gateway documents. Numbers that come
// in are read more loosely: the gateway itself has accepted shorter ones.
func ValidOrderID(id string) bool { return len(id) >= 6 && len(id) <= 64 && plain(id) }

func plain(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '=':
		default:
			return false
		}
	}
	return true
}

// orderIDMax bounds an order number that comes in.
const orderIDMax = 200
