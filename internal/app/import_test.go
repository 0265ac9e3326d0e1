package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/ledger/ledgertest"
	"daesa/pgclient/tosssim"
)

// soldElsewhere is a payment that the system before us took.
func soldElsewhere(t *testing.T, sim *tosssim.Sim, order string, won int64) (key string) {
	t.Helper()
	key = sim.Authenticate(tosssim.Checkout{OrderID: order, OrderName: "상품", Amount: won})
	if err := sim.Approve(key); err != nil {
		t.Fatal(err)
	}
	return key
}

// importing runs the command over a file against a world's books and gateway.
func (w *world) importing(file string, more ...string) (code int, stdout, stderr string) {
	w.Helper()
	return command(append([]string{
		"import", "-database-url", w.url, "-toss-url", w.cfg.TossURL, "-toss-secret-key", secretKey, "-csv", file,
		"-opening-at", w.cfg.OpeningAt.Format(time.RFC3339), "-per-minute", "100000",
	}, more...)...)
}

// TestStory_MovingIn: a merchant imports what the system before took. What happens to those payments afterwards works
// like anything else: a cancel told by a notice, one that only the list shows, and one that the merchant asks us for.
func TestStory_MovingIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.Set(w.cfg.OpeningAt.Add(-48 * time.Hour))
	noticed, listed, asked := soldElsewhere(t, w.sim, "order-old-1", 10_000), soldElsewhere(t, w.sim, "order-old-2", 20_000), soldElsewhere(t, w.sim, "order-old-3", 30_000)
	early := w.dashboard(noticed, 1_000)
	past := w.newest(noticed)
	w.clock.Set(opening())

	file := filepath.Join(t.TempDir(), "payments.csv")
	w.must(os.WriteFile(file, []byte("\ufeff결제키,주문번호,금액,취소금액\r\n"+noticed+",order-old-1,\"10,000\",1000\r\n"+
		listed+",order-old-2,20000,0\r\n"+asked+",order-old-3,30000,\r\n"+asked+"x,order-old-4,1,\r\n"), 0o600))
	code, out, errs := w.importing(file)
	if code != 1 || !strings.Contains(out, "read 4 = imported 3 + already there 0 + rejected 1") || !strings.Contains(out, "nothing was written") ||
		!strings.Contains(out, "KRW: captured 60000, canceled 1000") {
		t.Fatalf("the dry run: got %d\n%s%s", code, out, errs)
	}
	if n := w.number(`SELECT count(*) FROM payments`); n != 0 {
		t.Fatalf("a dry run wrote %d payments", n)
	}
	for _, want := range []string{"imported 3 + already there 0", "imported 0 + already there 3"} {
		code, out, errs = w.importing(file, "-apply")
		if code != 1 || !strings.Contains(out, want) {
			t.Fatalf("got %d, want %s\n%s%s", code, want, out, errs)
		}
	}
	rejects, err := os.ReadFile(file + ".rejects.csv")
	w.must(err)
	if want := asked + "x,order-old-4,1,,,5,"; !strings.Contains(string(rejects), want) || strings.Count(string(rejects), "\n") != 2 {
		t.Errorf("the rejects are\n%s", rejects)
	}

	w.wantDelivery(past, http.StatusOK) // redelivered late: it is in the books with the rest
	w.dashboard(noticed, 0)
	w.wantDelivery(w.newest(noticed), http.StatusOK)
	w.dashboard(listed, 0)
	w.app.shop.cancel(asked, "cancel-1", 5_000).want(t, "cancel", "200 done")
	w.clock.Advance(20 * time.Minute)
	w.must(w.app.ReadList(t.Context()))
	w.sweep()
	for key, balance := range map[string]int64{noticed: 0, listed: 0, asked: 25_000} {
		if got := w.payment(key).Balance().Minor; got != balance {
			t.Errorf("%s has a balance of %d, want %d", key, got, balance)
		}
	}
	if !w.payment(noticed).HasCancel(early) {
		t.Error("the cancel from before the opening is not in the books")
	}
	if st, err := w.app.AuditAll(t.Context()); err != nil || st.Verdict != "reconciled" || st.Sums[0].Canceled.Count != 3 {
		t.Errorf("got %s %+v and %v, want the three cancels since the opening", st.Verdict, st.Sums, err)
	}
	if n := w.number(`SELECT count(*) FROM mismatches`); n != 0 {
		t.Errorf("got %d mismatches", n)
	}
}

