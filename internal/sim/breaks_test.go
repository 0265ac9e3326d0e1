package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// lastChance is when no redelivery of a notice can come any more, after the event; pendingMost is when a cancel that is
// still owed counts as nothing but unexplained, with what a sweeper that runs late is given.
const (
	lastChance  = 3*24*time.Hour + 19*time.Hour + time.Minute + 15*time.Minute
	pendingMost = lastChance + 15*time.Minute
)

// soon is when everything has been asked about several times, whatever the day's trouble.
const soon = 14 * time.Hour

// contradiction is something that no product can repair and that must be reported. It tells whether it could be brought
// about.
type contradiction struct {
	name   string
	inject func(s *story) bool
}

// breaks lists every contradiction. Each adds what must be found because of it, and nothing else may be.
func breaks() []contradiction {
	return []contradiction{
		{"the list has a cancel that the payment denies", (*story).ghostCancel},
		{"the list has a cancel of a stranger's payment", (*story).strangeCancel},
		{"the list never shows a cancel", func(s *story) bool { return s.hideCancel() }},
		{"the list never shows a capture", (*story).hideCapture},
		{"a cancel vanishes from the list", (*story).vanishCancel},
		{"a capture vanishes from the list", (*story).vanishCapture},
		{"the list has a cancel of another amount", func(s *story) bool { return s.forgeCancel() }},
		{"the list has a capture of another amount", (*story).forgeCapture},
		{"a row of the list changes its amount", (*story).changeRow},
		{"the list takes back a deposit that stands", (*story).unlistDeposit},
		{"the list has a word nobody knows", func(s *story) bool { return s.oddRow(ledger.KindUnrecognized, "PARTIAL_REVERSED", "700") }},
		{"the list has a fraction of a won", func(s *story) bool { return s.oddRow(ledger.KindQuarantined, "CANCELED", "700.5") }},
		{"money for an order that is not in the books", (*story).strangeCapture},
		{"the payment names another merchant", func(s *story) bool { return s.lie(ledger.KindMerchantDiffers, "mId", `"tsimshop99"`) }},
		{"the payment names another order", func(s *story) bool { return s.lie(ledger.KindOrderDiffers, "orderId", `"order-9999"`) }},
		{"the payment names another amount", func(s *story) bool {
			return s.lie(ledger.KindAmountDiffers, "totalAmount", `77777`)
		}},
		{"the payment names another currency", func(s *story) bool { return s.lie(ledger.KindCurrencyDiffers, "currency", `"USD"`) }},
		{"the payment has a fraction of a won", func(s *story) bool { return s.lie(ledger.KindQuarantined, "totalAmount", `1000.5`) }},
		{"the payment has a word nobody knows", func(s *story) bool { return s.lie(ledger.KindUnrecognized, "status", `"PARTIAL_REVERSED"`) }},
		{"an order is paid twice", (*story).payTwice},
		{"money comes after the order expired", (*story).payLate},
		{"a cancel takes credits that were spent", (*story).overspend},
	}
}

func (s *story) contradict(b contradiction) {
	s.Helper()
	if b.inject(s) {
		s.breaks[b.name]++
		s.tell("CONTRADICTION: %s", b.name)
	}
}

// today is the business day at the gateway.
func (s *story) today() ledger.Day { return ledger.DayOf(s.clock.Now()) }

// expect adds a claim.
func (s *story) expect(c claim) *claim {
	s.claims = append(s.claims, &c)
	return &c
}

// victimOf is a fresh sale of which something shall contradict itself; nothing else happens to it any more.
func (s *story) spoil() *sale {
	x := s.sell(tosssim.Card)
	if x != nil {
		x.spoilt = true
	}
	return x
}

// owed is a cancel that stays owed for ever.
func (s *story) owed(payment, transaction, why string, early bool) {
	c := claim{
		kind: ledger.KindCancelMissingHere, payments: []string{payment}, transaction: transaction, why: why,
		due: s.clock.Now().Add(pendingMost + 2*24*time.Hour), breaks: s.clock.Now().Add(lastChance), day: s.today(),
	}
	c.broken = c.due
	if early {
		c.due = s.clock.Now().Add(soon)
	}
	s.unbooked[transaction] = true
	s.expect(c)
}

