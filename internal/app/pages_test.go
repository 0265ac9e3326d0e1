package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"daesa/internal/admission"
	"daesa/internal/app"
	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
	"daesa/reconcile/desk"
	"daesa/reconcile/pages"
)

// office lets a world have pages, with passwords that cost little.
func office(c *app.Config, _ *tosssim.Config) {
	c.PagesListen = "127.0.0.1:0"
	c.PasswordCost = people.Cost{Memory: 64, Passes: 1, Lanes: 1}
}

// browser is somebody at the pages.
type browser struct {
	*world
	client   *http.Client
	language string
}

// shown is what a browser was shown.
type shown struct {
	status int
	at     string // path and query
	body   string
	header http.Header
}

const chosenPassword = "a password of one's own"

// browse opens a browser in which nobody is signed in.
func (w *world) browse() *browser {
	w.Helper()
	jar, err := cookiejar.New(nil)
	w.must(err)
	transport := &http.Transport{}
	w.Cleanup(transport.CloseIdleConnections)
	return &browser{world: w, client: &http.Client{Jar: jar, Transport: transport}}
}

// account makes an account and returns the password it was given.
func (w *world) account(name string, roles ...people.Role) string {
	w.Helper()
	accounts, err := people.New(people.Config{DB: w.db, Cost: w.cfg.PasswordCost, Now: w.clock.Now})
	w.must(err)
	password, err := accounts.Add(w.Context(), "os:root", name, roles)
	w.must(err)
	return password
}

// as opens a browser of somebody who has chosen a password and is signed in.
func (w *world) as(name string, roles ...people.Role) *browser {
	w.Helper()
	b := w.browse()
	given := w.account(name, roles...)
	b.submit("/sign-in", url.Values{"name": {name}, "password": {given}}, http.StatusOK)
	if at := b.submit("/password", url.Values{"old": {given}, "chosen": {chosenPassword}, "again": {chosenPassword}}, http.StatusOK); at.at != "/" {
		w.Fatalf("after the password was chosen the browser is at %s", at.at)
	}
	return b
}

func (b *browser) do(request *http.Request) shown {
	b.Helper()
	if b.language != "" {
		request.Header.Set("Accept-Language", b.language)
	}
	answer, err := b.client.Do(request)
	b.must(err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	b.must(err)
	return shown{answer.StatusCode, answer.Request.URL.RequestURI(), string(body), answer.Header}
}

func (b *browser) open(path string) shown {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.app.PagesURL()+path, http.NoBody)
	b.must(err)
	return b.do(request)
}

// submit sends a form and follows where it leads.
func (b *browser) submit(path string, form url.Values, want int) shown {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.app.PagesURL()+path, strings.NewReader(form.Encode()))
	b.must(err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := b.do(request)
	if answer.status != want {
		b.Fatalf("POST %s: got %d, want %d\n%s", path, answer.status, want, textOf(answer.body))
	}
	return answer
}

// says reports what of the texts the page lacks.
func (b *browser) says(s shown, texts ...string) {
	b.Helper()
	text := textOf(s.body)
	for _, want := range texts {
		if !strings.Contains(text, want) {
			b.Errorf("%s lacks %q:\n%s", s.at, want, text)
		}
	}
}