// TestStory_NobodyMovedIn: the same without an import. What is before the opening is asked for by nobody; the cancel
// after it is booked with its payment as soon as the list shows it, and its notice is then acknowledged.
func TestStory_NobodyMovedIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.Set(w.cfg.OpeningAt.Add(-48 * time.Hour))
	over, key := soldElsewhere(t, w.sim, "order-old-1", 10_000), soldElsewhere(t, w.sim, "order-old-2", 20_000)
	w.dashboard(over, 0)
	w.clock.Set(opening())
	w.wantDelivery(w.newest(over), http.StatusNotFound)
	w.dashboard(key, 8_000)
	notice := w.newest(key)
	w.wantDelivery(notice, http.StatusNotFound)
	w.clock.Advance(time.Minute)
	w.must(w.app.ReadList(t.Context()))
	w.sweep()
	w.wantDelivery(notice, http.StatusOK)
	w.wantDelivery(w.newest(over), http.StatusNotFound)
	w.clock.Advance(5 * 24 * time.Hour)
	w.must(w.app.ReadList(t.Context()))
	w.sweep()
	if got := w.payment(key).Balance().Minor; got != 12_000 {
		t.Errorf("got a balance of %d", got)
	}
	if n := w.number(`SELECT count(*) FROM mismatches`) + w.number(`SELECT count(*) FROM work WHERE closed_at IS NULL`); n != 0 {
		t.Errorf("got %d mismatches and rows of open work", n)
	}
	if st, err := w.app.AuditAll(t.Context()); err != nil || st.Verdict != "reconciled" {
		t.Errorf("got %s %v and %v", st.Verdict, st.Reasons, err)
	}
}

// TestImport_Rejects: the rejects are written for a spreadsheet, never over the file they come from, can be imported
// themselves, and go once nothing is rejected any more.
func TestImport_Rejects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.Set(w.cfg.OpeningAt.Add(-48 * time.Hour))
	key := soldElsewhere(t, w.sim, "order-old-1", 10_000)
	w.clock.Set(opening())
	dir := t.TempDir()
	file, alias := filepath.Join(dir, "payments.csv"), filepath.Join(dir, "alias.csv")
	write := func(amount string) {
		w.must(os.WriteFile(file, []byte("Payment_Key,order_id,amount,Reason, LINE\n"+key+",order-old-1,"+amount+",old,7\n"), 0o600))
	}
	write("9999")
	w.must(os.Link(file, alias))
	for _, same := range []string{file, alias} {
		if code, _, errs := w.importing(file, "-apply", "-rejects", same); code != 2 || !strings.Contains(errs, "--rejects names the file") {
			t.Errorf("%s: got %d %s", same, code, errs)
		}
	}
	if code, out, errs := w.importing(file, "-apply"); code != 1 {
		t.Fatalf("got %d\n%s%s", code, out, errs)
	}
	rejects, err := os.ReadFile(file + ".rejects.csv")
	w.must(err)
	if want := "\ufeffPayment_Key,order_id,amount,text_mark,line,reason\n" + key + ",order-old-1,9999,,2,"; !strings.HasPrefix(string(rejects), want) {
		t.Errorf("the rejects are\n%q, want\n%q", rejects, want)
	}
	if code, out, errs := w.importing(file + ".rejects.csv"); code != 1 || !strings.Contains(out, "rejected 1") {
		t.Errorf("the rejects themselves: got %d\n%s%s", code, out, errs)
	}
	write("10000")
	if code, out, errs := w.importing(file, "-apply"); code != 0 {
		t.Fatalf("corrected: got %d\n%s%s", code, out, errs)
	}
	if _, err := os.Stat(file + ".rejects.csv"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is rejected and the file of rejects is still there: %v", err)
	}
}