func (s *story) ghostCancel() bool {
	x := s.spoil()
	if x == nil {
		return false
	}
	key := fmt.Sprintf("ghost-%s", x.order)
	s.must(s.gateway.PutTransaction(s.row(key, x.key, x.order, "PARTIAL_CANCELED", "600", s.clock.Now())))
	s.owed(x.key, key, "the list shows it, the payment does not", true)
	return true
}

func (s *story) strangeCancel() bool {
	s.foreign++
	payment, key := fmt.Sprintf("tsims20260101000000st%03d", s.foreign), fmt.Sprintf("stranger-%03d", s.foreign)
	s.must(s.gateway.PutTransaction(s.row(key, payment, fmt.Sprintf("order-stranger-%03d", s.foreign), "CANCELED", "800", s.clock.Now())))
	s.owed(payment, key, "nobody knows its payment", false)
	return true
}

func (s *story) hideCancel() bool {
	x := s.spoil()
	if x == nil {
		return false
	}
	key := s.dashboard(x, 650)
	if key == "" {
		return false
	}
	s.front.with(func() { s.front.hidden[key] = true })
	s.deliverNewest(x.key) // without the list only the notice, now or later, brings it into the books
	s.expect(claim{
		kind: ledger.KindCancelMissingThere, payments: []string{x.key}, transaction: key, why: "the list never shows it",
		due: s.clock.Now().Add(soon), breaks: s.clock.Now(), broken: s.clock.Now().Add(soon), unless: s.notBooked(key), day: s.today(),
	})
	return true
}

// notBooked tells whether the books lack a cancel: its notice may have been lost, and then nobody can know of it.
func (s *story) notBooked(transaction string) func() bool {
	return func() bool {
		type row struct {
			N int64 `db:"n"`
		}
		return rowsOf[row](s.town, `SELECT count(*) AS n FROM cancels WHERE transaction_key = $1`, transaction)[0].N == 0
	}
}

func (s *story) hideCapture() bool {
	x := s.order(tosssim.Card)
	x.spoilt = true
	if s.confirm(x).is() != "OK done" {
		x.spoilt = false
		return false
	}
	key := s.lastTransaction(x.key)
	s.front.with(func() { s.front.hidden[key] = true })
	s.expect(claim{
		kind: ledger.KindOrderWithoutPayment, payments: []string{x.key}, transaction: key, why: "the list never shows its capture",
		due: s.clock.Now().Add(soon), breaks: s.clock.Now(), broken: s.clock.Now().Add(soon), day: s.today(),
	})
	return true
}

func (s *story) lastTransaction(payment string) string {
	raw, _ := s.gateway.Payment(payment)
	var o struct {
		Key string `json:"lastTransactionKey"`
	}
	s.must(json.Unmarshal(raw, &o))
	return o.Key
}

// old is a row of an untouched sale, but by virtual account, that the list has shown for a while.
func (s *story) old(cancel bool) (row listed, x *sale) {
	s.Helper()
	return s.oldOf(cancel, func(x *sale, _ listed) bool { return x.method != tosssim.VirtualAccount })
}

// oldDeposit is the row of a deposit that stands, in both books.
func (s *story) oldDeposit() (row listed, x *sale) {
	s.Helper()
	type known struct {
		Row string `db:"transaction_key"`
	}
	both := rowsOf[known](s.town, `SELECT c.transaction_key FROM captures c JOIN mirror g USING (transaction_key)
		WHERE c.reversed_at IS NULL AND g.kind = 'capture' AND g.waiting_since IS NULL AND g.missing_since IS NULL`)
	return s.oldOf(false, func(x *sale, r listed) bool {
		return x.method == tosssim.VirtualAccount && s.lastTransaction(x.key) == r.Key && slices.Contains(both, known{r.Key})
	})
}

