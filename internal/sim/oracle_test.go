package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/ledger/seal"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// claim is a mismatch that must be found, because of something the story did.
type claim struct {
	kind        ledger.Kind
	payments    []string // about one of these
	transaction string   // "" = about none
	times       int      // as often, on different payments; 0 = once
	why         string

	due time.Time // surely from then on
	// A full audit shows it on its line of breaks: not before breaks, and surely from broken on. Zero = never.
	breaks, broken time.Time
	day            ledger.Day  // whose closing run shows it as well, in the end; "" = none's
	wordless       bool        // nobody can read its row, so that the row is none of what a signature covers
	mended         time.Time   // when the gateway stopped to contradict itself: some time after that no audit shows it
	taken          bool        // a listed capture: what is accepted of it is in a figure, and on no line
	shadow         bool        // shown only where the break of the same transaction that it covers is not
	settles        bool        // the books agree again in the end, and it is resolved by itself
	accepted       bool        // a person accepts the difference: no audit calls it a break any more
	covers         *claim      // who accepts this has accepted that break too
	unless         func() bool // nobody can know of it
}

func (c claim) String() string {
	return fmt.Sprintf("%s of %v %s (%s)", c.kind, c.payments, c.transaction, c.why)
}

// mismatch is one row of the product's list.
type mismatch struct {
	Kind        ledger.Kind `db:"kind"`
	Payment     string      `db:"payment_key"`
	Transaction string      `db:"transaction_key"`
	Status      string      `db:"status"`
	ResolvedAs  string      `db:"resolved_as"`
	Detail      string      `db:"detail"`
}

// mayShow reports whether an audit may show the claim as a break now.
func (c claim) mayShow(now time.Time) bool {
	return (c.mended.IsZero() || now.Before(c.mended.Add(mendedMost))) && (c.shadow || (!c.breaks.IsZero() && !now.Before(c.breaks)))
}

// mustShow reports whether every audit in full has shown the claim as a break for so long.
func (c claim) mustShow(now time.Time, long time.Duration) bool {
	return !c.broken.IsZero() && !now.Before(c.broken.Add(long)) && (c.unless == nil || !c.unless())
}

func (c claim) about(m mismatch) bool {
	return c.kind == m.Kind && slices.Contains(c.payments, m.Payment) && c.transaction == m.Transaction
}

// shows reports whether an entry of a statement is about the claim. An edit of the books is known by its payment alone.
func (c claim) shows(e reconcile.Entry) bool {
	return c.kind == e.Kind && slices.Contains(c.payments, e.PaymentKey) && (c.transaction == "" || c.transaction == e.TransactionKey)
}

// observe notes what the service is about to judge by its own clock: payments in doubt for too long, orders expired.
func (s *story) observe() {
	s.Helper()
	type doubt struct {
		Payment string    `db:"payment_key"`
		Since   time.Time `db:"undecided_since"`
	}
	for _, d := range rowsOf[doubt](s.town, `SELECT payment_key, undecided_since FROM payments WHERE undecided_since IS NOT NULL`) {
		if s.now().Sub(d.Since) >= ledger.UndecidedAgeMax {
			s.aged[d.Payment] = true
		}
	}
	type late struct {
		Order    string `db:"order_id"`
		Captures int    `db:"captures"`
	}
	for _, o := range rowsOf[late](s.town, `
		SELECT o.order_id, (SELECT count(*) FROM captures c JOIN payments p USING (payment_key) WHERE p.order_id = o.order_id)::integer AS captures
		FROM orders o WHERE o.status = 'expired'`) {
		if _, seen := s.expired[o.Order]; !seen {
			s.expired[o.Order] = o.Captures
		}
	}
}

