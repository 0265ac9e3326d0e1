package browser_test

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"daesa/internal/people"
)

// focused is what has the focus: what it is called, and whether it can be seen to have it.
type focused struct {
	Name string `json:"name"`
	Seen bool   `json:"seen"`
}

const whatHasTheFocus = `(() => {
	const at = document.activeElement;
	if (!at || at === document.body) return {name: "", seen: true};
	const label = at.labels && at.labels.length ? at.labels[0] : at;
	const style = getComputedStyle(at);
	return {
		name: (at.getAttribute("aria-label") || label.innerText || "").trim(),
		seen: at.matches(":focus-visible") && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
	};
})()`

// tabTo presses the tab key until the focus is on what has one of the names. Wherever it is on the way can be seen.
func (b *tab) tabTo(names ...string) {
	b.Helper()
	var passed []string
	for range 100 {
		at := ask[focused](b, whatHasTheFocus)
		if !at.Seen {
			b.Errorf("at %s nobody sees that the focus is on %q", b.path(), at.Name)
		}
		if slices.Contains(names, at.Name) {
			return
		}
		passed = append(passed, at.Name)
		b.press(kb.Tab)
	}
	b.Fatalf("at %s the tab key reaches none of %q, only %q", b.path(), names, passed)
}

func (b *tab) press(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// enter presses the enter key on what leads to another page.
func (b *tab) enter() {
	b.Helper()
	b.leads(200, chromedp.KeyEvent(kb.Enter))
}

// Somebody without a mouse signs in and works a mismatch to its end.
func TestKeyboardOnly(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.spent("order-spent", 80_000)
	o.colleague("kim", people.RoleFinance)
	b := browse(t, o.app.PagesURL(), "en")
	b.open("/", 200)
	b.tabTo("Name") // is where the focus begins
	b.press("kim")
	b.press(kb.Tab)
	b.press(chosenPassword)
	b.enter()
	b.press(kb.Tab)
	b.tabTo("To the content")
	b.shot("skip")
	b.tabTo("Mismatches")
	b.enter()
	b.tabTo("1")
	b.enter()
	b.tabTo("Acknowledge")
	b.enter()
	b.says("acknowledged")
	b.tabTo("fixed: it was put right", "accepted: the difference stays; the note says why")
	b.press(kb.ArrowDown)
	b.tabTo("accepted: the difference stays; the note says why")
	b.press(kb.Tab)
	b.tabTo("Note")
	b.press("the customer pays it back")
	b.tabTo("Resolve")
	b.shot("resolving")
	b.enter()
	b.says("resolved (accepted)", "the customer pays it back")
	b.tabTo("Sign out")
	b.enter()
	b.says("Sign in")
}