func (s *story) oldOf(cancel bool, which func(*sale, listed) bool) (row listed, x *sale) {
	s.Helper()
	var rows []listed
	s.front.with(func() {
		for _, r := range s.front.shown {
			rows = append(rows, r)
		}
	})
	slices.SortFunc(rows, func(a, b listed) int { return a.At.Compare(b.At)*2 + compareText(a.Key, b.Key) })
	var fit []listed
	var of []*sale
	for _, r := range rows {
		age := s.clock.Now().Sub(r.At)
		for _, x := range s.sales {
			if x.key == r.Payment && !x.spoilt && r.cancel() == cancel && r.won() > 0 && age > time.Hour && age < 2*24*time.Hour && which(x, r) {
				fit, of = append(fit, r), append(of, x)
			}
		}
	}
	if len(fit) == 0 {
		return listed{}, nil
	}
	n := s.rng.IntN(len(fit))
	return fit[n], of[n]
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// night is when the last days of the list have been read again.
func (s *story) night() time.Time { return s.clock.Now().Add(30 * time.Hour) }

func (s *story) vanishCancel() bool {
	row, x := s.old(true)
	if x == nil {
		return false
	}
	x.spoilt = true
	s.front.with(func() { s.front.hidden[row.Key] = true })
	s.expect(claim{
		kind: ledger.KindHistoryChanged, payments: []string{x.key}, transaction: row.Key, why: "the row is gone",
		due: s.night(), breaks: s.clock.Now(), broken: s.night(), unless: s.notBooked(row.Key), day: ledger.DayOf(row.At),
	})
	s.tell("the list forgets the cancel %s", row.Key)
	return true
}

func (s *story) vanishCapture() bool {
	row, x := s.old(false)
	if x == nil {
		return false
	}
	x.spoilt = true
	s.front.with(func() { s.front.hidden[row.Key] = true })
	paid := s.expect(claim{
		kind: ledger.KindOrderWithoutPayment, payments: []string{x.key}, transaction: row.Key, why: "the row of its capture is gone",
		due: s.night(), breaks: s.clock.Now(), broken: s.night(), day: ledger.DayOf(row.At),
	})
	s.expect(claim{
		kind: ledger.KindHistoryChanged, payments: []string{x.key}, transaction: row.Key, why: "the row is gone", due: s.night(),
		shadow: true, covers: paid, day: ledger.DayOf(row.At),
	})
	s.tell("the list forgets the capture %s", row.Key)
	return true
}

// unlistDeposit makes the list show a deposit as the list may show one that fell back, while the payment goes on having it.
func (s *story) unlistDeposit() bool {
	row, x := s.oldDeposit()
	if x == nil {
		return false
	}
	x.spoilt = true
	due := s.night().Add(3 * time.Hour)
	changed := claim{
		kind: ledger.KindHistoryChanged, payments: []string{x.key}, transaction: row.Key, why: "the list takes the deposit back", due: due,
		breaks: s.clock.Now(), broken: due, day: ledger.DayOf(row.At),
	}
	if s.rng.IntN(2) == 0 {
		s.front.with(func() {
			s.front.forged[row.Key] = map[string]json.RawMessage{"status": json.RawMessage(`"WAITING_FOR_DEPOSIT"`)}
		})
		s.tell("the list shows the deposit %s as waiting", row.Key)
	} else {
		s.front.with(func() { s.front.hidden[row.Key] = true })
		changed.breaks, changed.broken, changed.shadow = time.Time{}, time.Time{}, true
		changed.covers = s.expect(claim{
			kind: ledger.KindOrderWithoutPayment, payments: []string{x.key}, transaction: row.Key, why: "the row of its deposit is gone",
			due: due, breaks: s.clock.Now(), broken: due, day: ledger.DayOf(row.At),
		})
		s.tell("the list forgets the deposit %s", row.Key)
	}
	s.expect(changed)
	return true
}

func (s *story) forgeCancel() bool {
	x := s.spoil()
	if x == nil {
		return false
	}
	key := s.dashboard(x, 550)
	if key == "" {
		return false
	}
	s.forge(key, "555")
	s.expect(claim{
		kind: ledger.KindAmountDiffers, payments: []string{x.key}, transaction: key, why: "the list has another amount",
		due: s.clock.Now().Add(soon), breaks: s.clock.Now(), broken: s.clock.Now().Add(soon), day: s.today(),
	})
	return true
}

func (s *story) forge(key, amount string) {
	s.front.with(func() { s.front.forged[key] = map[string]json.RawMessage{"amount": json.RawMessage(amount)} })
}

func (s *story) forgeCapture() bool {
	x := s.order(tosssim.Card)
	if s.confirm(x).is() != "OK done" {
		return false
	}
	x.spoilt = true
	capture := s.lastTransaction(x.key)
	s.forge(capture, "88888")
	s.expect(claim{
		kind: ledger.KindAmountDiffers, payments: []string{x.key}, transaction: capture, taken: true, why: "the list has another amount",
		due: s.clock.Now().Add(soon), breaks: s.clock.Now(), broken: s.clock.Now().Add(soon), day: s.today(),
	})
	return true
}

func (s *story) changeRow() bool {
	row, x := s.old(s.rng.IntN(2) == 0)
	if x == nil {
		return false
	}
	x.spoilt = true
	s.forge(row.Key, fmt.Sprint(row.won()+1))
	s.expect(claim{
		kind: ledger.KindHistoryChanged, payments: []string{x.key}, transaction: row.Key, why: "the row has another amount than before",
		due: s.night(), breaks: s.clock.Now(), broken: s.night(), day: ledger.DayOf(row.At),
	})
	s.tell("the row %s changes", row.Key)
	return true
}

// oddRow is a row of the list that is in none of the sets.
func (s *story) oddRow(kind ledger.Kind, word, amount string) bool {
	x := s.spoil()
	if x == nil {
		return false
	}
	key := "odd-" + x.order
	s.must(s.gateway.PutTransaction(s.row(key, x.key, x.order, word, amount, s.clock.Now())))
	s.expect(claim{
		kind: kind, payments: []string{x.key}, transaction: key, why: "the row cannot be read", due: s.clock.Now().Add(soon),
		breaks: s.clock.Now(), broken: s.clock.Now().Add(soon), day: s.today(), wordless: true,
	})
	return true
}

func (s *story) strangeCapture() bool {
	s.foreign++
	key := s.gateway.Authenticate(tosssim.Checkout{OrderID: fmt.Sprintf("order-unheard-%03d", s.foreign), Amount: 6_600})
	s.must(s.gateway.Approve(key))
	s.expect(claim{
		kind: ledger.KindPaymentWithoutOrder, payments: []string{key}, transaction: s.lastTransaction(key), taken: true, why: "no such order",
		due: s.clock.Now().Add(soon), breaks: s.clock.Now(), broken: s.clock.Now().Add(soon), day: s.today(),
	})
	s.tell("money under %s for an order nobody made", key)
	return true
}

// lie makes the payment object say something else from now on; a cancel in the dashboard makes the product ask.
func (s *story) lie(kind ledger.Kind, members ...string) bool {
	x := s.spoil()
	if x == nil {
		return false
	}
	s.front.with(func() {
		s.front.lies[x.key] = map[string]json.RawMessage{}
		for n := 0; n < len(members); n += 2 {
			s.front.lies[x.key][members[n]] = json.RawMessage(members[n+1])
		}
	})
	capture := "" // named where the money that was taken is contradicted
	if kind == ledger.KindAmountDiffers || kind == ledger.KindCurrencyDiffers {
		capture = s.lastTransaction(x.key)
	}
	key := s.dashboard(x, 450)
	if key == "" {
		return false
	}
	s.expect(claim{kind: kind, payments: []string{x.key}, transaction: capture, why: "the payment object says " + members[0] + " " + members[1], due: s.clock.Now().Add(soon)})
	s.owed(x.key, key, "its payment object is not believed", false)
	return true
}

// payTwice is a second window for a paid order, approved without us.
func (s *story) payTwice() bool {
	first := s.sell(tosssim.Card)
	if first == nil {
		return false
	}
	second := s.window(first)
	first.spoilt, second.spoilt, second.second = true, true, true
	s.must(s.gateway.Approve(second.key))
	return true
}

// payLate is money that moves although both the window and the order have expired.
func (s *story) payLate() bool {
	x := s.order(tosssim.Card)
	x.spoilt = true
	s.pass(40 * time.Minute)
	s.must(s.gateway.Approve(x.key))
	return true
}

func (s *story) overspend() bool {
	x := s.sell(tosssim.Card)
	if x == nil {
		return false
	}
	s.use(x, x.credits)
	x.spoilt = true
	return s.dashboard(x, 0) != "" && x.spent > 0
}
