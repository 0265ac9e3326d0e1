package tosssim

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// row is one line of the list: an approval, the issue of a virtual account, a cancel.
type row struct {
	key string
	at  time.Time
	doc document
}

const (
	rowsByDefault = 100
	rowsAtMost    = 5000
)

// addRow enters what just happened to a payment into the list.
func (s *Sim) addRow(p *payment, key string, amount int64, at time.Time) {
	var customer any
	if p.customerKey != "" {
		customer = p.customerKey
	}
	s.rows = append(s.rows, row{key: key, at: at.Truncate(time.Second), doc: object(
		"mId", s.cfg.MerchantID, "transactionKey", key, "paymentKey", p.key, "orderId", p.orderID(),
		"method", p.doc.get("method"), "customerKey", customer, "useEscrow", false, "receiptUrl", receiptURL(p.key),
		"status", p.status(), "transactionAt", s.stamp(at), "currency", p.currency(), "amount", number(amount, p.currency()),
	)})
}

// PutTransaction seeds a row of the list, whatever is odd in it; it needs a transactionKey and a transactionAt with offset.
func (s *Sim) PutTransaction(raw []byte) error {
	doc, err := parseDocument(raw)
	if err != nil {
		return fmt.Errorf("read transaction: %w", err)
	}
	key := doc.text("transactionKey")
	at, err := time.Parse(time.RFC3339Nano, doc.text("transactionAt"))
	if err != nil || key == "" {
		return errors.New("read transaction: transactionKey, or transactionAt with an offset, is missing")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, row{key: key, at: at, doc: doc})
	return nil
}

// list answers GET /v1/transactions: a bare array of the rows between two Korean times, both included, oldest first.
func (s *Sim) list(in *inbound) reply {
	s.expireDue()
	query, err := url.ParseQuery(in.call.RawQuery)
	if err != nil {
		return refuse("INVALID_REQUEST")
	}
	from, okFrom := s.parseDate(query.Get("startDate"))
	to, okTo := s.parseDate(query.Get("endDate"))
	if !okFrom || !okTo || to.Before(from) {
		return refuse("INVALID_DATE")
	}
	limit := rowsByDefault
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > rowsAtMost {
			return refuse("INVALID_REQUEST")
		}
	}
	rows := s.visible(from, to)
	if after := query.Get("startingAfter"); after != "" {
		at := slices.IndexFunc(rows, func(r row) bool { return r.key == after })
		if at < 0 {
			return refuse("INVALID_TRANSACTION_KEY")
		}
		rows = rows[at+1:]
	}
	parts := make([][]byte, 0, min(limit, len(rows)))
	for _, r := range rows[:min(limit, len(rows))] {
		if in.english() {
			r.doc = translated(r.doc)
		}
		parts = append(parts, r.doc.bytes())
	}
	return reply{status: http.StatusOK, body: slicesOf(parts)}
}

// visible returns the rows of a window that have aged past the list's lag, by time and then in the order they happened.
func (s *Sim) visible(from, to time.Time) []row {
	now := s.clock.Now()
	var rows []row
	for _, r := range s.rows {
		if !r.at.Before(from) && !r.at.After(to) && !r.at.Add(s.cfg.ListLag).After(now) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.at.Compare(b.at) })
	return rows
}

// parseDate reads a date of the query: Korean time without a zone and without fractions, or a day alone. A Z at the end or
// milliseconds make the gateway answer INVALID_DATE.
func (s *Sim) parseDate(text string) (time.Time, bool) {
	for layout, length := range map[string]int{"2006-01-02T15:04:05": 19, time.DateOnly: 10} {
		if len(text) != length {
			continue
		}
		at, err := time.ParseInLocation(layout, text, s.zone)
		return at, err == nil
	}
	return time.Time{}, false
}
