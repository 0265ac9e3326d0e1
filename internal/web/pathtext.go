package web

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
)

// PathText reads a text out of the request's path. The router hands it over as the caller escaped it whenever there was more
// than one way to do so, and as it is meant otherwise: unescaped once more, it would be another text. The error says that it
// is not escaped as a path is.
func PathText(r *http.Request, name string) (string, error) {
	text := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return text, nil
	}
	return url.PathUnescape(text)
}
