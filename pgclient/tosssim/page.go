package tosssim

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

//go:embed page
var pageFiles embed.FS

const (
	pagePath   = "/__sim/"
	pagePolicy = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

	// pagePayments is how many payments the page shows, newest first.
	pagePayments = 100
)

// errNotHere refuses whoever does not sit at this machine.
var errNotHere = errors.New("tosssim: the simulator is controlled from this machine only")

// guarded keeps the control of the simulator to this machine: whoever reaches it may move money. A page of somebody else
// that is open in a browser here is refused by its origin, and where it gave its own name our address, by that name.
func guarded(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeControl(w, http.StatusForbidden, map[string]string{"error": "tosssim: another site's page may not control the simulator"})
	}))
	return origin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.RemoteAddr) || !isLoopback(r.Host) {
			writeControl(w, http.StatusForbidden, map[string]string{"error": errNotHere.Error()})
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// isLoopback reports whether an address, with or without a port, is this machine's own.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// routePage is the page on which a person plays the gateway.
func (s *Sim) routePage(mux *http.ServeMux) {
	page := s.parsePage()
	mux.HandleFunc("GET /__sim/{$}", func(w http.ResponseWriter, r *http.Request) { s.writePage(w, r, page, nil) })
	mux.HandleFunc("GET /__sim/page/style.css", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, pageFiles, "page/style.css")
	})
	for path, act := range map[string]func(*http.Request) error{
		"cancel": s.pageCancel, "deliver": s.pageDeliver, "gateway": s.pageGateway, "notices": s.pageNotices, "normal": s.pageNormal,
	} {
		mux.HandleFunc("POST /__sim/page/"+path, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, requestBodyMax)
			if err := act(r); err != nil {
				s.writePage(w, r, page, err)
				return
			}
			http.Redirect(w, r, pagePath, http.StatusSeeOther)
		})
	}
}

func (s *Sim) parsePage() map[language.Tag]*template.Template {
	pages := map[language.Tag]*template.Template{}
	for _, tag := range pageLanguages() {
		functions := template.FuncMap{"t": func(text string) string { return pageText(tag, text) }}
		pages[tag] = template.Must(template.New("page.html").Funcs(functions).ParseFS(pageFiles, "page/page.html"))
	}
	return pages
}

// pageData is what the page shows.
type pageData struct {
	Language string
	Problem  string
	Payments []pagePayment
	More     int // payments that are not shown
	Totals   []pageTotal
	Gateway  gatewayMode
	Notices  noticeMode
	Modes    []gatewayMode
	Sendings []noticeMode
	Now      string
}

func (s *Sim) writePage(w http.ResponseWriter, r *http.Request, pages map[language.Tag]*template.Template, problem error) {
	tag := pageLanguage(r)
	data := s.pageData(tag)
	status := http.StatusOK
	if problem != nil {
		data.Problem = pageProblem(tag, problem)
		status = pageStatus(problem)
	}
	var whole bytes.Buffer
	if err := pages[tag].Execute(&whole, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.Copy(w, &whole) // A browser that has gone away is no failure of ours.
}

func pageStatus(err error) int {
	switch {
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrState):
		return http.StatusConflict
	}
	return http.StatusBadRequest
}

// pageCancel is a cancel in the dashboard: of an amount, or of all that is left.
func (s *Sim) pageCancel(r *http.Request) error {
	key, text := r.PostFormValue("paymentKey"), strings.TrimSpace(r.PostFormValue("amount"))
	reason := r.PostFormValue("reason")
	if reason == "" || len(reason) > 200 {
		return errPageReason
	}
	var amount int64
	if text != "" {
		var ok bool
		if amount, ok = minorUnits([]byte(strings.ReplaceAll(text, ",", "")), s.currencyOf(key)); !ok || amount <= 0 {
			return errPageAmount
		}
	}
	_, err := s.CancelInDashboard(key, amount, reason)
	return err
}

// currencyOf is the currency of a payment; nothing for one that is not known.
func (s *Sim) currencyOf(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.payments[key]; p != nil {
		return p.currency()
	}
	return ""
}

// pageDeliver sends the newest notice of a payment once more, whatever became of it so far.
func (s *Sim) pageDeliver(r *http.Request) error {
	key := r.PostFormValue("paymentKey")
	notices := s.Notices()
	slices.Reverse(notices)
	at := slices.IndexFunc(notices, func(n Notice) bool { return n.PaymentKey == key })
	if at < 0 {
		return fmt.Errorf("%w: no notice of %s", ErrNotFound, key)
	}
	_, err := s.Deliver(notices[at].ID)
	if errors.Is(err, errNoURL) {
		return err
	}
	return nil // How it was answered is shown with the payment.
}

func (s *Sim) pageGateway(r *http.Request) error {
	return s.setGateway(gatewayMode(r.PostFormValue("mode")))
}

func (s *Sim) pageNotices(r *http.Request) error {
	return s.setNotices(noticeMode(r.PostFormValue("mode")))
}

// pageNormal ends all that the page or a script began.
func (s *Sim) pageNormal(*http.Request) error {
	return errors.Join(s.setGateway(gatewayNormal), s.setNotices(noticesNormal))
}
