// Command constant is the service with one change: it answers every notice with the same word, once it was let in and
// read. The lab measures with it what the router alone can do.
package main

import (
	"io"
	"net/http"
	"os"

	"daesa/internal/app"
	"daesa/internal/web"
)

func main() { os.Exit(app.MainWith(os.Args[1:], os.Stdout, os.Stderr, change)) }

func change(cfg *app.Config) { cfg.Notices = constant }

// constant reads a notice and believes nothing, asks nobody and writes nothing down.
func constant(w http.ResponseWriter, r *http.Request) error {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]string{"outcome": "constant"})
}
