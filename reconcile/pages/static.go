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

// asset is a file that the pages refer to, and its address, which changes with what is in it, so that browsers may keep it.
type asset struct {
	text []byte
	kind string
	path string
}

// The files that pages refer to, and what they are.
const (
	styleFile = "style.css"
	iconFile  = "icon.svg"
	styleKind = "text/css; charset=utf-8"
	iconKind  = "image/svg+xml"
)

func readAsset(file, kind string) (asset, error) {
	text, err := files.ReadFile("static/" + file)
	if err != nil {
		return asset{}, fmt.Errorf("read %s: %w", file, err)
	}
	sum := sha256.Sum256(text)
	name, extension, _ := strings.Cut(file, ".")
	return asset{text: text, kind: kind, path: "/static/" + name + "." + hex.EncodeToString(sum[:6]) + "." + extension}, nil
}

// Static serves GET /static/{file}. A file by an address that it had is served as it is now: a page that somebody still has
// open may ask for it.
func (p *Pages) Static(w http.ResponseWriter, r *http.Request) error {
	name, _, _ := strings.Cut(chi.URLParam(r, "file"), ".")
	for _, file := range []asset{p.style, p.icon} {
		if !strings.HasPrefix(file.path, "/static/"+name+".") {
			continue
		}
		if r.URL.Path == file.path {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		w.Header().Set("Content-Type", file.kind)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.text))
		return nil
	}
	return web.ErrNoRoute
}
