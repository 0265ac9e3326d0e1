package reconcile

import "fmt"

// detailMax is how many characters of what is said of a mismatch are kept.
const detailMax = 500

// whose says which payment and order a transaction is of. What is empty nobody has said.
type whose struct{ PaymentKey, OrderID string }

// differs reports whether both say whose it is, and not the same.
func (w whose) differs(o whose) bool {
	payment := w.PaymentKey != o.PaymentKey && w.PaymentKey != "" && o.PaymentKey != ""
	return payment || (w.OrderID != o.OrderID && w.OrderID != "" && o.OrderID != "")
}

// otherOrder is the same in SQL: it holds where two order ids are known, and are not the same.
func otherOrder(a, b string) string {
	return `(` + a + ` <> ` + b + ` AND ` + a + ` <> '' AND ` + b + ` <> '')`
}

func (w whose) String() string { return fmt.Sprintf("payment %s, order %q,", w.PaymentKey, w.OrderID) }

// detailWhose says that both books have one transaction of two payments or orders, in no more words than are kept.
func detailWhose(what Movement, listed, booked whose) string {
	said := []rune(fmt.Sprintf("the %s is of %s at the gateway and of %s here", what, listed, booked))
	return string(said[:min(len(said), detailMax)])
}

// addTo adds to the evidence of a side whose the transaction is by it.
func (w whose) addTo(evidence map[string]any) {
	evidence["payment_key"], evidence["order_id"] = w.PaymentKey, w.OrderID
}
