package pages

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/text/language"

	"daesa/internal/people"
	"daesa/internal/web"
	"daesa/reconcile"
	"daesa/reconcile/desk"
	"daesa/reconcile/report"
)

// Policy is the content security policy of the pages.
const Policy = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Config is what the pages need.
type Config struct {
	DB       *pgxpool.Pool // of look-ups
	Auditor  *reconcile.Auditor
	Days     *reconcile.Auditor // look-ups of days
	Desk     *desk.Desk
	Reporter *report.Reporter
	Asker    Asker
	Replayer Replayer
	Accounts *people.Accounts
	Sessions *people.Sessions
	Adapter  *web.Adapter
	Trusted  []netip.Prefix // proxies whose word about an address is taken
	Outcomes []string       // that a delivery can have
	Now      func() time.Time
}

func (c Config) validate() error {
	switch {
	case c.DB == nil, c.Auditor == nil, c.Days == nil, c.Desk == nil, c.Reporter == nil, c.Asker == nil, c.Replayer == nil:
		return errors.New("pages: DB, Auditor, Days, Desk, Reporter, Asker and Replayer are required")
	case c.Accounts == nil, c.Sessions == nil, c.Adapter == nil:
		return errors.New("pages: Accounts, Sessions and Adapter are required")
	case len(c.Outcomes) == 0, c.Now == nil:
		return errors.New("pages: Outcomes and Now are required")
	}
	return nil
}

// Pages serves the pages.
type Pages struct {
	cfg       Config
	templates map[report.Language]map[string]*template.Template
	style     asset
	icon      asset
	languages language.Matcher // English, then Korean
	sending   chan struct{}    // a place for each file that is being made
}

// New makes the Pages.
func New(cfg Config) (*Pages, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	templates, err := parseTemplates()
	if err != nil {
		return nil, err
	}
	style, err := readAsset(styleFile, styleKind)
	if err != nil {
		return nil, err
	}
	icon, err := readAsset(iconFile, iconKind)
	if err != nil {
		return nil, err
	}
	return &Pages{
		cfg: cfg, templates: templates, style: style, icon: icon, languages: language.NewMatcher([]language.Tag{language.English, language.Korean}),
		sending: make(chan struct{}, sendingAtOnce),
	}, nil
}

// Around goes around everything on the listener of the pages: whatever fails there, wherever, is told on a page.
func (p *Pages) Around(next http.Handler) http.Handler {
	told := web.AnswerWith(p.problem)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, &visitor{})))
	})
}

// Handler is a page, or what a form on one does, for somebody.
type Handler func(w http.ResponseWriter, r *http.Request, who people.Account) error

// Errors of coming in.
var (
	// ErrNotAllowed means that none of the roles of who is signed in allows it.
	ErrNotAllowed = errors.New("your roles do not allow this")
	// ErrSending means that as many files are being made as may be.
	ErrSending = errors.New("other files are being made")
	// ErrForm reports a form that does not have what its page sends.
	ErrForm = errors.New("the form is not the one that the page has")
)

// Signed lets through who is signed in, and sends everybody else to sign in.
func (p *Pages) Signed(h Handler) http.HandlerFunc {
	return p.cfg.Adapter.Handle(func(w http.ResponseWriter, r *http.Request) error {
		who, err := p.cfg.Sessions.Who(r.Context())
		if errors.Is(err, people.ErrNoAccount) {
			goTo(w, r, signInFor(r))
			return nil
		}
		if err != nil {
			return err
		}
		if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
			v.who = &who
		}
		return h(w, r, who)
	})
}

// May lets through whom a role allows it. Who has been given a password changes it first.
func (p *Pages) May(permission people.Permission, h Handler) http.HandlerFunc {
	return p.Signed(func(w http.ResponseWriter, r *http.Request, who people.Account) error {
		switch {
		case who.MustChange:
			goTo(w, r, "/password")
			return nil
		case !who.May(permission):
			return ErrNotAllowed
		}
		return h(w, r, who)
	})
}

type visitorKey struct{}

// visitor is who a request turns out to be made by, also for whoever tells that it failed.
type visitor struct{ who *people.Account }

// whoOf is who the request is made by, as far as that is known.
func whoOf(ctx context.Context) *people.Account {
	if v, ok := ctx.Value(visitorKey{}).(*visitor); ok {
		return v.who
	}
	return nil
}

// source is where a request comes from, for the trail.
func (p *Pages) source(r *http.Request) string { return web.ClientIP(r, p.cfg.Trusted).String() }

// goTo sends a browser to another page of ours, after a form or in place of a page.
func goTo(w http.ResponseWriter, r *http.Request, path string) {
	http.Redirect(w, r, local(path), http.StatusSeeOther) //nolint:gosec // local
}
