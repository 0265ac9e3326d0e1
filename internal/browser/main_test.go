package browser_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"daesa/internal/postgres/postgrestest"
)

var update = flag.Bool("update", false, "take the pictures of the guides anew")

// chromium is the browser that all tests share. Each test has tabs with cookies of their own.
var chromium shared

func TestMain(m *testing.M) { postgrestest.Run(m, chromium.stop) }

type shared struct {
	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	err    error
}

// start starts Chromium, the first time.
func (s *shared) start(tb testing.TB) context.Context {
	tb.Helper()
	s.once.Do(func() {
		path := program()
		if path == "" {
			tb.Fatal("Chromium is not on this machine; scripts/setup installs it")
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path),
			// The sandbox cannot be had as root nor in most containers. What is opened here are our own pages only.
			chromedp.NoSandbox,
			chromedp.DisableGPU,
			chromedp.Flag("disable-component-update", true),
			chromedp.Flag("disable-quic", true),
			chromedp.Flag("no-pings", true),
			chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
			chromedp.Flag("lang", "en-US"),
			chromedp.WindowSize(1280, 900),
		)
		ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(tb.Context()), options...)
		s.ctx, s.cancel = chromedp.NewContext(ctx)
		end := s.cancel
		s.cancel = func() { end(); cancel() }
		s.err = chromedp.Do(s.ctx)
	})
	if s.err != nil || s.ctx == nil {
		tb.Fatalf("Chromium did not start: %v", s.err)
	}
	return s.ctx
}

func (s *shared) stop() error {
	if s.ctx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	err := chromedp.Cancel(ctx)
	s.cancel()
	return err
}

// program is where Chromium is, by any of its names.
func program() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const onMac = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
	if _, err := os.Stat(onMac); err == nil {
		return onMac
	}
	return ""
}
