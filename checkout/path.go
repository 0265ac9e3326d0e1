package checkout

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
)

// idMax is above the length of every id that a path can name.
const idMax = 255

// pathID reads an id out of the request's path. The router hands it over as the caller escaped it whenever there was
// more than one way to do so. What the database cannot hold as a text is refused before it is asked.
func pathID(r *http.Request, name string) (string, error) {
	id := chi.URLParam(r, name)
	if r.URL.RawPath != "" {
		unescaped, err := url.PathUnescape(id)
		if err != nil {
			return "", invalid(name + " is not escaped as a path is")
		}
		id = unescaped
	}
	if utf8.RuneCountInString(id) > idMax || !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		return "", invalid(name + " has no valid form")
	}
	return id, nil
}
