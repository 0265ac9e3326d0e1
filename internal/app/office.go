package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/reconcile/pages"
	"daesa/reconcile/report"
	"daesa/webhook"
)

// listenForPeople opens the listener of the pages, if there are to be any.
func (a *App) listenForPeople(ctx context.Context, office http.Handler) (err error) {
	if a.cfg.PagesListen == "" {
		return nil
	}
	if a.pages, err = web.NewServer(web.ServerConfig{Handler: office, Log: a.log}); err != nil {
		return err
	}
	var open net.ListenConfig
	if a.pagesListener, err = open.Listen(ctx, "tcp", a.cfg.PagesListen); err != nil {
		return fmt.Errorf("set DAESA_PAGES_LISTEN to a free address: %w", err)
	}
	return nil
}

// servers are what is served, and where.
func (a *App) servers() map[*web.Server]net.Listener {
	all := map[*web.Server]net.Listener{a.public: a.publicListener, a.private: a.privateListener}
	if a.pages != nil {
		all[a.pages] = a.pagesListener
	}
	return all
}

// stopPages lets the pages that are being written end.
func (a *App) stopPages() error {
	if a.pages == nil {
		return nil
	}
	return a.within("pages", a.cfg.jobsSoftStop(), a.pages.Shutdown)
}

// PagesURL is where people reach the pages; nothing without them.
func (a *App) PagesURL() string {
	if a.pagesListener == nil {
		return ""
	}
	return cmp.Or(strings.TrimSuffix(a.cfg.PagesURL, "/"), "http://"+a.pagesListener.Addr().String())
}

// tellOfAccounts says how to come in where nobody can yet.
func (a *App) tellOfAccounts(ctx context.Context) {
	if a.pages == nil {
		return
	}
	if there, err := a.features.people.Any(ctx); err == nil && !there {
		a.log.LogAttrs(ctx, slog.LevelWarn, "nobody can sign in to the pages yet: daesa user add NAME --roles operator,approver makes the first account")
	}
}

// sameOrigin refuses what a page of somebody else has a browser send in the name of who is signed in.
func sameOrigin(adapter *web.Adapter) func(http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { adapter.Fail(w, r, web.ErrOrigin) }))
	return protection.Handler
}

// newPages makes the pages, and the sessions of who is signed in to them.
func newPages(a *App, adapter *web.Adapter) (*pages.Pages, *people.Sessions, error) {
	proxies, err := a.cfg.proxies()
	if err != nil {
		return nil, nil, err
	}
	days := a.features.reconcile.Auditor.Over(a.reads)
	reporter, err := report.New(report.Config{DB: a.reads, Auditor: days, Now: a.cfg.Now})
	if err != nil {
		return nil, nil, err
	}
	outcomes := make([]string, 0, len(webhook.Outcomes()))
	for _, o := range webhook.Outcomes() {
		outcomes = append(outcomes, string(o))
	}
	sessions := people.NewSessions(a.features.people, strings.HasPrefix(a.cfg.PagesURL, "https://"), adapter.Fail)
	p, err := pages.New(pages.Config{
		DB: a.reads, Auditor: a.features.reconcile.Auditor, Days: days, Desk: a.features.desk, Reporter: reporter, Asker: a.features.reconcile.Sweeper,
		Replayer: replayer{a.features.webhook},
		Accounts: a.features.people, Sessions: sessions, Adapter: adapter, Trusted: proxies, Outcomes: outcomes, Now: a.cfg.Now,
	})
	return p, sessions, err
}

// replayer lets the pages take deliveries up again.
type replayer struct{ notices *webhook.Handler }

// Replay takes one up again.
func (r replayer) Replay(ctx context.Context, deliveryID int64, keep bool) (pages.Replayed, error) {
	done, err := r.notices.Replay(ctx, deliveryID, keep)
	return pages.Replayed{
		Was: string(done.Was), Outcome: string(done.Outcome), Reason: done.Reason, Word: done.Word, Recorded: done.Recorded,
		Detail: done.Detail, Changes: done.Changes, Kept: done.Applied,
	}, err
}