// due is everything that must or may be found: what was injected, and what follows from how the books came about.
func (s *story) due() []*claim {
	s.Helper()
	all := slices.Clone(s.claims)
	for payment := range s.aged {
		all = append(all, &claim{kind: ledger.KindStaleUnknown, payments: []string{payment}, why: "in doubt for an hour", settles: true, due: s.clock.Now()})
	}
	return append(all, s.surplus()...)
}

// taken is the money of one order, as the books have it.
type taken struct {
	Order    string   `db:"order_id"`
	Payments []string `db:"payments"`
	Captures int      `db:"captures"`
}

// surplus is what follows from money: the order that was paid twice or late, and credits that were spent.
func (s *story) surplus() []*claim {
	s.Helper()
	var all []*claim
	for _, t := range rowsOf[taken](s.town, `
		SELECT p.order_id, array_agg(DISTINCT p.payment_key) AS payments, count(*)::integer AS captures
		FROM captures c JOIN payments p USING (payment_key) GROUP BY p.order_id ORDER BY p.order_id`) {
		if n := len(t.Payments) - 1; n > 0 {
			all = append(all, &claim{kind: ledger.KindPaidTwice, payments: t.Payments, times: n, why: "a second payment took money", due: s.clock.Now(), settles: s.returned[t.Order]})
		}
		if before, expired := s.expired[t.Order]; expired && t.Captures > before {
			all = append(all, &claim{kind: ledger.KindPaidAfterExpiry, payments: t.Payments, why: "the order had expired", due: s.clock.Now()})
		}
	}
	type refunded struct {
		Payment  string `db:"payment_key"`
		Captured int64  `db:"captured"`
		Canceled int64  `db:"canceled"`
	}
	for _, r := range rowsOf[refunded](s.town, `
		SELECT p.payment_key, c.amount AS captured, sum(x.amount)::bigint AS canceled
		FROM payments p JOIN captures c USING (payment_key) JOIN cancels x USING (payment_key)
		WHERE c.reversed_at IS NULL GROUP BY p.payment_key, c.amount`) {
		for _, x := range s.sales {
			if x.key == r.Payment && x.spent > x.credits-x.credits*r.Canceled/r.Captured {
				all = append(all, &claim{kind: ledger.KindCreditsSpent, payments: []string{x.key}, why: "spent before", due: s.clock.Now()})
			}
		}
	}
	return all
}

// judge holds the service against the story: at the end of each day, and finally when nothing moves any more.
func (s *story) judge(final bool) {
	s.Helper()
	for range 3 {
		s.pass(2 * time.Minute)
	}
	full, err := s.app.AuditAll(s.ctx())
	s.must(err)
	s.verdicts[string(full.Verdict)]++
	s.tell("verdict %s", full.Verdict)
	s.requireExplained("the audit of everything", full)
	s.requireVerdict(full)
	s.requireGateway(full)
	s.requireMismatches(final)
	s.requireSigned(final)
	s.requireStorm()
	s.requireDeposits()
	s.requireSound()
	s.requireClosed(final)
	if final {
		s.requireMoney()
		s.requireNothingOwed()
		s.requireShown(full)
	}
}

// requireExplained: the identity adds up, and no break is shown that the story did not bring about.
func (s *story) requireExplained(what string, statement reconcile.Statement) {
	s.Helper()
	if statement.Verdict == reconcile.VerdictError {
		s.Errorf("%s ended in an error: %v", what, statement.Reasons)
	}
	for _, sum := range statement.Sums {
		if !sum.Holds() {
			s.Errorf("%s: the identity does not hold: %+v", what, sum)
		}
	}
	if len(statement.Drift) > 0 && !s.edited {
		s.Errorf("%s found the running sums wrong: %v", what, statement.Drift)
	}
	claims := s.due()
	for _, e := range broken(statement) {
		if !slices.ContainsFunc(claims, func(c *claim) bool { return c.shows(e) && c.mayShow(s.clock.Now()) }) {
			s.Errorf("%s: FALSE ALARM: %s of payment %s, transaction %s: %s", what, e.Kind, e.PaymentKey, e.TransactionKey, e.Note)
		}
	}
}

