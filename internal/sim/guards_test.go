package sim_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	guardsFlag = flag.Bool("guards", false, "take out every guard of the audit, one by one, and look for a seed that notices")
	guardFlag  = flag.String("guard", "", "with -guards: only those whose name contains this")
	leftFlag   = flag.Bool("left", false, "with -table: only those that the table does not have yet")
	tableFlag  = flag.String("table", "", "with -guards: file for the table of results, in Markdown; the seeds that it names are tried first")
)

// guard is one line of the product without which the audit is wrong, and how it reads when the guard is taken out.
type guard struct {
	name     string
	file     string
	old, new string
}

// guards lists the guards of the audit and of what it looks at. Six are not in it, because what they find is found in another
// way too. That a poll goes on where the last complete one ended: what it would pass over is made up for as never read, but
// for rows that become visible during an outage, which no story had among sixty; TestPoll_LateRowsAfterAnOutage has. That the
// read itself reports money for an order that is not in the books: the audit of the same minute does; TestPoll_MoneyOfNobody
// asks before it. And that a cancel whose row vanished breaks by the comparison: it breaks by the open mismatch about its row as
// well; TestJudge_Lines compares alone. And that a new capture, or one that is reversed, is looked at: the work that led to it
// is closed with it, and is looked at for that; TestIncrement_IsTheFullComparison has captures without work. And that a mismatch about a row has its day closed again: the days
// of a story are closed again anyway; TestContradicted_AnOldDay has one that is not.
func guards() []guard {
	return []guard{
		{"a read that lacks known rows is made once more", "reconcile/window.go", `case !believe && w.Missing > 0:`, `case false:`},
		{"a read that lacks money of our books is made once more", "reconcile/window.go", `case !believe && w.Unlisted > 0:`, `case false:`},
		{"a row that two reads lack is missing", "reconcile/window.go", `return m.markMissing(ctx, *r)`, `return nil`},
		{"young rows may come and go", "reconcile/window.go", `settled := r.StartedAt.Add(-m.cfg.ListLag)`, `settled := r.StartedAt`},
		{"only a complete read covers", "reconcile/window.go", `WHERE result = 'complete' AND window_from <= started_at`, `WHERE window_from <= started_at`},
		{"every poll reads the last minutes again", "reconcile/mirror.go", `from = earlier(from, now).Add(-overlapMax)`, `from = earlier(from, now)`},
		{"the last days are read again each night", "reconcile/mirror.go", `if err != nil || len(left) == 0 {
		return Polled{}, err`, `if err != nil || len(left) >= 0 {
		return Polled{}, err`},
		{"a listed cancel that the books lack becomes work", "reconcile/lacking.go", `case l.row.Kind == pgclient.TransactionCancel && !l.Asked:`, `case false:`},
		{"a listed capture that the books lack becomes work", "reconcile/lacking.go", `case (l.Held || l.Ordered) && !l.Asked:`, `case false:`},
		{"rows of other systems are foreign", "reconcile/keep.go", `c.foreigns = append(c.foreigns, m.cfg.foreign(r.OrderID))`, `c.foreigns = append(c.foreigns, false)`},
		{"an approval is known by its key", "reconcile/keep.go", `THEN 'capture' ELSE kind END`, `THEN kind ELSE kind END`},
		{"a row that changed is reported", "reconcile/keep.go", `if first == r.Amount && sameKind && k.PaymentKey == r.PaymentKey {`, `if true || (first == r.Amount && sameKind) {`},
		{"a word nobody knows is reported", "reconcile/keep.go", `if r.Kind != pgclient.TransactionUnrecognized ||`, `if true || r.Kind != pgclient.TransactionUnrecognized ||`},
		{"money that cannot be held exactly is quarantined", "reconcile/keep.go", `m.quarantine(b, q)`, `_ = q`},
		{"amounts on both sides are equal", "reconcile/identity.go", `if f.G.Amount == f.B.Amount {`, `if f.G.Amount.Currency == f.B.Amount.Currency {`},
		{"a cancel of another order breaks", "reconcile/identity.go", `!f.G.Amount.IsZero() && listed.differs(f.BookedFor)`, `false && listed.differs(f.BookedFor)`},
		{"a capture of another order breaks", "reconcile/taken.go", `if !listed.differs(booked) {`, `if true || !listed.differs(booked) {`},
		{"work explains only as long as it is young", "reconcile/identity.go", `case f.W.Present && b.now.Before(f.W.maximumAge()):`, `case f.W.Present:`},
		{"a cancel that the list does not show breaks", "reconcile/identity.go", `j.breaks(f, ledger.KindCancelMissingThere, f.B.Amount, detailNotListed)`, `_ = j`},
		{"the list has its time", "reconcile/identity.go", `case void || !f.B.At.Before(b.asOf.Add(-b.listLag)):`, `case void:`},
		{"a difference that a person accepted is none", "reconcile/accepted.go", `return a.Kind == kind && a.Currency == atRisk.Currency && a.Minor == atRisk.Minor`, `return false`},
		{"a void has several names", "reconcile/identity.go", `case void && f.VoidAlias:`, `case false:`},
		{"an answer that denies listed money settles nothing", "reconcile/confirm.go", `(seen.Evidence == ledger.EvidenceDead && !listed)`, `seen.Evidence == ledger.EvidenceDead`},
		{"a listed cancel that the payment denies is reported", "reconcile/cancel.go", `return c, s.doubtListed(ctx, tx, i, seen, r.After)`, `return c, nil`},
		{"a mismatch whose sides agree is resolved", "reconcile/agreed.go", "`m.kind = 'stale_unknown' AND EXISTS", "`false AND m.kind = 'stale_unknown' AND EXISTS"},
		{"what is in doubt for too long is reported", "reconcile/tend.go", `WHERE p.undecided_since <= @before`, `WHERE false AND p.undecided_since <= @before`},
		{"a payment binds to its merchant", "ledger/decide.go", `case p.MerchantID != "" && o.MerchantID != p.MerchantID:`, `case false:`},
		{"a payment binds to its order", "ledger/decide.go", `case o.OrderID != p.OrderID:`, `case false:`},
		{"a payment binds to its amount", "ledger/decide.go", `case o.Total != p.Amount:`, `case false:`},
		{"a second payment of an order is reported", "ledger/apply.go", `if e.decision.Capture != nil {
			f := finding(KindPaidTwice`, `if false {
			f := finding(KindPaidTwice`},
		{"money after the order expired is reported", "ledger/apply.go", `if e.decision.Capture != nil && e.order.Status == OrderExpired {`, `if false {`},
		{"a new row of the list is looked at", "migrations/0005_dirty_keys.sql", `CREATE TRIGGER mirror_dirty_new AFTER INSERT ON`, `CREATE TRIGGER mirror_dirty_new AFTER UPDATE OF merchant_id ON`},
		{"a row of the list that changed is looked at", "migrations/0005_dirty_keys.sql", `CREATE TRIGGER mirror_dirty_changed AFTER UPDATE ON`, `CREATE TRIGGER mirror_dirty_changed AFTER UPDATE OF merchant_id ON`},
		{"a new cancel is looked at", "migrations/0005_dirty_keys.sql", `CREATE TRIGGER cancels_dirty AFTER INSERT OR DELETE ON`, `CREATE TRIGGER cancels_dirty AFTER DELETE ON`},
		{"new work is looked at", "migrations/0005_dirty_keys.sql", `CREATE TRIGGER work_dirty_new AFTER INSERT ON`, `CREATE TRIGGER work_dirty_new AFTER UPDATE OF work_id ON`},
		{"work that moved on is looked at", "migrations/0005_dirty_keys.sql", `CREATE TRIGGER work_dirty_changed AFTER UPDATE ON`, `CREATE TRIGGER work_dirty_changed AFTER UPDATE OF work_id ON`},
		{"what a person accepted is looked at", "migrations/0005_dirty_keys.sql", `CREATE TRIGGER mismatches_dirty_changed AFTER UPDATE ON`, `CREATE TRIGGER mismatches_dirty_changed AFTER UPDATE OF mismatch_id ON`},
		{"a deposit falls back by two witnesses, or after an hour", "ledger/account.go", `least := fallbackAloneAfter`, `least := fallbackConfirmAfter`},
		{"a deposit that fell back and was canceled is both", "ledger/account.go", `case !o.VirtualAccount || p.Status != StatusDone:`, `case true:`},
		{"a deposit is watched for a month", "ledger/deposit.go", `case paid && p.Status == StatusDone:`, `case false && paid:`},
		{"a row that takes a deposit back makes somebody ask", "reconcile/fallen.go", `if r.Kind == pgclient.TransactionNone && !r.At.Before(m.cfg.OpeningAt) {`, `if false {`},
		{"a row that takes a deposit back is explained", "reconcile/keep.go", `if (k.Fell || moneyless(k, r)) && (first == r.Amount`, `if false && (first == r.Amount`},
		{"a deposit whose row is gone is asked about", "reconcile/window.go", `case v.Deposit && v.Stands:`, `case false:`},
		{"a deposit that the list alone takes back is reported", "reconcile/tend.go", `s.takenBack(ctx), `, ``},
		{"a void of an account whose deposit fell back moves nothing", "reconcile/snapshot.go", `WHERE x.payment_key = p.payment_key AND x.reversed_at IS NULL OFFSET 0)`, `WHERE x.payment_key = p.payment_key OFFSET 0)`},
		{"a later change of a signed day is a mismatch", "reconcile/close.go", `return s, a.holdAgainstSignature(ctx, tx, s, c.facts())`, `return s, nil`},
		{"a day that breaks is not signed", "reconcile/signoff.go", `bool { return v == VerdictReconciled || v == VerdictPending }`, `bool { return v != VerdictIncomplete }`},
		{"what is owed when a day is signed may be applied", "reconcile/closed.go", `if r.Standing == StandingApplied || r.Standing == StandingPending {`, `if r.Standing == StandingApplied {`},
		{"a signed day that says again what was signed is none", "reconcile/signedday.go", `return resolveSigned(ctx, tx, s.Day, ledger.System, now)`, `return nil`},
		{"a capture that the list does not show breaks", "reconcile/taken.go", `r.breaks(&j, ledger.KindOrderWithoutPayment, detailUnlisted)`, `j = on(LineAcceptedBeside)`},
		{"a capture for an order of ours that nobody booked breaks", "reconcile/taken.go", `r.breaks(&j, ledger.KindPaymentWithoutOrder, "the gateway lists money for an order of ours that our books do not have as taken")`, `_ = j`},
		{"a capture for an order that is not in the books breaks", "reconcile/taken.go", `r.breaks(&j, ledger.KindPaymentWithoutOrder, "the gateway lists money for an order that is not in our books")`, `_ = j`},
		{"a listed capture of another amount breaks", "reconcile/taken.go", `case r.Booked != nil && *r.Booked == r.Amount && *r.BookedCurrency == r.Currency:`, `case r.Booked != nil && *r.BookedCurrency == r.Currency:`},
		{"a listed capture in another currency breaks", "reconcile/taken.go", `*r.Booked == r.Amount && *r.BookedCurrency == r.Currency:`, `*r.Booked == r.Amount:`},
		{"a row that vanished shows no capture", "reconcile/taken.go", `FROM mirror g WHERE g.payment_key = c.payment_key AND g.missing_since IS NULL
	AND ((g.transaction_key`, `FROM mirror g WHERE g.payment_key = c.payment_key
	AND ((g.transaction_key`},
		{"a question explains a capture only for its time", "reconcile/taken.go", `return r.AskedUntil != nil && r.AskedUntil.After(b.now) }`, `return r.AskedUntil != nil }`},
		{"a capture that is being asked about is explained", "reconcile/taken.go", `return r.AskedUntil != nil && r.AskedUntil.After(b.now) }`, `return false }`},
		{"the list has its time to show a capture", "reconcile/taken.go", `case !r.Listed && !r.At.Add(b.listLag).Before(b.asOf):`, `case false:`},
		{"a deposit that fell back is not looked for in the list", "reconcile/taken.go", `c.captured_at < @to AND c.reversed_at IS NULL`, `c.captured_at < @to`},
		{"captures of other systems are foreign", "reconcile/taken.go", `WHERE g.kind = 'capture' AND NOT g.is_foreign AND`, `WHERE g.kind = 'capture' AND`},
		{"a difference of captures that a person accepted is none", "reconcile/taken.go", `case r.acceptsMoney():`, `case false:`},
		{"the patience with a deposit that the list takes back ends", "reconcile/fallen.go", `fallenPatience = 2 * time.Hour`, `fallenPatience = 2000 * time.Hour`},
		{"a deposit that the list takes back has some time", "reconcile/fallen.go", `fallenPatience = 2 * time.Hour`, `fallenPatience = 0 * time.Hour`},
		{"a list that was not read proves nothing", "reconcile/statement.go", `case len(s.Reasons) > 0:`, `case false:`},
		{"a day is closed when the list was read past it", "reconcile/snapshot.go", `case scope.Name == ScopeDay && readTo.Before(w.to.Add(w.listLag)):`, `case false:`},
		{"what the clock alone makes another thing is judged again", "reconcile/increment.go", `WHERE recheck_at <= @now`, `WHERE false AND recheck_at <= @now`},
		{"what the list had its time to show is judged again", "reconcile/increment.go", `WHERE recheck_as_of < @as_of`, `WHERE false AND recheck_as_of < @as_of`},
		{"a day of which a row contradicts itself breaks", "reconcile/contradicted.go", `if err != nil || len(all) == 0 {`, `if err != nil || len(all) >= 0 {`},
		{"a day with a changed row breaks", "reconcile/contradicted.go", `x.kind IN ('history_changed', 'quarantined', 'unrecognized_status', 'journal_differs')`, `x.kind IN ('quarantined', 'unrecognized_status', 'journal_differs')`},
		{"a day with a row that cannot be held breaks", "reconcile/contradicted.go", `x.kind IN ('history_changed', 'quarantined', 'unrecognized_status', 'journal_differs')`, `x.kind IN ('history_changed', 'unrecognized_status', 'journal_differs')`},
		{"a day with a word that nobody knows breaks", "reconcile/contradicted.go", `x.kind IN ('history_changed', 'quarantined', 'unrecognized_status', 'journal_differs')`, `x.kind IN ('history_changed', 'quarantined', 'journal_differs')`},
		{"money from before the opening is not asked about", "reconcile/lacking.go", `if !money || r.At.Before(m.cfg.OpeningAt) {`, `if !money {`},
		{"cancels from before the opening are not judged", "reconcile/snapshot.go", `AND x.kind = 'cancel' AND NOT x.is_foreign AND x.at >= @opening`, `AND x.kind = 'cancel' AND NOT x.is_foreign`},
		{"a row from before the opening may change", "reconcile/keep.go", `if k.Foreign || r.At.Before(m.cfg.OpeningAt) {`, `if k.Foreign {`},
		{"a word from before the opening is nobody's business", "reconcile/keep.go", `known[r.TransactionKey].Foreign || r.At.Before(m.cfg.OpeningAt) {`, `known[r.TransactionKey].Foreign {`},
		{"money from before the opening is not quarantined", "reconcile/keep.go", `if m.cfg.foreign(q.OrderID) || (!q.At.IsZero() && q.At.Before(m.cfg.OpeningAt)) {`, `if m.cfg.foreign(q.OrderID) {`},
		{"a row from before the opening may vanish", "reconcile/window.go", `case v.Foreign || !money || v.At.Before(m.cfg.OpeningAt):`, `case v.Foreign || !money:`},
		{"very many at once are one incident", "ledger/storm.go", `opened.New <= stormMax {`, `opened.New <= 1000*stormMax {`},
		{"a cancel that was owed and is booked is resolved", "reconcile/agreed.go", "`m.kind = 'cancel_missing_here' AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM cancels c", "`false AND m.transaction_key IS NOT NULL AND EXISTS (SELECT 1 FROM cancels c"},
		{"a cancel that the list shows after all is resolved", "reconcile/agreed.go", "`m.kind = 'cancel_missing_there' AND", "`false AND"},
		{"a capture that the list shows after all is resolved", "reconcile/agreed.go", "`m.kind = 'order_without_payment' AND EXISTS (SELECT 1 FROM captures c", "`false AND EXISTS (SELECT 1 FROM captures c"},
		{"an amount that a later answer put right is resolved", "reconcile/agreed.go", "`m.kind IN ('amount_differs', 'currency_differs') AND m.transaction_key IS NOT NULL AND ` + notAnswered + ` AND EXISTS", "`false AND ` + notAnswered + ` AND EXISTS"},
		{"an order or a merchant that a later answer put right is resolved", "reconcile/agreed.go", "`m.kind IN ('order_differs', 'merchant_differs', 'amount_differs', 'currency_differs') AND", "`false AND"},
		{"an order paid twice that was given back is resolved", "reconcile/agreed.go", "`m.kind = 'order_paid_twice' AND", "`false AND"},
		{"an answer that can be read again is resolved", "reconcile/agreed.go", "`m.kind IN ('quarantined', 'unrecognized_status') AND m.transaction_key IS NULL AND ` + recordedSince", "`false AND ` + recordedSince"},
		{"a row that came back is resolved", "reconcile/agreed.go", "`m.kind = 'history_changed' AND m.detail = '` + detailVanished", "`false AND m.detail = '` + detailVanished"},
		{"a deposit whose row has its money again is resolved", "reconcile/agreed.go", "`m.kind = 'history_changed' AND m.detail = '` + detailTakenBack", "`false AND m.detail = '` + detailTakenBack"},
		{"a row that can be read again is resolved", "reconcile/agreed.go", "`m.kind IN ('quarantined', 'unrecognized_status') AND m.transaction_key IS NOT NULL AND EXISTS", "`false AND EXISTS"},
		{"credits that were spent are reported", "ledger/credits.go", `WHERE moved.balance < 0 AND @revoked::bigint > 0`, `WHERE moved.balance < 0 AND @revoked::bigint < 0`},
	}
}

