package app

import (
	"context"
	"errors"
	"net/http"

	"daesa/internal/people"
	"daesa/internal/web"
)

// newBearer lets in by API keys: those of the settings, which need no database and are for everything, then those in the
// database.
func newBearer(a *App, adapter *web.Adapter) (func(scope string) func(http.Handler) http.Handler, error) {
	set, err := a.cfg.keys()
	if err != nil {
		return nil, err
	}
	return web.NewBearer(web.BearerConfig{Adapter: adapter, Recognize: func(ctx context.Context, token string) (web.Caller, error) {
		if name, found := set.Find(token); found {
			return web.Caller{Name: name, May: func(string) bool { return true }}, nil
		}
		key, err := a.features.keys.Find(ctx, token)
		if errors.Is(err, people.ErrKey) {
			return web.Caller{}, web.ErrUnauthorized
		}
		return web.Caller{Name: key.Name, May: key.For}, err
	}})
}