// broken is what a statement shows as breaks, in whatever currency.
func broken(statement reconcile.Statement) []reconcile.Entry {
	var all []reconcile.Entry
	for _, line := range statement.Lines {
		if line.Name == reconcile.LineBreaks {
			all = append(all, line.Entries...)
		}
	}
	return all
}

// requireUnsure: a list that could not be read proves nothing, so nobody may be told that all is well.
func (s *story) requireUnsure(statement reconcile.Statement) {
	s.Helper()
	if v := statement.Verdict; v == reconcile.VerdictReconciled || v == reconcile.VerdictPending {
		s.Errorf("the verdict is %s although the list could not be read since %s", v, s.readAt)
	}
}

// requireVerdict: the verdict of a full audit is the one that the story calls for, and each break is shown once.
func (s *story) requireVerdict(statement reconcile.Statement) {
	s.Helper()
	entries := broken(statement)
	for _, c := range s.claims {
		shown := 0
		for _, e := range entries {
			if c.shows(e) {
				shown++
			}
		}
		must := c.mustShow(s.clock.Now(), 0)
		if shown > 1 || (must && shown == 0) {
			s.Errorf("the audit of everything shows %d breaks, want one: %s", shown, c)
		}
	}
	allowed := []reconcile.Verdict{reconcile.VerdictReconciled, reconcile.VerdictPending}
	if len(entries) > 0 {
		allowed = []reconcile.Verdict{reconcile.VerdictBreaks}
	}
	if !slices.Contains(allowed, statement.Verdict) {
		s.Errorf("the verdict is %s %v with %d breaks", statement.Verdict, statement.Reasons, len(entries))
	}
}

// requireGateway: what the statement says of the gateway's cancels is what the gateway's list has said.
func (s *story) requireGateway(statement reconcile.Statement) {
	s.Helper()
	var want, got reconcile.Figure
	s.front.with(func() {
		for _, row := range s.front.shown {
			var whole int64
			if row.cancel() && strings.HasPrefix(row.Order, "order-") && !row.At.Before(s.opening) && json.Unmarshal(row.Amount, &whole) == nil {
				want.Count++
				want.Amount += row.won()
			}
		}
	})
	for _, sum := range statement.Sums {
		got.Count += sum.Gateway.Count
		got.Amount += sum.Gateway.Amount
	}
	if got != want {
		s.Errorf("the statement has %+v of the gateway's cancels, the list had %+v", got, want)
	}
}

// requireMismatches: every claim is found, once, and nothing else.
func (s *story) requireMismatches(final bool) {
	s.Helper()
	found := rowsOf[mismatch](s.town, `
		SELECT kind, COALESCE(payment_key, '') AS payment_key, COALESCE(transaction_key, '') AS transaction_key, status,
			COALESCE(resolved_as, '') AS resolved_as, detail
		FROM mismatches ORDER BY mismatch_id`)
	claims := s.due()
	for _, m := range found {
		if m.Kind != ledger.KindSignedDayChanged && !slices.ContainsFunc(claims, func(c *claim) bool { return c.about(m) }) {
			s.Errorf("FALSE ALARM: %s of payment %s, transaction %q, %s: %s", m.Kind, m.Payment, m.Transaction, m.Status, m.Detail)
		}
	}
	for _, c := range claims {
		s.requireFound(c, found, final)
	}
}

func (s *story) requireFound(c *claim, found []mismatch, final bool) {
	s.Helper()
	n := 0
	for _, m := range found {
		if !c.about(m) {
			continue
		}
		n++
		switch {
		case final && c.settles && m.Status != "resolved":
			s.Errorf("not resolved although the books agree: %s", c)
		case c.accepted && m.ResolvedAs != "accepted":
			s.Errorf("a person accepted it, and it is %s again: %s", m.Status, c)
		case !c.settles && !c.accepted && m.Status == "resolved":
			s.Errorf("resolved as %s although nothing agrees: %s", m.ResolvedAs, c)
		}
	}
	want := max(1, c.times)
	must := (final || !s.clock.Now().Before(c.due)) && (c.unless == nil || !c.unless())
	if n > want || (must && n < want) {
		s.Errorf("MISS: found %d times, want %d: %s", n, want, c)
	}
}

