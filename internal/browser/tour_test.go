package browser_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"daesa/internal/people"
	"daesa/internal/stage"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
)

// house is a story of which every page has something to show: closed days, one of them signed, cancels that are owed an
// answer, and mismatches.
func house(tb testing.TB) *office {
	tb.Helper()
	o := open(tb)
	sell := func(order string, won int64) string {
		return o.sell(stage.Sale{OrderID: order, Won: won, Customer: "customer-" + order})
	}
	for i, won := range []int64{129_000, 54_000, 310_000} {
		day := opening().AddDate(0, 0, i)
		o.clock.Set(day)
		for n := range 3 {
			order := fmt.Sprintf("order-%s-%d", day.Format("0102"), n+1)
			key := sell(order, won+int64(n)*11_000)
			o.clock.Advance(37 * time.Minute)
			if n > 0 {
				o.canceled(key, won/int64(n+1))
			}
		}
		o.night(ledger.DayOf(day))
	}
	o.clock.Set(opening().AddDate(0, 0, 3))
	o.canceled(sell("order-0418-1", 88_000), 0)
	o.deliver(200) // twice
	o.spent("order-0418-2", 80_000)
	o.clock.Advance(3 * time.Minute)
	o.spent("order-0418-3", 5_000_000)
	o.clock.Advance(12 * time.Minute)
	_, err := o.sim.CancelInDashboard(sell("order-0418-4", 42_000), 12_000, "부분 반품") // the gateway cannot be asked about its notice
	o.must(err)
	o.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Status, Code: 503, N: -1})
	o.deliver(502)
	o.sim.Heal()
	o.clock.Advance(11 * time.Minute)
	o.audit()
	return o
}

// pagesOf are the pages that an approver who is operator too can see, by a name for their picture.
func pagesOf() map[string]string {
	return map[string]string{
		"overview": "/", "day": "/days/2026-04-17", "today": "/days/2026-04-18", "mismatches": "/mismatches", "mismatch": "/mismatches/2",
		"order": "/orders/order-0418-3", "deliveries": "/deliveries", "trial-balance": "/reports/trial-balance",
		"range": "/reports/range?from=2026-04-15&to=2026-04-17", "report": "/reports/day?day=2026-04-17", "accounts": "/accounts",
		"password": "/password",
	}
}

// Every page fits a wide screen and a telephone, in both languages, and complains of nothing.
func TestTour(t *testing.T) {
	t.Parallel()
	o := house(t)
	o.colleague("kim", people.RoleApprover, people.RoleOperator)
	for _, language := range []string{"en", "ko"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			b := browse(t, o.app.PagesURL(), language)
			b.open("/sign-in", 200)
			b.shot("sign-in")
			b.signIn("kim")
			for name, path := range pagesOf() {
				b.wide(1280)
				b.open(path, 200)
				b.fits(1280)
				b.wide(820)
				b.fits(820)
				b.wide(1280)
				b.speaks(language)
				b.shot(name)
				b.phone()
				b.fits(360)
				b.shot(name + "-phone")
			}
			b.open("/deliveries", 200)
			b.says(map[string]string{"en": "query failed (server error)", "ko": "조회 실패 (PG 오류)"}[language])
			b.phone()
			b.open("/days/nonsense", 400)
			b.fits(360)
			b.open("/nowhere", 404)
			b.fits(360)
			b.shot("nowhere-phone")
		})
	}
}

// fits requires that nobody has to scroll the page sideways, and that nothing lies over its neighbour. Wide tables scroll by
// themselves.
func (b *tab) fits(width int) {
	b.Helper()
	type size struct {
		Page int    `json:"page"`
		Over string `json:"over"`
	}
	got := ask[size](b, fmt.Sprintf(`(() => {
		const width = %d, over = [...document.querySelectorAll("body *")]
			.filter(e => e.getBoundingClientRect().right > width + 1 && !e.closest("table, .wide, pre, .skip") ||
				e.matches(".card, section, fieldset") && e.scrollWidth > e.clientWidth + 1)
			.map(e => e.tagName + "." + e.className).slice(0, 5).join(" ");
		return {page: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth), over};
	})()`, width))
	if got.Page > width || got.Over != "" {
		b.Errorf("%s is %d wide on a screen of %d; too wide is %q", b.path(), got.Page, width, got.Over)
	}
}

// speaks requires that the page says that it is in a language, and that nothing of its frame is in the other.
func (b *tab) speaks(language string) {
	b.Helper()
	if got := ask[string](b, `document.documentElement.lang`); got != language {
		b.Errorf("%s says that it is in %s, want %s", b.path(), got, language)
	}
	for other, words := range map[string][]string{
		"en": {"Overview", "Mismatches", "Deliveries", "Trial balance", "Accounts", "Sign out", "All times are Korean"},
		"ko": {"개요", "불일치", "웹훅 수신", "시산표", "계정", "로그아웃", "모든 시각은 한국 시각"},
	} {
		if seen := b.text(); other == language {
			b.says(words...)
		} else if found := firstOf(seen, words); found != "" {
			b.Errorf("%s says %q in %s", b.path(), found, language)
		}
	}
	if found := durations.FindString(b.text()); language == "ko" && found != "" && !strings.HasPrefix(b.path(), "/reports/") {
		b.Errorf("%s says %q in Korean", b.path(), found)
	}
}

// durations are how long something took, as a programmer writes it.
var durations = regexp.MustCompile(`\b\d+[hms](\d+[ms])*\b`)

func firstOf(text string, words []string) string {
	for _, word := range words {
		if strings.Contains(text, word) {
			return word
		}
	}
	return ""
}

// The language that somebody chooses stays, whatever the browser asks for.
func TestLanguage_IsChosen(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.colleague("kim", people.RoleFinance)
	b := browse(t, o.app.PagesURL(), "ko-KR")
	b.open("/mismatches", 200)
	b.says("로그인", "비밀번호")
	b.follow("English", 200)
	if at := b.path(); at != "/sign-in?back=%2Fmismatches" {
		t.Errorf("another language leads to %s", at)
	}
	b.fill("Sign in", "Name", "kim")
	b.fill("Sign in", "Password", chosenPassword)
	b.follow("Sign in", 200)
	if at := b.path(); at != "/mismatches" {
		t.Errorf("signing in leads to %s", at)
	}
	b.says("Mismatches", "None.")
	b.follow("한국어", 200)
	b.says("불일치", "없습니다.")
}