// guardSeeds is how many seeds are played until one notices.
const guardSeeds = 200

// TestGuards takes out every guard alone and looks for a seed that notices. It builds the simulation over a changed
// file, so that the product needs no switch for it.
func TestGuards(t *testing.T) {
	t.Parallel()
	if !*guardsFlag {
		t.Skip("run make sim-guards")
	}
	table := readTable(t)
	for _, g := range guards() {
		if _, has := table[g.name]; !strings.Contains(g.name, *guardFlag) || (has && *leftFlag) {
			continue
		}
		seed, words := g.takeOut(t, table.likely(g.name))
		if seed == "" {
			t.Errorf("no seed notices that this is gone: %s", g.name)
			continue
		}
		_, _ = fmt.Fprintf(os.Stderr, "%s: seed %s: %s\n", g.name, seed, words)
		table[g.name] = noticed{g.file, seed, strings.ReplaceAll(words, "|", "/")}
		table.write(t)
	}
}

// noticed is which seed noticed that a guard was gone, and by what.
type noticed struct{ file, seed, words string }

// results are those of every guard that was taken out, by its name. The file has them after each, so that a run that was
// broken off is not lost, and the next one plays the likely seed first.
type results map[string]noticed

func readTable(t *testing.T) results {
	t.Helper()
	found := results{}
	if *tableFlag == "" {
		return found
	}
	text, err := os.ReadFile(*tableFlag)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (.*?) \\| `(.*?)` \\| (\\d+) \\| (.*?) \\|$").FindAllSubmatch(text, -1) {
		found[string(row[1])] = noticed{string(row[2]), string(row[3]), string(row[4])}
	}
	return found
}