// accept is a person of finance who accepts one difference that is known for sure, and says why.
func (s *story) accept() {
	s.Helper()
	for _, n := range s.rng.Perm(len(s.claims)) {
		c := s.claims[n]
		if c.accepted || c.settles || s.clock.Now().Before(c.due) || s.clock.Now().Before(c.broken) {
			continue
		}
		type known struct {
			ID int64 `db:"mismatch_id"`
		}
		found := rowsOf[known](s.town, `
			SELECT mismatch_id FROM mismatches
			WHERE kind = $1 AND payment_key = ANY ($2) AND COALESCE(transaction_key, '') = $3 AND amount IS NOT NULL AND status <> 'resolved'`,
			c.kind, c.payments, c.transaction)
		if len(found) != 1 {
			continue
		}
		s.must(postgres.InTx(s.ctx(), s.db, func(tx pgx.Tx) error {
			two := ledger.SecondPerson{Above: ledger.DefaultSecondPersonAbove}
			after, err := ledger.ChangeMismatch(s.ctx(), tx, found[0].ID, ledger.Change{
				Step: ledger.StepResolve, By: "os:finance", As: ledger.ResolvedAccepted, Note: "as agreed with the gateway",
			}, two, s.now())
			if err != nil || after.Status == ledger.MismatchResolved {
				return err
			}
			_, err = ledger.ChangeMismatch(s.ctx(), tx, found[0].ID, ledger.Change{Step: ledger.StepConfirm, By: "os:auditor"}, two, s.now())
			return err
		}))
		c.accepted, c.shadow, c.breaks, c.broken = true, false, time.Time{}, time.Time{}
		if c.covers != nil {
			c.covers.breaks, c.covers.broken = time.Time{}, time.Time{}
		}
		for _, other := range s.claims {
			if other.covers == c && !other.accepted { // who accepts the money alone still sees that the row changed
				other.breaks, other.broken = s.clock.Now(), s.clock.Now()
			}
		}
		s.tell("a person accepts %s", c)
		s.accepts++
		return
	}
}

func (s *story) requireSound() {
	s.Helper()
	violations, err := ledger.Check(s.ctx(), s.db)
	s.must(err)
	for _, v := range violations {
		s.Errorf("broken invariant %s", v)
	}
	for _, b := range s.verified().Breaks {
		s.Errorf("the journal does not verify: %s", b)
	}
}

// verified recomputes everything from the entries, as an auditor does who has the public key and the heads written
// outside the database.
func (s *story) verified() *seal.Report {
	s.Helper()
	var err error
	s.sealed.Now = s.now()
	s.sealed.Witnessed, err = seal.NewWitness(s.cfg.SealKeyFile + ".heads").Read()
	s.must(err)
	report, err := seal.Verify(s.ctx(), s.db, s.sealed)
	s.must(err)
	return report
}