// TestImport_FromMirror: what the list shows from before the opening is taken over; the answer is JSON where it is asked
// for.
func TestImport_FromMirror(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	opened := time.Now().Add(-time.Hour).Truncate(time.Second)
	for n := range 3 {
		p.sold(t, fmt.Sprintf("order-old-%d", n), opened.Add(-time.Duration(n+1)*time.Hour))
	}
	if code, out, errs := command(p.args("reconcile", "-from", string(daysAgo(2)), "-opening-at", opened.Format(time.RFC3339))...); code == 2 {
		t.Fatalf("got %d\n%s%s", code, out, errs)
	}
	code, out, errs := command(p.args("import", "-from-mirror", "-apply", "-json", "-per-minute", "100000", "-opening-at", opened.Format(time.RFC3339))...)
	var done struct{ Read, Imported int }
	if err := json.Unmarshal([]byte(out), &done); err != nil || code != 0 || done.Read != 3 || done.Imported != 3 {
		t.Errorf("got %d %+v and %v\n%s%s", code, done, err, out, errs)
	}
	for _, bad := range [][]string{{}, {"-csv", "x.csv", "-from-mirror"}, {"-from-mirror"}, {"-csv", "no such file", "-opening-at", "2026-01-01T00:00:00Z"}} {
		if code, _, errs := command(p.args("import", bad...)...); code != 2 || errs == "" {
			t.Errorf("%v: got %d %s", bad, code, errs)
		}
	}
}

// TestImport_Killed: SIGKILL in the middle of an import, of a real process. Each payment is in the books with its note or
// not at all, and the same command goes on.
func TestImport_Killed(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	opened := time.Now().Add(-time.Hour).Truncate(time.Second)
	var list strings.Builder
	list.WriteString("payment_key,order_id,amount\n")
	for n := range 6 {
		order := fmt.Sprintf("order-old-%d", n)
		fmt.Fprintf(&list, "%s,%s,1000\n", p.sold(t, order, opened.Add(-time.Hour)), order)
	}
	file := filepath.Join(t.TempDir(), "payments.csv")
	if err := os.WriteFile(file, []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	fourth, next := make(chan struct{}), p.sim.Handler()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 4 {
			close(fourth)
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(gateway.Close)
	p.url = gateway.URL
	args := p.args("import", "-csv", file, "-apply", "-parallel", "1", "-per-minute", "100000", "-opening-at", opened.Format(time.RFC3339))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), self, append([]string{programArgument}, args...)...)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	<-fourth
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed
	code, out, errs := command(args...)
	for strings.Contains(errs, "another import is running") { // until the server has noticed the death
		code, out, errs = command(args...)
	}
	if code != 0 || !strings.Contains(out, "read 6 = imported 3 + already there 3 + rejected 0") {
		t.Errorf("got %d\n%s%s", code, out, errs)
	}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: p.db, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var noted, captures int
	if err := db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM import_rows WHERE result = 'imported'), (SELECT count(*) FROM captures)`).
		Scan(&noted, &captures); err != nil || noted != 6 || captures != 6 {
		t.Errorf("got %d notes, %d captures and %v, want 6 of each", noted, captures, err)
	}
	ledgertest.RequireSound(t, db)
}

// sold is a payment that the gateway took at an instant of the past.
func (p *past) sold(t *testing.T, order string, at time.Time) (key string) {
	t.Helper()
	key = soldElsewhere(t, p.sim, order, 1000)
	raw, _ := p.sim.Payment(key)
	var payment map[string]any
	if err := json.Unmarshal(raw, &payment); err != nil {
		t.Fatal(err)
	}
	then := at.In(ledger.Seoul()).Format(time.RFC3339)
	payment["approvedAt"], payment["requestedAt"] = then, then
	raw, _ = json.Marshal(payment)
	if err := p.sim.PutPayment(raw); err != nil {
		t.Fatal(err)
	}
	if err := p.sim.PutTransaction(fmt.Appendf(nil, `{"mId":"tsimshop01","transactionKey":"old-%s","paymentKey":%q,"orderId":%q,
		"status":"DONE","transactionAt":%q,"currency":"KRW","amount":1000}`, order, key, order, then)); err != nil {
		t.Fatal(err)
	}
	return key
}
