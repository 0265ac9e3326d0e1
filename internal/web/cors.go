package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// CORSConfig holds what [NewCORS] needs.
type CORSConfig struct {
	// Origins are the pages that may call, each exactly "scheme://host[:port]".
	Origins []string
	Adapter *Adapter
}

func (c CORSConfig) validate() error {
	if c.Adapter == nil {
		return fmt.Errorf("web: CORS needs an Adapter: it is how a foreign origin is refused")
	}
	for _, origin := range c.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			return fmt.Errorf("web: CORS origin %q must be exactly scheme://host[:port]", origin)
		}
	}
	return nil
}

// NewCORS returns a middleware that lets the pages of some origins POST JSON to a route, which must serve OPTIONS too.
//
// A browser request from any other origin is refused before the handler, not merely left without headers: the browser
// would hide our answer from the page but not undo what it says, and a page that paid would show a failure. A request
// without Origin comes from no browser, and one from our own host needs no permission; both pass.
func NewCORS(cfg CORSConfig) (func(http.Handler) http.Handler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header := w.Header()
			header.Add("Vary", "Origin")
			origin := r.Header.Get("Origin")
			listed := slices.Contains(cfg.Origins, origin)
			if origin != "" && !listed && !ownOrigin(r, origin) {
				cfg.Adapter.Fail(w, r, ErrOrigin)
				return
			}
			if listed {
				header.Set("Access-Control-Allow-Origin", origin)
				header.Set("Access-Control-Expose-Headers", "Location, Retry-After, X-Request-Id")
			}
			if r.Method == http.MethodOptions {
				preflight(w, listed)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}

func preflight(w http.ResponseWriter, listed bool) {
	header := w.Header()
	header.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	header.Set("Allow", "OPTIONS, POST")
	if listed {
		header.Set("Access-Control-Allow-Methods", "POST")
		header.Set("Access-Control-Allow-Headers", "Content-Type, Idempotency-Key")
		header.Set("Access-Control-Max-Age", "600")
	}
	w.WriteHeader(http.StatusNoContent)
}

// ownOrigin reports whether the page was served by the host that is now called.
func ownOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == r.Host
}