// requireClosed: every day that is over has been closed, and shows no break that the story did not bring about.
func (s *story) requireClosed(final bool) {
	s.Helper()
	type closing struct {
		Day       string          `db:"day"`
		Verdict   string          `db:"verdict"`
		Statement json.RawMessage `db:"statement"`
	}
	closed := map[ledger.Day]closing{}
	for _, c := range rowsOf[closing](s.town, `
		SELECT DISTINCT ON (day) to_char(day, 'YYYY-MM-DD') AS day, verdict, statement
		FROM audit_runs WHERE scope = 'day' ORDER BY day, started_at DESC, run_id DESC`) {
		closed[ledger.Day(c.Day)] = c
	}
	for day := ledger.DayOf(s.opening); day.End().Add(2 * listLag).Before(s.clock.Now()); day = day.Next() {
		c, ok := closed[day]
		if !ok {
			s.Errorf("%s was not closed", day)
			continue
		}
		var statement reconcile.Statement
		s.must(json.Unmarshal(c.Statement, &statement))
		s.requireExplained("the closing of "+string(day), statement)
		if final {
			s.requireContradicted(day, statement)
		}
		if v := reconcile.Verdict(c.Verdict); final && v == reconcile.VerdictIncomplete {
			s.Errorf("the closing of %s is %s: %v", day, v, statement.Reasons)
		}
	}
}

// concerns reports whether an entry is about the claim's transaction, whatever it says of it: each is listed once.
func (c claim) concerns(e reconcile.Entry) bool {
	return slices.Contains(c.payments, e.PaymentKey) && (c.transaction == "" || c.transaction == e.TransactionKey)
}

// requireContradicted: a day that something contradicts does not say that it is reconciled, and says so still when a
// person has accepted it.
func (s *story) requireContradicted(day ledger.Day, statement reconcile.Statement) {
	s.Helper()
	entries := broken(statement)
	shown := slices.Concat(entries, statement.Line(reconcile.LineAccepted, ledger.KRW).Entries, statement.Line(reconcile.LineAcceptedBeside, ledger.KRW).Entries)
	listed := func(c *claim) bool { // of very many some are left out when a statement is kept
		return len(entries) >= stormSize-1 || slices.ContainsFunc(entries, c.shows)
	}
	for _, c := range s.claims {
		if c.day == day && c.mustShow(s.clock.Now(), time.Hour) && (!listed(c) || statement.Verdict != reconcile.VerdictBreaks) {
			s.Errorf("the closing of %s is %s and shows %d breaks, want this among them: %s", day, statement.Verdict, len(entries), c)
		}
		if c.day == day && c.accepted && c.mended.IsZero() && !c.taken && !slices.ContainsFunc(shown, c.concerns) {
			s.Errorf("the closing of %s hides what a person accepted: %s", day, c)
		}
	}
}

// requireDeposits: no deposit is taken back that never fell back; and one that did is taken back as soon as the list has
// shown it and the payment was asked. A list that has no row of it is read again by night; where it shows nothing, the
// money is looked at in the end.
func (s *story) requireDeposits() {
	s.Helper()
	type deposit struct {
		Payment string `db:"payment_key"`
		Stands  bool   `db:"stands"`
	}
	for _, d := range rowsOf[deposit](s.town, `
		SELECT payment_key, bool_or(reversed_at IS NULL) AS stands FROM captures
		GROUP BY payment_key HAVING bool_or(reversed_at IS NOT NULL) OR count(*) = 1`) {
		n := slices.IndexFunc(s.sales, func(x *sale) bool { return x.key == d.Payment && x.method == tosssim.VirtualAccount })
		switch {
		case n < 0:
		case s.sales[n].fell.IsZero() && !d.Stands:
			s.Errorf("the deposit of %s was taken back, and it never fell back", d.Payment)
		case s.sales[n].fell.IsZero() || s.object(d.Payment).Status != "WAITING_FOR_DEPOSIT" || !d.Stands:
		case s.clock.Now().After(s.shownFallen(s.sales[n].fell)):
			s.Errorf("the deposit of %s fell back at %s, and stands in the books", d.Payment, s.sales[n].fell)
		}
	}
}

// shownFallen is when the list has shown for sure that a deposit fell back.
func (s *story) shownFallen(at time.Time) time.Time {
	switch s.listing.FallenRow {
	case tosssim.FallenRowOwn:
		return at.Add(25 * time.Minute)
	case tosssim.FallenRowInPlace, tosssim.FallenRowGone:
		return at.Add(32 * time.Hour)
	case tosssim.FallenRowNone:
	}
	return at.Add(1000 * time.Hour)
}

