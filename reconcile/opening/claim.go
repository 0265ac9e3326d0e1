package opening

import (
	"crypto/sha256"
	"fmt"
	"time"

	"daesa/ledger"
)

// Source names where claims come from.
type Source string

// The sources.
const (
	SourceCSV    Source = "csv"
	SourceMirror Source = "mirror"
)

// Claim is what a row says of one payment. Fields that the row leaves out are not compared.
type Claim struct {
	Line       int // of the file, or the payment's number in the import of a stretch of the mirror
	PaymentKey string
	OrderID    string
	Amount     ledger.Money
	Canceled   *ledger.Money // until the books were opened
	CapturedAt time.Time
	OrderedAt  time.Time
	CustomerID string
	Name       string
	Credits    int64
	Fields     []string // as they were written, for the rejects
	Problem    string   // why the row cannot be read; "" when it can
}

// Claims is everything one import is asked to take over.
type Claims struct {
	Source Source
	Name   string            // of the file, for people
	Digest [sha256.Size]byte // of the file, or of the stretch of the mirror: which import it is
	Header []string
	Rows   []Claim
}

// order is the order that the claim speaks of.
func (c Claim) order() ledger.Order {
	return ledger.Order{
		ID: c.OrderID, Amount: c.Amount, CustomerID: c.CustomerID, Name: c.Name, Credits: c.Credits, CreatedAt: c.OrderedAt,
	}
}

// differs compares the claim with the gateway's answer and names the first difference; "" when there is none.
func (c Claim) differs(seen ledger.Observation, openingAt time.Time) string {
	switch {
	case seen.OrderID != c.OrderID:
		return fmt.Sprintf("the gateway names order %s", seen.OrderID)
	case seen.Total != c.Amount:
		return fmt.Sprintf("the gateway's amount is %s", seen.Total)
	case !c.CapturedAt.IsZero() && !seen.CapturedAt.Truncate(time.Second).Equal(c.CapturedAt.Truncate(time.Second)):
		return fmt.Sprintf("the gateway took it at %s", seen.CapturedAt.In(ledger.Seoul()).Format(time.DateTime))
	}
	if c.Canceled == nil {
		return ""
	}
	canceled := ledger.Money{Currency: seen.Total.Currency}
	for _, one := range seen.Cancels {
		if one.State != ledger.CancelDone || !one.CanceledAt.Before(openingAt) {
			continue
		}
		sum, err := canceled.Add(one.Amount)
		if err != nil {
			return "the gateway's cancels cannot be added up"
		}
		canceled = sum
	}
	if canceled != *c.Canceled {
		return fmt.Sprintf("the gateway had canceled %s when the books were opened", canceled)
	}
	return ""
}
