package pages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"daesa/internal/web"
)

const styleFile = "static/style.css"

// stylePath is the address of the style sheet; it changes with what is in it, so that browsers may keep it.
func stylePath() string {
	text, err := files.ReadFile(styleFile)
	if err != nil {
		panic(err) // the file is part of the program
	}
	sum := sha256.Sum256(text)
	return "/static/style." + hex.EncodeToString(sum[:6]) + ".css"
}

// Static serves GET /static/{file}.
func (p *Pages) Static(w http.ResponseWriter, r *http.Request) error {
	if !strings.HasPrefix(chi.URLParam(r, "file"), "style.") {
		return web.ErrNoRoute
	}
	text, err := files.ReadFile(styleFile)
	if err != nil {
		return err
	}
	if r.URL.Path == stylePath() {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	return nil
}