// requireMoney: what moved at the gateway is in the books, in number and in won, but for what they can never have.
func (s *story) requireMoney() {
	s.Helper()
	type money struct {
		Captures, Cancels  int
		Captured, Canceled int64
	}
	ours := map[string]bool{}
	for _, x := range s.sales {
		ours[x.key] = true
	}
	var want money
	for _, key := range s.gateway.Keys() {
		o := s.object(key)
		if !ours[key] || o.Approved == "" {
			continue
		}
		want.Captures++
		want.Captured += o.Total
		for _, c := range o.Cancels {
			if c.Status == "DONE" && !s.unbooked[c.Key] && !s.unheard(c.Key) {
				want.Cancels++
				want.Canceled += c.Amount
			}
		}
	}
	got := rowsOf[money](s.town, `
		SELECT (SELECT count(*) FROM captures WHERE reversed_at IS NULL)::integer AS captures,
			(SELECT COALESCE(sum(amount), 0) FROM captures WHERE reversed_at IS NULL)::bigint AS captured,
			(SELECT count(*) FROM cancels WHERE amount > 0)::integer AS cancels,
			(SELECT COALESCE(sum(amount), 0) FROM cancels)::bigint AS canceled`)[0]
	if got != want {
		s.Errorf("the books have %+v, the gateway %+v", got, want)
	}
}

// unheard reports whether nobody could have told the books of a cancel: the list hides it, and its notice was lost.
func (s *story) unheard(transaction string) (hidden bool) {
	s.front.with(func() {
		_, shown := s.front.shown[transaction]
		hidden = s.front.hidden[transaction] && !shown
	})
	return hidden && s.notBooked(transaction)()
}

// requireNothingOwed: no work is open but about what contradicts itself, and the watch over accounts of which nothing is
// doubted: those that wait, and deposits for a month.
func (s *story) requireNothingOwed() {
	s.Helper()
	type work struct {
		Kind    string `db:"kind"`
		Payment string `db:"payment_key"`
		Answer  string `db:"last_answer"`
	}
	for _, w := range rowsOf[work](s.town, `
		SELECT w.kind, w.payment_key, w.last_answer
		FROM work w LEFT JOIN payments p USING (payment_key)
		WHERE w.closed_at IS NULL AND NOT (w.kind = 'deposit_watch' AND p.status IN ('waiting_for_deposit', 'done')
			AND p.waiting_seen_at IS NULL AND p.money_seen_at IS NULL)`) {
		if !slices.ContainsFunc(s.claims, func(c *claim) bool { return slices.Contains(c.payments, w.Payment) }) {
			s.Errorf("still owed: %s of payment %s: %s", w.Kind, w.Payment, w.Answer)
		}
	}
}

// requireShown: when nothing moves any more, no cancel of the books waits to be shown by the list. What the list will never
// show is a break, and a further name of a void is no cancel.
func (s *story) requireShown(statement reconcile.Statement) {
	s.Helper()
	for _, line := range statement.Lines {
		if line.Name == reconcile.LineNotListed && line.Count > 0 {
			s.Errorf("%d cancels still wait to be shown by the list: %+v", line.Count, line.Entries)
		}
	}
}

// tampering is an edit of the books behind everybody's back, and what a full audit or a check of the invariants must say
// of it.
type tampering struct {
	name  string
	sql   string // of one row, whose payment it returns
	kind  ledger.Kind
	sound bool // only the invariants show it
}