var (
	tags   = regexp.MustCompile(`(?s)<(style|script|title)[^>]*>.*?</(style|script|title)>|<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// textOf is what a page says, without its marks.
func textOf(body string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(tags.ReplaceAllString(body, " "), " "))
}

func TestPages_NothingIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	w.mismatch(1, 5000)
	b := w.browse()
	for _, path := range []string{"/", "/days/2026-04-14", "/mismatches", "/mismatches/1", "/orders/order-1", "/password"} {
		got := b.open(path)
		if got.status != http.StatusOK || !strings.HasPrefix(got.at, "/sign-in") || strings.Contains(got.body, "order-1<") {
			t.Errorf("%s: %d at %s", path, got.status, got.at)
		}
	}
	for _, path := range []string{"/mismatches/1/acknowledge", "/days/2026-04-14/sign", "/sign-out", "/password"} {
		if got := b.submit(path, url.Values{"revision": {"1"}}, http.StatusOK); !strings.HasPrefix(got.at, "/sign-in") {
			t.Errorf("POST %s leads to %s", path, got.at)
		}
	}
	if got := w.number(`SELECT count(*) FROM mismatches WHERE status <> 'open'`); got != 0 {
		t.Error("a stranger acknowledged a mismatch")
	}
	b.says(b.open("/sign-in"), "There is no account yet", "daesa user add")
}

func TestPages_AGivenPasswordIsChangedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	given := w.account("kim", people.RoleFinance)
	b := w.browse()
	if got := b.submit("/sign-in", url.Values{"name": {"kim"}, "password": {"wrong"}, "back": {"/mismatches"}}, http.StatusUnauthorized); !strings.Contains(got.body, `role="alert"`) {
		t.Error("a wrong password is not told")
	}
	if got := b.submit("/sign-in", url.Values{"name": {"kim"}, "password": {given}, "back": {"/mismatches"}}, http.StatusOK); got.at != "/password" {
		t.Errorf("signed in at %s, want /password", got.at)
	}
	if got := b.open("/mismatches"); got.at != "/password" {
		t.Errorf("before the change /mismatches leads to %s", got.at)
	}
	for _, form := range []url.Values{
		{"old": {given}, "chosen": {"short"}, "again": {"short"}},
		{"old": {given}, "chosen": {chosenPassword}, "again": {"another one altogether"}},
	} {
		b.submit("/password", form, http.StatusUnprocessableEntity)
	}
	b.submit("/password", url.Values{"old": {"wrong"}, "chosen": {chosenPassword}, "again": {chosenPassword}}, http.StatusUnauthorized)
	b.submit("/password", url.Values{"old": {given}, "chosen": {chosenPassword}, "again": {chosenPassword}}, http.StatusOK)
	if got := b.open("/mismatches"); got.at != "/mismatches" {
		t.Errorf("after the change /mismatches leads to %s", got.at)
	}
	b.submit("/sign-out", nil, http.StatusOK)
	if got := b.open("/mismatches"); got.at != "/sign-in?back=%2Fmismatches" {
		t.Errorf("after signing out /mismatches leads to %s", got.at)
	}
	if got := b.submit("/sign-in", url.Values{"name": {"kim"}, "password": {chosenPassword}, "back": {"//evil.example/"}}, http.StatusOK); got.at != "/" {
		t.Errorf("signing in leads to %s", got.at)
	}
}

// A mismatch is worked to its end by two people, neither of whom can do it alone.
func TestPages_TwoPeopleResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	id := w.mismatch(1, 5_000_000)
	kim, lee, view := w.as("kim", people.RoleApprover), w.as("lee", people.RoleApprover), w.as("park", people.RoleViewer)
	at := fmt.Sprintf("/mismatches/%d", id)
	revision := func() url.Values {
		return url.Values{"revision": {fmt.Sprint(w.number(`SELECT revision FROM mismatches WHERE mismatch_id = $1`, id))}}
	}
	with := func(pairs ...string) url.Values {
		form := revision()
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return form
	}
	kim.says(kim.open("/"), "5,000,000 KRW", "1 open mismatches")
	kim.says(kim.open("/mismatches"), "cancel missing here", "order-1", "5,000,000 KRW")
	kim.says(kim.open(at), "not in our books", "second person confirms")
	if page := view.open(at); strings.Contains(page.body, "<form method=\"post\" action=\"/mismatches") {
		t.Error("a viewer is shown what a viewer may not do")
	}
	view.submit(at+"/acknowledge", revision(), http.StatusForbidden)
	kim.submit(at+"/acknowledge", revision(), http.StatusOK)
	kim.submit(at+"/note", with("note", "<b>asked the shop</b>"), http.StatusOK)
	stale := revision()
	kim.submit(at+"/assign", with("to", "person:lee"), http.StatusOK)
	kim.says(kim.submit(at+"/note", url.Values{"revision": stale["revision"], "note": {"late"}}, http.StatusConflict), "has changed since")
	kim.submit(at+"/resolve", with("as", "accepted"), http.StatusBadRequest) // says no why
	kim.submit(at+"/resolve", with("as", "accepted", "note", "the shop gave cash back"), http.StatusOK)
	kim.says(kim.submit(at+"/confirm", revision(), http.StatusForbidden), "who proposed it cannot confirm it")
	if page := kim.open(at); strings.Contains(page.body, "/confirm\"") {
		t.Error("who proposed is shown a way to confirm")
	}
	lee.says(lee.open(at), "person:kim proposes: accepted. the shop gave cash back")
	done := lee.submit(at+"/confirm", with("note", "seen the receipt"), http.StatusOK)
	lee.says(done, "resolved (accepted)", "person:lee · seen the receipt", "person:kim", "asked the shop")
	if !strings.Contains(done.body, "&lt;b&gt;asked the shop&lt;/b&gt;") {
		t.Error("what somebody typed is not shown as they typed it")
	}
	lee.says(lee.open("/"), "No open mismatches.")
}

// A step with many is one with each: what one does not allow keeps the others from nothing, and nothing is done twice.
func TestPages_ManyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	small, large, other := w.mismatch(1, 5_000), w.mismatch(2, 5_000_000), w.mismatch(3, 7_000)
	kim, park := w.as("kim", people.RoleFinance), w.as("park", people.RoleViewer)
	if page := park.open("/mismatches"); strings.Contains(page.body, "checkbox") {
		t.Error("a viewer is shown what a viewer may not do")
	}
	chosen := func(ids ...int64) (all []string) {
		for _, id := range ids {
			all = append(all, fmt.Sprintf("%d.%d", id, w.number(`SELECT revision FROM mismatches WHERE mismatch_id = $1`, id)))
		}
		return all
	}
	park.submit("/mismatches", url.Values{"step": {"acknowledge"}, "chosen": chosen(small)}, http.StatusForbidden)
	for _, form := range []url.Values{
		{"step": {"acknowledge"}},
		{"step": {"reopen"}, "chosen": chosen(small)},
		{"step": {"acknowledge"}, "chosen": {"x.1"}},
		{"step": {"acknowledge"}, "chosen": {fmt.Sprint(small)}},
	} {
		kim.submit("/mismatches", form, http.StatusBadRequest)
	}
	kim.says(kim.submit("/mismatches", url.Values{"step": {"acknowledge"}, "chosen": append(chosen(small), "x.1")}, http.StatusBadRequest), "Nothing was changed.")
	if got := w.number(`SELECT count(*) FROM mismatches WHERE status <> 'open'`); got != 0 {
		t.Errorf("a form that was refused changed %d", got)
	}
	seen := chosen(small, large, other)
	kim.says(kim.submit("/mismatches", url.Values{"step": {"acknowledge"}, "chosen": append(seen, "999.1")}, http.StatusOK), "3 of 4: done", "999", "not in the books")
	kim.says(kim.submit("/mismatches", url.Values{"step": {"acknowledge"}, "chosen": seen}, http.StatusOK), "0 of 3: done", "has changed since")
	kim.says(kim.submit("/mismatches", url.Values{"step": {"resolve"}, "as": {"accepted"}, "chosen": chosen(small)}, http.StatusOK), "0 of 1: done", "say why")
	kim.says(kim.submit("/mismatches", url.Values{"step": {"resolve"}, "as": {"accepted"}, "note": {"written off"}, "chosen": chosen(small, large)}, http.StatusOK),
		"2 of 2: done", "resolved", "acknowledged · proposed")
	if got := w.number(`SELECT count(*) FROM mismatches WHERE status = 'resolved'`); got != 1 {
		t.Errorf("%d are resolved, want the small one alone", got)
	}
}

func TestPages_ASignatureIsOnWhatWasShown(t *testing.T) {
	t.Parallel()
	const day = "2026-04-15"
	w, _ := closedWorld(t, office)
	kim := w.as("kim", people.RoleFinance)
	page := kim.open("/days/" + day)
	kim.says(page, day, "reconciled", "20,000", "Nobody has signed this day.")
	digest := regexp.MustCompile(`name="digest" value="([0-9a-f]{64})"`).FindStringSubmatch(page.body)
	if digest == nil {
		t.Fatalf("no statement to sign on\n%s", page.body)
	}
	kim.submit("/days/"+day+"/sign", url.Values{"digest": {strings.Repeat("0", 64)}}, http.StatusConflict)
	kim.submit("/days/"+day+"/sign", url.Values{}, http.StatusBadRequest)
	kim.says(kim.submit("/days/"+day+"/sign", url.Values{"digest": digest[1:], "note": {"as the bank says"}}, http.StatusOK), "person:kim", "as the bank says")
	kim.says(kim.open("/"), day, "person:kim", "2026-04-16 Thu not over yet")
	kim.says(kim.open("/days/2026-04-16"), "2026-04-16 Thu not over yet", "No audit of this day was kept yet", "No cancels.")
	if got := kim.open("/days/2026-04-17"); got.status != http.StatusNotFound {
		t.Errorf("a day that has not come: got %d, want 404", got.status)
	}
}

// A report is the same on the page and in each file, and each file that is taken stands in the trail.
func TestPages_Files(t *testing.T) {
	t.Parallel()
	w, _ := closedWorld(t, office)
	b := w.as("park", people.RoleViewer)
	b.says(b.open("/reports/day?day=2026-04-15"), "order-day", "20,000", "csv xlsx json")
	b.says(b.open("/orders/order-day"), "order-day", "partially canceled")
	b.says(b.open("/reports/trial-balance?as_of=2026-04-16T00%3A00"), "gateway receivable", "30,000")
	file := func(path, kind string) []byte {
		t.Helper()
		got := b.open(path)
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), kind) || !strings.Contains(got.header.Get("Content-Disposition"), "attachment") {
			t.Fatalf("%s: %d %s %s", path, got.status, got.header.Get("Content-Type"), got.header.Get("Content-Disposition"))
		}
		return []byte(got.body)
	}
	if csv := file("/reports/day?day=2026-04-15&format=csv", "text/csv"); !bytes.Contains(csv, []byte("order-day")) {
		t.Errorf("the csv lacks the order:\n%s", csv)
	}
	var decoded map[string]any
	w.must(json.Unmarshal(file("/reports/trial-balance?format=json", "application/json"), &decoded))
	book, err := excelize.OpenReader(bytes.NewReader(file("/reports/order?order_id=order-day&format=xlsx", "application/vnd.openxmlformats")))
	w.must(err)
	defer func() { w.must(book.Close()) }()
	if len(book.GetSheetList()) < 3 {
		t.Errorf("got the sheets %v", book.GetSheetList())
	}
	for path, want := range map[string]int{
		"/reports/day?day=2026-04-15&format=pdf": 400, "/reports/day?day=2026-02-30": 400, "/reports/weather": 404, "/reports/order?order_id=none": 404,
		"/reports/range?from=2026-04-15&to=2026-04-14": 400, "/reports/trial-balance?as_of=yesterday": 400, "/orders/%00": 404,
	} {
		if got := b.open(path); got.status != want {
			t.Errorf("%s: got %d, want %d", path, got.status, want)
		}
	}
	if got := w.text(`SELECT string_agg(subject || ' ' || detail, '; ' ORDER BY deed_id) FROM deeds WHERE action = 'report_taken' AND actor = 'person:park'`); got !=
		"day day=2026-04-15 csv; trial-balance json; order order_id=order-day xlsx" {
		t.Errorf("the trail says %q", got)
	}
}

// Who may has the gateway asked at once, and what it says is in the books then.
func TestPages_AskTheGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office, lazy)
	key := w.sell("order-1", 30_000)
	w.dashboard(key, 10_000) // whose notice does not come
	kim, park := w.as("kim", people.RoleFinance), w.as("park", people.RoleViewer)
	if page := park.open("/orders/order-1"); strings.Contains(page.body, "/ask") {
		t.Error("a viewer is shown a way to ask")
	}
	park.submit("/payments/"+key+"/ask", nil, http.StatusForbidden)
	kim.says(kim.open("/orders/order-1"), "Ask the gateway now")
	kim.says(kim.submit("/payments/"+key+"/ask", nil, http.StatusOK), "PARTIAL_CANCELED", "it was new, and is in the books now · partially canceled")
	kim.says(kim.submit("/payments/"+key+"/ask", nil, http.StatusOK), "they say so already")
	w.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 500, N: -1})
	failed := kim.submit("/payments/"+key+"/ask", nil, http.StatusBadGateway)
	kim.says(failed, "The gateway gave no answer")
	if strings.Contains(failed.body, "Nothing was changed.") {
		t.Error("of a failure on our side nobody can say that nothing was changed")
	}
	w.sim.Heal()
	kim.submit("/payments/never-seen/ask", nil, http.StatusNotFound)
	if got := w.text(`SELECT channel FROM cancels`); got != "manual" {
		t.Errorf("the cancel was learned by %s, want manual", got)
	}
	if got := w.number(`SELECT count(*) FROM deeds WHERE action = 'gateway_asked' AND subject = $1`, "payment "+key); got != 3 {
		t.Errorf("%d questions stand in the trail, want 3", got)
	}
}

// An operator looks after the accounts of others, and nobody else does.
func TestPages_Accounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	op, kim := w.as("op", people.RoleOperator), w.as("kim", people.RoleApprover)
	for _, path := range []string{"/accounts", "/accounts/op/disable"} {
		kim.submit(path, url.Values{"name": {"lee"}, "role": {"operator"}}, http.StatusForbidden)
	}
	if got := kim.open("/accounts"); got.status != http.StatusForbidden || strings.Contains(kim.open("/").body, "/accounts") {
		t.Errorf("an approver is shown the accounts: %d", got.status)
	}
	page := op.submit("/accounts", url.Values{"name": {"lee"}, "role": {"viewer", "finance"}}, http.StatusOK)
	password := regexp.MustCompile(`[A-Z2-7]{26}`).FindString(page.body)
	lee := w.browse()
	if got := lee.submit("/sign-in", url.Values{"name": {"lee"}, "password": {password}}, http.StatusOK); got.at != "/password" {
		t.Errorf("with the password of the page the new account is at %s", got.at)
	}
	if strings.Contains(op.open("/accounts").body, password) {
		t.Error("the password is shown a second time")
	}
	for path, want := range map[string]int{"/accounts/nobody/disable": 404, "/accounts/lee/delete": 404, "/accounts/op/disable": 403, "/accounts/OP/roles": 403, "/accounts/lee/roles": 400} {
		op.submit(path, url.Values{}, want)
	}
	op.submit("/accounts", url.Values{"name": {"LEE"}, "role": {"viewer"}}, http.StatusConflict)
	op.submit("/accounts", url.Values{"name": {"l e"}, "role": {"viewer"}}, http.StatusBadRequest)
	op.submit("/accounts/kim/roles", url.Values{"role": {"viewer"}}, http.StatusOK)
	op.submit("/accounts/lee/disable", nil, http.StatusOK)
	if got := lee.open("/password"); !strings.HasPrefix(got.at, "/sign-in") {
		t.Errorf("a disabled account goes on at %s", got.at)
	}
	op.says(op.open("/accounts"), "kim", "disabled", "roles set", "person:op", "account disabled")
	id := w.mismatch(1, 5000)
	kim.submit(fmt.Sprintf("/mismatches/%d/acknowledge", id), url.Values{"revision": {"1"}}, http.StatusForbidden)
}

// An order is found under just the id that it has, however that is escaped in an address.
func TestPages_OrdersByTheirIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	b := w.as("park", people.RoleViewer)
	for i, id := range []string{"a%41", "a%41/b", "주문 1", "a+b?c#d"} {
		n := w.mismatch(i+1, 5000)
		_, err := w.db.Exec(t.Context(), `UPDATE mismatches SET order_id = $1 WHERE mismatch_id = $2`, id, n)
		w.must(err)
		if got := b.open("/orders/" + url.PathEscape(id)); got.status != http.StatusOK || !strings.Contains(html.UnescapeString(got.body), "<h1>Order "+id+"</h1>") {
			t.Errorf("%s: got %d\n%s", id, got.status, textOf(got.body))
		}
		link := regexp.MustCompile(`href="(/orders/[^"]*)"`).FindStringSubmatch(b.open(fmt.Sprintf("/mismatches/%d", n)).body)
		if link == nil {
			t.Fatalf("%s: the mismatch has no link to its order", id)
		}
		if got := b.open(html.UnescapeString(link[1])); !strings.Contains(html.UnescapeString(got.body), "<h1>Order "+id+"</h1>") {
			t.Errorf("%s: the link %s leads to %d", id, link[1], got.status)
		}
	}
}

