package tosssim_test

import (
	"flag"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

var update = flag.Bool("update", false, "write the golden files anew")

// look opens the page in a language.
func (s *shop) look(language string) string {
	s.t.Helper()
	out := s.must(http.MethodGet, "/__sim/", "", "Authorization", "", "Accept-Language", language)
	if out.status != http.StatusOK {
		s.t.Fatalf("the page: %d %s", out.status, out.body)
	}
	return string(out.body)
}

// press sends a form of the page, as a browser does, and goes where that leads: to the page.
func (s *shop) press(path string, fields ...string) answer {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return s.must(http.MethodPost, "/__sim/page/"+path, form.Encode(), "Authorization", "", "Content-Type", "application/x-www-form-urlencoded",
		"Sec-Fetch-Site", "same-origin", "Origin", s.url)
}

// TestPage_InBothLanguages holds the whole page against golden files.
func TestPage_InBothLanguages(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	newReceiver(t, s)
	full, part := s.paid("order-1"), s.paid("order-2")
	s.Authenticate(tosssim.Checkout{OrderID: "order-3", OrderName: "모자", Amount: 1_234_567})
	s.paid("order-4")
	s.clock.Advance(time.Minute)
	s.press("cancel", "paymentKey", full, "reason", "고객 변심")
	s.DeliverDue(t.Context())
	s.press("notices", "mode", "held")
	s.press("cancel", "paymentKey", part, "reason", "<반품>", "amount", "12,000")
	for _, language := range []string{"en", "ko"} {
		got := s.look(language)
		golden := filepath.Join("testdata", "page_"+language+".html")
		if *update {
			mustDo(t, os.MkdirAll("testdata", 0o750))
			mustDo(t, os.WriteFile(golden, []byte(got), 0o600))
		}
		want, err := os.ReadFile(golden)
		mustDo(t, err)
		if got != string(want) {
			t.Errorf("the page differs from %s; -update writes it:\n%s", golden, got)
		}
	}
}

func TestPage_Cancels(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	r := newReceiver(t, s)
	key := s.paid("order-1")
	s.DeliverDue(t.Context())
	before := len(r.received())
	for _, try := range []struct {
		name   string
		fields []string
		status int
		left   string
	}{
		{"in part", []string{"paymentKey", key, "reason", "r", "amount", "12,000"}, 200, "38000"},
		{"more than is left", []string{"paymentKey", key, "reason", "r", "amount", "38001"}, 409, "38000"},
		{"of nothing", []string{"paymentKey", key, "reason", "r", "amount", "0"}, 400, "38000"},
		{"of less than nothing", []string{"paymentKey", key, "reason", "r", "amount", "-1"}, 400, "38000"},
		{"of no amount", []string{"paymentKey", key, "reason", "r", "amount", "much"}, 400, "38000"},
		{"of half a won", []string{"paymentKey", key, "reason", "r", "amount", "0.5"}, 400, "38000"},
		{"for no reason", []string{"paymentKey", key, "amount", "1"}, 400, "38000"},
		{"of nobody's payment", []string{"paymentKey", "nobody", "reason", "r"}, 404, "38000"},
		{"of the rest", []string{"paymentKey", key, "reason", "r", "amount", ""}, 200, "0"},
		{"again", []string{"paymentKey", key, "reason", "r"}, 409, "0"},
	} {
		out := s.press("cancel", try.fields...)
		if out.status != try.status || s.get(key).number("balanceAmount") != try.left {
			t.Errorf("%s: got %d and %s left, want %d and %s", try.name, out.status, s.get(key).number("balanceAmount"), try.status, try.left)
		}
		if refused := try.status >= 400; refused != strings.Contains(string(out.body), `role="alert"`) {
			t.Errorf("%s: says %s", try.name, out.body)
		}
		if try.status == 409 && !strings.Contains(string(out.body), "The payment cannot be canceled like that: cancel ") {
			t.Errorf("%s: does not say why: %s", try.name, out.body)
		}
	}
	s.DeliverDue(t.Context())
	if got := len(r.received()) - before; got != 2 {
		t.Errorf("%d notices came of two cancels", got)
	}
	if out := s.press("deliver", "paymentKey", key); out.status != 200 || len(r.received())-before != 3 {
		t.Errorf("again: %d, %d notices", out.status, len(r.received())-before)
	}
	if out := s.press("deliver", "paymentKey", "nobody"); out.status != 404 {
		t.Errorf("of nobody: %d", out.status)
	}
}

// What the page lets the gateway do is what a client then meets, and the page says so until it is ended.
func TestPage_Behaves(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	r := newReceiver(t, s)
	key := s.paid("order-1")
	s.DeliverDue(t.Context())
	pressed := func(want ...string) {
		t.Helper()
		var got []string
		for _, found := range regexp.MustCompile(`value="(\w+)" aria-pressed="true"`).FindAllStringSubmatch(s.look("en"), -1) {
			got = append(got, found[1])
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("the page says %v, want %v", got, want)
		}
	}
	pressed("normal", "normal")

	s.press("gateway", "mode", "slow")
	pressed("slow", "normal")
	if began := time.Now(); s.get(key).status != 200 || time.Since(began) < time.Second {
		t.Errorf("slow: answered after %s", time.Since(began))
	}

	s.press("gateway", "mode", "lost_reply")
	pressed("lost_reply", "normal")
	if _, err := s.send(http.MethodPost, "/v1/payments/"+key+"/cancel", `{"cancelReason":"r","cancelAmount":1000}`); err == nil {
		t.Error("the reply was not lost")
	}
	if left := s.get(key).number("balanceAmount"); left != "49000" {
		t.Errorf("%s is left: it was not done", left)
	}

	s.press("gateway", "mode", "silent")
	pressed("silent", "normal")
	held := make(chan error, 1)
	go func() {
		_, err := s.send(http.MethodGet, "/v1/payments/"+key, "")
		held <- err
	}()
	eventually(t, "silence", func() bool { return s.Held() == 1 })
	s.press("normal")
	if err := <-held; err == nil {
		t.Error("a request that was held was answered")
	}
	pressed("normal", "normal")

	before := len(r.received())
	s.press("notices", "mode", "twice")
	pressed("normal", "twice")
	s.DeliverDue(t.Context())
	if got := len(r.received()) - before; got != 2 {
		t.Errorf("twice: %d came", got)
	}
	s.press("notices", "mode", "lost")
	pressed("normal", "lost")
	s.press("cancel", "paymentKey", key, "reason", "r", "amount", "1000")
	s.press("notices", "mode", "held")
	pressed("normal", "held")
	s.press("cancel", "paymentKey", key, "reason", "r", "amount", "1000")
	s.DeliverDue(t.Context())
	if got := len(r.received()) - before; got != 2 {
		t.Errorf("lost and held: %d came", got-2)
	}
	s.press("normal")
	s.DeliverDue(t.Context())
	if got := len(r.received()) - before; got != 3 {
		t.Errorf("normal again: %d of the one that was held came", got-2)
	}
	s.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Delay, N: -1})
	s.SetDelivery(tosssim.DeliveryPlan{Duplicate: 3})
	pressed()
	for _, path := range []string{"gateway", "notices"} {
		for _, mode := range []string{"", "scripted", "explode"} {
			if out := s.press(path, "mode", mode); out.status != 400 {
				t.Errorf("%s %q: %d", path, mode, out.status)
			}
		}
	}
}