func (r results) write(t *testing.T) {
	t.Helper()
	if *tableFlag == "" {
		return
	}
	var table strings.Builder
	table.WriteString("| guard taken out | in | seed that notices | by |\n|---|---|---:|---|\n")
	for _, g := range guards() {
		if n, ok := r[g.name]; ok {
			fmt.Fprintf(&table, "| %s | `%s` | %s | %s |\n", g.name, n.file, n.seed, n.words)
		}
	}
	if err := os.WriteFile(*tableFlag, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// likely lists the seeds to play for a guard: the one that noticed it before, then those that noticed other guards, the most
// telling first, then the rest.
func (r results) likely(guard string) string {
	told := map[int]int{}
	for name, n := range r {
		seed, err := strconv.Atoi(n.seed)
		if err != nil {
			continue
		}
		told[seed]++
		if name == guard {
			told[seed] += len(r)
		}
	}
	order := make([]int, guardSeeds)
	for i := range order {
		order[i] = i + 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return told[b] - told[a] })
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(order), " ", ","), "[]")
}

// TestGuards_AreStillThere keeps the list true: each guard is found in the product once.
func TestGuards_AreStillThere(t *testing.T) {
	t.Parallel()
	for _, g := range guards() {
		if _, err := g.mutated(); err != nil {
			t.Error(err)
		}
	}
}

