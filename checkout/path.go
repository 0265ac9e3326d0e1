package checkout

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"daesa/internal/web"
)

// idMax is above the length of every id that a path can name.
const idMax = 255

// pathID reads an id out of the request's path. What the database cannot hold as a text is refused before it is asked.
func pathID(r *http.Request, name string) (string, error) {
	id, err := web.PathText(r, name)
	if err != nil {
		return "", invalid(name + " is not escaped as a path is")
	}
	if utf8.RuneCountInString(id) > idMax || !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		return "", invalid(name + " has no valid form")
	}
	return id, nil
}