func TestPages_Deliveries(t *testing.T) {
	t.Parallel()
	w, _ := closedWorld(t, office)
	b := w.as("park", people.RoleViewer)
	b.says(b.open("/deliveries"), "order-day", "applied partial", "200")
	b.says(b.open("/deliveries?outcome=db_failed"), "None.")
	key := w.text(`SELECT payment_key FROM payments`)
	b.says(b.open("/deliveries?payment_key="+key), "applied partial")
	for _, path := range []string{"/deliveries?outcome=nothing", "/deliveries?before=x", "/deliveries?payment_key=%00"} {
		if got := b.open(path); got.status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", path, got.status)
		}
	}
	// Pages neither skip nor repeat, also among deliveries of one instant, and an outcome that few have is found behind many.
	_, err := w.db.Exec(t.Context(), `
		INSERT INTO deliveries (received_at, source, body_hash, body_bytes, outcome, status)
		SELECT '2026-04-16 00:10+09', '192.0.2.1', '', 0, CASE WHEN n % 5500 = 1 THEN 'db_failed' ELSE 'event_ignored' END, 200
		FROM generate_series(1, 6000) AS n`)
	w.must(err)
	for path, want := range map[string]int{"/deliveries?outcome=db_failed": 2, "/deliveries": int(w.number(`SELECT count(*) FROM deliveries`))} {
		rows := 0
		for path != "" {
			page := b.open(path)
			rows += strings.Count(page.body, "<tr><td>")
			path = ""
			if next := regexp.MustCompile(`href="(/deliveries\?[^"]*before=[^"]*)" rel="next"`).FindStringSubmatch(page.body); next != nil {
				path = html.UnescapeString(next[1])
			}
		}
		if rows != want {
			t.Errorf("got %d rows, want %d", rows, want)
		}
	}
}

