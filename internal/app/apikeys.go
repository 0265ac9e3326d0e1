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
	everything := scopeNames(people.Scopes())
	return web.NewBearer(web.BearerConfig{Adapter: adapter, Recognize: func(ctx context.Context, token string) (web.Caller, error) {
		if name, found := set.Find(token); found {
			return web.Caller{Name: name, Scopes: everything}, nil
		}
		key, err := a.features.keys.Find(ctx, token)
		if errors.Is(err, people.ErrKey) {
			return web.Caller{}, web.ErrUnauthorized
		}
		return web.Caller{Name: key.Name, Scopes: scopeNames(key.Scopes)}, err
	}})
}

func scopeNames(scopes []people.Scope) []string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return names
}
