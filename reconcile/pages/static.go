package pages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"daesa/internal/web"
)

const styleFile = "static/style.css"

// style is the style sheet, and its address, which changes with what is in it, so that browsers may keep it.
type style struct {
	text []byte
	path string
}

func readStyle() (style, error) {
	text, err := files.ReadFile(styleFile)
	if err != nil {
		return style{}, fmt.Errorf("read the style sheet: %w", err)
	}
	sum := sha256.Sum256(text)
	return style{text: text, path: "/static/style." + hex.EncodeToString(sum[:6]) + ".css"}, nil
}

// Static serves GET /static/{file}.
func (p *Pages) Static(w http.ResponseWriter, r *http.Request) error {
	if !strings.HasPrefix(chi.URLParam(r, "file"), "style.") {
		return web.ErrNoRoute
	}
	if r.URL.Path == p.style.path {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.style.text))
	return nil
}