// Whoever reaches the control moves money: nobody does from another machine, nor through a page of another site.
func TestControl_IsForThisMachineOnly(t *testing.T) {
	t.Parallel()
	sim := tosssim.New(tosssim.Config{})
	defer sim.Close()
	for _, try := range []struct {
		name, remote, host string
		headers            []string
		status             int
	}{
		{"a program here", "127.0.0.1:5000", "127.0.0.1:9400", nil, 303},
		{"by IPv6", "[::1]:5000", "[::1]:9400", nil, 303},
		{"by name", "127.0.0.1:5000", "localhost:9400", []string{"Origin", "http://localhost:9400"}, 303},
		{"the page itself", "127.0.0.1:5000", "127.0.0.1:9400", []string{"Sec-Fetch-Site", "same-origin"}, 303},
		{"another machine", "192.0.2.7:5000", "127.0.0.1:9400", nil, 403},
		{"another name for us", "127.0.0.1:5000", "rebound.example", []string{"Origin", "http://rebound.example"}, 403},
		{"another site", "127.0.0.1:5000", "127.0.0.1:9400", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another port", "127.0.0.1:5000", "127.0.0.1:9400", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"an old browser", "127.0.0.1:5000", "127.0.0.1:9400", []string{"Origin", "http://evil.example"}, 403},
	} {
		for _, path := range []string{"/__sim/page/normal", "/__sim/heal"} {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
			request.RemoteAddr, request.Host = try.remote, try.host
			for i := 0; i < len(try.headers); i += 2 {
				request.Header.Set(try.headers[i], try.headers[i+1])
			}
			out := httptest.NewRecorder()
			sim.Handler().ServeHTTP(out, request)
			want := try.status
			if want == 303 && path == "/__sim/heal" {
				want = 200
			}
			if out.Code != want {
				t.Errorf("%s at %s: got %d %s, want %d", try.name, path, out.Code, out.Body, want)
			}
		}
	}
}

// The page brings everything along, and its policy lets nothing else in.
func TestPage_NeedsNothingElse(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	out := s.must(http.MethodGet, "/__sim/", "", "Authorization", "")
	if policy := out.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	if strings.Contains(string(out.body), "://") || strings.Contains(string(out.body), "<script") {
		t.Errorf("the page refers to something else:\n%s", out.body)
	}
	style := s.must(http.MethodGet, "/__sim/page/style.css", "", "Authorization", "")
	if style.status != 200 || !strings.HasPrefix(style.header.Get("Content-Type"), "text/css") {
		t.Errorf("the style: %d %s", style.status, style.header.Get("Content-Type"))
	}
	for _, path := range []string{"/__sim/page/page.html", "/__sim/page/", "/__sim/other"} {
		if out := s.must(http.MethodGet, path, "", "Authorization", ""); out.status == 200 {
			t.Errorf("%s is served", path)
		}
	}
}

// Every text of the page is in Korean as well.
func TestPage_EveryTextIsInKorean(t *testing.T) {
	t.Parallel()
	source, err := fs.ReadFile(os.DirFS("page"), "page.html")
	mustDo(t, err)
	texts := regexp.MustCompile(`\{\{t "([^"]+)"\}\}`).FindAllStringSubmatch(string(source), -1)
	if len(texts) < 20 {
		t.Fatalf("only %d texts were found: this test does not see the page", len(texts))
	}
	s := newShop(t, tosssim.Config{})
	s.paid("order-1")
	korean := regexp.MustCompile(`value="[^"]*"|<title>`).ReplaceAllString(s.look("ko"), "")
	for _, text := range texts {
		if strings.Contains(korean, ">"+text[1]+"<") {
			t.Errorf("%q has no Korean", text[1])
		}
	}
}
