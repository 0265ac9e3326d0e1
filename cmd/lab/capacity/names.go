package capacity

import (
	"bytes"
	"strconv"
	"strings"
)

// name is a kind of name that a payment has. Each payment's are plain numbers of 18 digits, so that pgbench, which can
// count and nothing else, can put them into its statements; as text they have the form and about the length of real ones.
type name int

const (
	orderName name = iota + 1
	keyName
	captureName
	cancelName
	customerName
	transmissionName
)

func names() []name {
	return []name{orderName, keyName, captureName, cancelName, customerName, transmissionName}
}

// spread is how far apart the kinds are.
const spread = 100_000_000_000_000_000

// of is the name of that kind of payment n.
func (k name) of(n int) string { return strconv.FormatInt(int64(k)*spread+int64(n), 10) }

// variable is what pgbench calls it.
func (k name) variable() string { return "name_" + strconv.Itoa(int(k)) }

// eventPrefix begins the id of a copy's event; the name of its order ends it. The service works ids out by a hash, which
// pgbench cannot; these have the same length.
func eventPrefix(event int) string { return "evt_" + strings.Repeat("0", 7) + strconv.Itoa(event) }

// model is one payment that is copied: the names it has, which are replaced by those of payment n.
type model struct {
	names   map[name]string
	payment []byte // the gateway's object, canceled
	paid    []byte // its notice when it was paid
	notice  []byte // its notice of the cancel
}

// pattern is a text in which the names of a payment are put.
type pattern struct {
	parts [][]byte // one more than kinds
	kinds []name
}

// patternOf finds the model's names in a text.
func (m model) patternOf(text []byte) (p pattern) {
	for {
		at, kind := -1, name(0)
		for _, k := range names() {
			if known := m.names[k]; known != "" {
				if i := bytes.Index(text, []byte(known)); i >= 0 && (at < 0 || i < at) {
					at, kind = i, k
				}
			}
		}
		if at < 0 {
			p.parts = append(p.parts, text)
			return p
		}
		p.parts, p.kinds = append(p.parts, text[:at]), append(p.kinds, kind)
		text = text[at+len(m.names[kind]):]
	}
}

// of is the text for payment n.
func (p pattern) of(n int) []byte {
	text := make([]byte, 0, 4096)
	for i, kind := range p.kinds {
		text = append(text, p.parts[i]...)
		text = append(text, kind.of(n)...)
	}
	return append(text, p.parts[len(p.kinds)]...)
}

// notices are those of the copies' cancels, and approvals those of their payments, which come late.
func (m model) notices() func(n int) []byte   { return m.patternOf(m.notice).of }
func (m model) approvals() func(n int) []byte { return m.patternOf(m.paid).of }