func TestPages_BothLanguages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	id := w.mismatch(1, 5000)
	b := w.as("kim", people.RoleFinance)
	b.language = "ko-KR,ko;q=0.9,en;q=0.5"
	b.says(b.open("/"), "개요", "위험 금액", "5,000 KRW")
	b.says(b.open(fmt.Sprintf("/mismatches/%d", id)), "불일치", "장부에 없는 취소", "처리 이력")
	if got := b.submit("/language", url.Values{"language": {"en"}, "back": {"/mismatches?status=open"}}, http.StatusOK); got.at != "/mismatches?status=open" {
		t.Errorf("choosing a language leads to %s", got.at)
	}
	b.says(b.open("/"), "Money at risk")
	b.submit("/language", url.Values{"language": {"fr"}}, http.StatusBadRequest)
}

// A page of somebody else cannot have a browser do anything in the name of who is signed in.
func TestPages_OtherOrigins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	id := w.mismatch(1, 5000)
	b := w.as("kim", people.RoleFinance)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s/mismatches/%d/acknowledge", w.app.PagesURL(), id), strings.NewReader("revision=1"))
		w.must(err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set(name, value)
		if got := b.do(request); got.status != http.StatusForbidden {
			t.Errorf("with %s: %s: got %d, want 403", name, value, got.status)
		}
	}
	page := b.open("/")
	for name, want := range map[string]string{
		"Content-Security-Policy": "script-src 'self'", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := page.header.Get(name); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", name, got, want)
		}
	}
	if strings.Contains(page.body, "style=") || strings.Contains(page.body, "<script>") || strings.Contains(page.body, "onclick") {
		t.Error("the page has what its policy forbids")
	}
}