func tamperings() []tampering {
	return []tampering{
		{name: "a cancel is taken out", kind: ledger.KindCancelMissingHere, sql: `
			DELETE FROM cancels WHERE transaction_key = (` + someCancel + `) RETURNING payment_key`},
		{name: "a cancel gets another amount", kind: ledger.KindAmountDiffers, sql: `
			UPDATE cancels SET amount = amount + 1 WHERE transaction_key = (` + someCancel + `) RETURNING payment_key`},
		{name: "a capture is taken out", kind: ledger.KindPaymentWithoutOrder, sql: `
			DELETE FROM captures WHERE transaction_key = (` + someCapture + `) RETURNING payment_key`},
		{name: "a capture gets another amount", kind: ledger.KindAmountDiffers, sql: `
			UPDATE captures SET amount = amount + 1 WHERE transaction_key = (` + someCapture + `) RETURNING payment_key`},
		{name: "a cancel is made up", kind: ledger.KindCancelMissingThere, sql: `
			INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, canceled_at, recorded_at, channel)
			SELECT 'made-up', p.payment_key, p.order_id, p.currency, 1, x.canceled, x.recorded, 'webhook'
			FROM payments p, (SELECT $1::timestamptz AS canceled, $1::timestamptz AS recorded) x
			WHERE p.payment_key = (SELECT c.payment_key FROM captures c WHERE c.transaction_key = (` + someCapture + `)) RETURNING payment_key`},
		{name: "an entry of the journal gets another amount", sound: true, sql: `
			UPDATE journal_entries SET amount = amount + 1 WHERE (transaction_id, amount) = (
				SELECT transaction_id, amount FROM journal_entries ORDER BY transaction_id, amount LIMIT 1) RETURNING ''`},
	}
}

// A row of a payment about which nothing was said so far, when the books and the list agree about it.
const (
	someCancel = `SELECT c.transaction_key FROM cancels c JOIN mirror g USING (transaction_key)
		WHERE c.amount > 0 AND c.amount = g.amount AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = c.payment_key)
		ORDER BY c.transaction_key LIMIT 1`
	someCapture = `SELECT c.transaction_key FROM captures c JOIN mirror g USING (transaction_key)
		WHERE c.reversed_at IS NULL AND NOT EXISTS (SELECT 1 FROM mismatches m WHERE m.payment_key = c.payment_key)
		ORDER BY c.transaction_key LIMIT 1`
)

// tamper is somebody who edits the books with every trigger off, when all has been judged.
func (s *story) tamper() {
	s.Helper()
	if s.Failed() {
		return
	}
	t := tamperings()[s.rng.IntN(len(tamperings()))]
	payment, ok := s.edit(t)
	if !ok {
		return
	}
	s.edited = true
	s.breaks[t.name]++
	s.tell("CONTRADICTION: %s, payment %s", t.name, payment)
	violations, err := ledger.Check(s.ctx(), s.db)
	s.must(err)
	if len(violations) == 0 {
		s.Errorf("%s, and every invariant still holds", t.name)
	}
	if len(s.verified().Breaks) == 0 {
		s.Errorf("%s, and everything still follows from the journal", t.name)
	}
	if t.sound {
		return
	}
	s.expect(claim{kind: t.kind, payments: []string{payment}, why: t.name, breaks: s.clock.Now(), broken: s.clock.Now(), due: s.clock.Now()})
	full, err := s.app.AuditAll(s.ctx())
	s.must(err)
	s.requireExplained("the audit after an edit", full)
	s.requireVerdict(full)
}

// edit makes the edit; it tells whether there was a row for it, and of which payment.
func (s *story) edit(t tampering) (payment string, ok bool) {
	s.Helper()
	s.must(postgres.InTx(s.ctx(), s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(s.ctx(), `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		var args []any
		if strings.Contains(t.sql, "$1") {
			args = append(args, s.clock.Now().Add(-24*time.Hour))
		}
		rows, err := tx.Query(s.ctx(), t.sql, args...)
		if err != nil {
			return err
		}
		payments, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if len(payments) > 0 {
			payment, ok = payments[0], true
		}
		return err
	}))
	return payment, ok
}