// mutated is the file without the guard.
func (g guard) mutated() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join("..", "..", g.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(g.old)); n != 1 {
		return nil, fmt.Errorf("%s: %q stands in %s %d times, want once", g.name, g.old, g.file, n)
	}
	return bytes.Replace(text, []byte(g.old), []byte(g.new), 1), nil
}

// takeOut plays seeds without the guard, in their order, and returns one that notices, and what it said.
func (g guard) takeOut(t *testing.T, seeds string) (seed, words string) {
	t.Helper()
	changed, err := g.mutated()
	if err != nil {
		t.Error(err)
		return "", ""
	}
	dir := t.TempDir()
	file, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	original, err := filepath.Abs(filepath.Join("..", "..", g.file))
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{file: changed, overlay: replaced} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%s: the mutant does not build: %s", g.name, out)
		return "", ""
	}
	return g.plays(t, binary, seeds)
}

// plays goes through seeds until one fails.
func (g guard) plays(t *testing.T, binary, seeds string) (seed, words string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), binary, "-test.run", "^TestSeeds$", "-test.parallel", "3", "-test.timeout", "0",
		"-seeds", seeds, "-first")
	out, _ := run.CombinedOutput() // it fails when a seed notices
	found := regexp.MustCompile(`--- FAIL: TestSeeds/(\d+) .*\n {8}seeds_test\.go:\d+: (.*)\n`).FindSubmatch(out)
	switch {
	case bytes.Contains(out, []byte("\npanic: ")):
		t.Errorf("%s: the mutant does not run: %s", g.name, out[max(0, len(out)-500):])
		return "", ""
	case found == nil:
		t.Logf("%s: %s", g.name, out[max(0, len(out)-500):])
		return "", ""
	case bytes.HasPrefix(found[2], []byte("postgrestest: ")):
		t.Errorf("%s: the mutant does not run: %s", g.name, found[2])
		return "", ""
	}
	return string(found[1]), unnamed(string(found[2]))
}

// unnamed leaves out the keys of one run.
func unnamed(words string) string {
	return regexp.MustCompile(`tsims\w+|txrd_\w+|[0-9A-F]{32}`).ReplaceAllString(words, "…")
}
