package sim_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"daesa/pgclient/tosssim"
)

// front stands before the simulated gateway and makes it contradict itself: its list lacks rows or shows them otherwise,
// and its payment objects say something else. It remembers every row that it ever answered.
type front struct {
	next   http.Handler
	clock  tosssim.Clock
	object func(payment string) ([]byte, bool)

	mu     sync.Mutex
	hidden map[string]bool                       // rows of the list that are not shown
	forged map[string]map[string]json.RawMessage // members of a row that are written otherwise
	lies   map[string]map[string]json.RawMessage // members of a payment object that are written otherwise, by payment key
	lateBy func(at time.Time) time.Duration      // how long after it happened a row is shown; nil = at once
	// In every second read that has something to lack.
	short      bool   // one row of ours that was shown before is not shown
	nothing    string // all rows are missing: an empty array, or null
	justSpoilt bool
	shown      map[string]listed // every row ever answered, as it was first
	quirks     quirks
	flick      bool // rows younger than the list may be late are shown in every third read only: two in a row may lack them
	spoilt     int  // reads that were short, empty or null
	read       int  // reads answered
}

// quirks are what the gateway does not document of its list, and what must make no difference.
type quirks struct {
	voidKey       bool // the cancel of an unpaid account has another key than in the payment object
	voidAmount    bool // and the whole amount
	presentStatus bool // an approval is listed with the payment's present status
}

// listed is one row of the list.
type listed struct {
	Key      string          `json:"transactionKey"`
	Payment  string          `json:"paymentKey"`
	Order    string          `json:"orderId"`
	Word     string          `json:"status"`
	Currency string          `json:"currency"`
	Amount   json.RawMessage `json:"amount"`
	At       time.Time       `json:"transactionAt"`
}

func (l listed) cancel() bool { return l.Word == "CANCELED" || l.Word == "PARTIAL_CANCELED" }

func (l listed) won() int64 {
	var amount int64
	_ = json.Unmarshal(l.Amount, &amount) // what is no whole number is no won
	return max(amount, -amount)
}

func newFront(gateway *tosssim.Sim, clock tosssim.Clock) *front {
	return &front{
		next: gateway.Handler(), object: gateway.Payment, clock: clock, hidden: map[string]bool{}, forged: map[string]map[string]json.RawMessage{},
		lies: map[string]map[string]json.RawMessage{}, shown: map[string]listed{},
	}
}

// ServeHTTP lets the gateway answer, and changes what it says.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isList, isGet := r.URL.Path == "/v1/transactions", strings.HasPrefix(r.URL.Path, "/v1/payments/")
	if !isList && !isGet {
		f.next.ServeHTTP(w, r)
		return
	}
	held := &heldReply{ResponseWriter: w, status: http.StatusOK}
	f.next.ServeHTTP(held, r)
	if held.hijacked {
		return
	}
	body := held.body.Bytes()
	switch {
	case held.status != http.StatusOK:
	case isList:
		body = f.list(body)
	default:
		body = f.payment(body)
	}
	w.WriteHeader(held.status)
	_, _ = w.Write(body)
}

func (f *front) list(body []byte) []byte {
	var rows []json.RawMessage
	if json.Unmarshal(body, &rows) != nil {
		return body
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read++
	short := f.short && !f.justSpoilt
	if f.justSpoilt = !f.justSpoilt && f.nothing != "" && len(rows) > 0; f.justSpoilt {
		f.spoilt++
		return []byte(f.nothing)
	}
	kept := make([]json.RawMessage, 0, len(rows))
	for _, raw := range rows {
		var row listed
		if json.Unmarshal(raw, &row) != nil {
			kept = append(kept, raw)
			continue
		}
		_, again := f.shown[row.Key]
		switch {
		case f.hidden[row.Key]:
			continue
		case !again && f.lateBy != nil && row.At.Add(f.lateBy(row.At)).After(f.clock.Now()):
			continue
		case again && short && ours(row) && row.At.Add(15*time.Minute).Before(f.clock.Now()):
			short, f.justSpoilt = false, true // one is enough, and the next read is whole
			f.spoilt++
			continue
		}
		if f.flick && f.read%3 != 0 && row.At.Add(9*time.Minute).After(f.clock.Now()) {
			continue
		}
		raw = rewritten(raw, f.forged[row.Key])
		_ = json.Unmarshal(raw, &row) // what was forged may not fit
		if !again {
			f.shown[row.Key] = row
		}
		kept = append(kept, rewritten(raw, f.odd(row)))
	}
	out, _ := json.Marshal(kept)
	return out
}

// odd is how the list's quirks have the row written.
func (f *front) odd(row listed) map[string]json.RawMessage {
	odd := map[string]json.RawMessage{}
	switch {
	case row.cancel() && string(row.Amount) == "0":
		if f.quirks.voidKey {
			odd["transactionKey"], _ = json.Marshal(row.Key + "L")
		}
		if f.quirks.voidAmount {
			odd["amount"] = f.member(row.Payment, "totalAmount")
		}
	case row.Word == "DONE" && f.quirks.presentStatus:
		var now listed
		if now.Word, _ = strconv.Unquote(string(f.member(row.Payment, "status"))); now.cancel() {
			odd["status"], _ = json.Marshal(now.Word)
		}
	}
	maps.DeleteFunc(odd, func(_ string, value json.RawMessage) bool { return value == nil })
	return odd
}

// member is what the payment object says now.
func (f *front) member(payment, name string) json.RawMessage {
	if raw, ok := f.object(payment); ok {
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) == nil {
			return object[name]
		}
	}
	return nil
}

func (f *front) payment(body []byte) []byte {
	var object struct {
		Key     string `json:"paymentKey"`
		Cancels []struct {
			Amount int64 `json:"cancelAmount"`
		} `json:"cancels"`
	}
	if json.Unmarshal(body, &object) != nil {
		return body
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	lies := maps.Clone(f.lies[object.Key])
	if total, _ := strconv.ParseInt(string(lies["totalAmount"]), 10, 64); total > 0 { // or the object contradicts itself
		for _, c := range object.Cancels {
			total -= c.Amount
		}
		lies["balanceAmount"] = json.RawMessage(strconv.FormatInt(total, 10))
	}
	return rewritten(body, lies)
}

func rewritten(raw []byte, members map[string]json.RawMessage) []byte {
	if len(members) == 0 {
		return raw
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return raw
	}
	maps.Copy(object, members)
	out, _ := json.Marshal(object)
	return out
}

// reads is how often the list was answered.
func (f *front) reads() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read
}

// moving reports whether young rows come and go.
func (f *front) moving() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flick
}

// ours reports whether the row is money of the shop.
func ours(row listed) bool {
	return strings.HasPrefix(row.Order, "order-") && (row.cancel() || row.Word == "DONE") && row.won() > 0
}

// with changes the front under its lock.
func (f *front) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// heldReply keeps an answer back.
type heldReply struct {
	http.ResponseWriter

	status   int
	body     bytes.Buffer
	hijacked bool
}

// WriteHeader keeps the status.
func (h *heldReply) WriteHeader(status int) { h.status = status }

// Write keeps the body.
func (h *heldReply) Write(b []byte) (int, error) { return h.body.Write(b) }

// Hijack gives the connection away: the gateway drops it.
func (h *heldReply) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	h.hijacked = true
	return http.NewResponseController(h.ResponseWriter).Hijack()
}
