package browser_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/xuri/excelize/v2"

	"daesa/internal/people"
	"daesa/internal/stage"
)

// A day is closed by itself in the night, and signed by a person in the morning, who sees it then.
func TestDay_IsClosedAndSigned(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.colleague("kim", people.RoleFinance)
	o.canceled(o.sell(stage.Sale{OrderID: "order-day", Won: 50_000}), 20_000)
	b := browse(t, o.app.PagesURL(), "en")
	b.signIn("kim")
	b.says("No day was closed yet.")
	b.follow("The day so far", 200)
	b.says("2026-04-15", "not over yet")
	b.lacks("Sign this statement")

	o.night("2026-04-15")
	b.follow("Overview", 200)
	b.says("reconciled", "not over yet")
	b.follow("2026-04-15", 200)
	b.says("2026-04-15 Wed", "reconciled", "20,000", "Nobody has signed this day.")
	b.fill("Sign this statement", "Note", "as the bank says")
	b.shot("to be signed")
	b.follow("Sign this statement", 200)
	b.says("person:kim", "as the bank says")
	b.lacks("Nobody has signed this day.")
	b.shot("signed")
	b.follow("Overview", 200)
	b.says("person:kim")
	b.shot("overview")
}

// What a day says on its page is what its file says, which a browser saves and a spreadsheet opens.
func TestDay_IsExported(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.colleague("park", people.RoleViewer)
	for order, won := range map[string]int64{"order-a": 20_000, "order-b": 7_000} {
		o.canceled(o.sell(stage.Sale{OrderID: order, Won: 50_000}), won)
	}
	o.night("2026-04-15")
	b := browse(t, o.app.PagesURL(), "en")
	b.signIn("park")
	b.follow("2026-04-15", 200)
	b.follow("Report of the day", 200)
	b.says("order-a", "order-b", "20,000", "7,000")
	b.shot("report")
	book, err := excelize.OpenFile(b.download("xlsx"))
	o.must(err)
	defer func() { o.must(book.Close()) }()
	var cells []string
	for _, sheet := range book.GetSheetList() {
		rows, err := book.GetRows(sheet, excelize.Options{RawCellValue: true})
		o.must(err)
		cells = append(cells, slices.Concat(rows...)...)
	}
	for _, want := range []string{"order-a", "order-b", "20000", "7000", "27000"} {
		if !slices.Contains(cells, want) {
			t.Errorf("the file lacks %s: %q", want, cells)
		}
	}
}

// download clicks a link to a file and returns where the browser saved it.
func (b *tab) download(name string) string {
	b.Helper()
	dir := b.TempDir()
	here, yes := chromedp.FromContext(b.ctx), true
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
			Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, BrowserContextID: here.BrowserContextID, DownloadPath: dir, EventsEnabled: &yes,
		})
		return err
	}))
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	progress := chromedp.BrowserEvents(ctx, browser.DownloadProgress)
	b.do(chromedp.Click(control(name), chromedp.NodeVisible))
	for event, err := range progress {
		if err != nil {
			b.Fatalf("download %s: %v", name, err)
		}
		path := filepath.Join(dir, event.GUID)
		if _, err := os.Stat(path); err == nil && event.State == browser.DownloadProgressStateCompleted {
			named := path + "." + strings.ToLower(name)
			if err := os.Rename(path, named); err != nil {
				b.Fatal(err)
			}
			return named
		}
	}
	b.Fatalf("%s was not saved", name)
	return ""
}