func TestPages_SignInIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, office)
	b := w.browse()
	refused := 0
	for range 40 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.app.PagesURL()+"/sign-in", strings.NewReader("name=nobody&password=x"))
		w.must(err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if got := b.do(request); got.status == http.StatusTooManyRequests {
			refused++
			b.says(got, "Too many requests")
		}
	}
	if refused != 10 {
		t.Errorf("%d of 40 attempts were refused, want 10", refused)
	}
}

// What can go wrong on a page is told in Korean too.
func TestPages_ProblemsInKorean(t *testing.T) {
	t.Parallel()
	for _, row := range app.Problems() {
		shown := slices.ContainsFunc([]error{
			pages.ErrNotAllowed, pages.ErrForm, desk.ErrRequest, ledger.ErrNotFound, ledger.ErrDay, ledger.ErrStep, ledger.ErrSecondPerson, ledger.ErrMoved,
			ledger.ErrNote, ledger.ErrResolution, ledger.ErrUnfixable, ledger.ErrRequestEnd, ledger.ErrActor, reconcile.ErrNoClosing, reconcile.ErrDays,
			reconcile.ErrSigner, reconcile.ErrSignature, reconcile.ErrDayNotClosed, reconcile.ErrNotAcknowledged, reconcile.ErrDayDiffers,
			reconcile.ErrClosingBusy, reconcile.ErrUnavailable, web.ErrNoRoute, web.ErrMethod, web.ErrOrigin, admission.ErrRateLimited, admission.ErrShed,
			web.ErrRequestTimeout, context.DeadlineExceeded,
		}, func(err error) bool { return errors.Is(err, row.Err) })
		if _, ok := pages.InKorean(row.Title); shown && !ok {
			t.Errorf("%q has no Korean", row.Title)
		}
	}
}
