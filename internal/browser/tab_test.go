package browser_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long one step may take on a busy machine.
const patience = 30 * time.Second

// tab is somebody's browser: one tab, with cookies that no other has.
type tab struct {
	testing.TB

	at  string // where the pages are
	ctx context.Context

	mu         sync.Mutex
	complaints []string // of the page to the console
	refused    []int64  // statuses that the test expects, of which the console complains
}

// browse opens a tab for somebody whose browser speaks a language: en or ko.
func browse(tb testing.TB, at, language string) *tab {
	tb.Helper()
	b := &tab{TB: tb, at: at}
	ctx, cancel := chromedp.NewContext(chromium.start(tb), chromedp.WithNewBrowserContext())
	b.ctx = ctx
	tb.Cleanup(func() {
		if tb.Failed() {
			b.shot("failed")
		}
		cancel()
		for _, c := range b.complaints {
			tb.Errorf("a page complains: %s", c)
		}
	})
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		tb.Fatal(err)
	}
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
			Headers: network.Headers{"Accept-Language": language},
		})
		return err
	}))
	return b
}

// listen keeps what the page complains of.
func (b *tab) listen(event any) {
	var complaint string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if b.expected(e.Entry) {
			return
		}
		complaint = fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		complaint = "exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		complaint = fmt.Sprintf("console: %s", e.Type)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, complaint)
}

// expected reports whether the browser tells of an answer that the test wants.
func (b *tab) expected(e *log.Entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.Source == log.EntrySourceNetwork && slices.ContainsFunc(b.refused, func(status int64) bool {
		return strings.Contains(e.Text, fmt.Sprintf("status of %d ", status))
	})
}

// do does steps, each of which waits for what it needs.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := b.try(steps...); err != nil {
		b.Fatal(err)
	}
}

func (b *tab) try(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	return chromedp.Do(ctx, steps...)
}

// leads does steps that lead to another page, waits until that is drawn and checks its status.
func (b *tab) leads(want int64, steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if want >= 400 {
		b.mu.Lock()
		b.refused = append(b.refused, want)
		b.mu.Unlock()
	}
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	answer, err := chromedp.RunResponse(ctx, steps...)
	if err != nil {
		b.Fatalf("go on from %s: %v", b.path(), err)
	}
	if answer == nil || answer.Status != want {
		b.Fatalf("at %s: got %+v, want %d", b.path(), answer, want)
	}
}

// open opens a page by its address.
func (b *tab) open(path string, want int64) {
	b.Helper()
	b.leads(want, chromedp.Navigate(b.at+path))
}

// follow clicks a link or a button by what it says, which leads to another page.
func (b *tab) follow(name string, want int64) {
	b.Helper()
	b.leads(want, chromedp.Click(control(name), chromedp.NodeVisible))
}

// control is a link or button by what stands on it.
func control(name string) chromedp.Search {
	return chromedp.Search(fmt.Sprintf(`(//button | //a | //summary)[normalize-space()=%q]`, name))
}

// fill puts a text into a field by its label, in the form that has a button.
func (b *tab) fill(button, label, text string) {
	b.Helper()
	b.do(
		chromedp.Clear(field(button, label)),
		chromedp.Focus(field(button, label)),
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
			return err
		}),
	)
}

func field(button, label string) chromedp.Search {
	return chromedp.Search(fmt.Sprintf(`//form[.//button[normalize-space()=%q]]//label[starts-with(normalize-space(), %q)]//input`, button, label))
}

// signIn signs somebody in who has chosen a password.
func (b *tab) signIn(name string) {
	b.Helper()
	b.open("/sign-in", 200)
	button, label, password := "Sign in", "Name", "Password"
	if ask[string](b, `document.documentElement.lang`) == "ko" {
		button, label, password = "로그인", "이름", "비밀번호"
	}
	b.fill(button, label, name)
	b.fill(button, password, chosenPassword)
	b.follow(button, 200)
	if at := b.path(); at != "/" {
		b.Fatalf("%s is signed in at %s:\n%s", name, at, b.text())
	}
}

// phone makes the tab as narrow as a telephone.
func (b *tab) phone() {
	b.Helper()
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
}

// wide makes the tab so wide.
func (b *tab) wide(width int64) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, 900))
}

// text is what is to be read on the page, in the order and the form in which it is drawn.
func (b *tab) text() string { return ask[string](b, `document.body.innerText`) }

// path is where the tab is.
func (b *tab) path() string { return ask[string](b, `location.pathname + location.search`) }

// ask asks the page for a value.
func ask[T any](b *tab, script string) T {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.Errorf("%s: %v", script, err)
	}
	return value
}

// says requires that all texts can be read on the page.
func (b *tab) says(texts ...string) {
	b.Helper()
	seen := b.text()
	for _, want := range texts {
		if !strings.Contains(seen, want) {
			b.Errorf("%s lacks %q:\n%s", b.path(), want, seen)
		}
	}
}

// lacks requires that none of the texts can be read on the page.
func (b *tab) lacks(texts ...string) {
	b.Helper()
	seen := b.text()
	for _, unwanted := range texts {
		if strings.Contains(seen, unwanted) {
			b.Errorf("%s says %q:\n%s", b.path(), unwanted, seen)
		}
	}
}

// artefacts reports whether the artefacts of tests are kept: -artifacts.
func artefacts() bool { return flag.Lookup("test.artifacts").Value.String() == "true" }

// shot keeps a picture of the whole page among the artefacts of the test.
func (b *tab) shot(name string) {
	b.Helper()
	if !artefacts() {
		return
	}
	if err := os.WriteFile(filepath.Join(b.ArtifactDir(), name+".png"), b.look(chromedp.FullScreenshot(100)), 0o600); err != nil {
		b.Error(err)
	}
}

// look takes a picture.
func (b *tab) look(take chromedp.Action[[]byte]) []byte {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	picture, err := chromedp.Run(ctx, take)
	if err != nil {
		b.Errorf("take a picture: %v", err)
	}
	return picture
}
