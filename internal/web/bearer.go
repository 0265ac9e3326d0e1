package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Key is an API key: its name, for logs and audit, and a hash of its secret.
type Key struct {
	name string
	hash [sha256.Size]byte
}

// secretMin is the length below which a secret can be guessed.
const secretMin = 16

// NewKey returns the key of a secret, which it does not keep.
func NewKey(name, secret string) (Key, error) {
	if name == "" {
		return Key{}, errors.New("web: an API key needs a name: it is what the audit log shows")
	}
	if len(secret) < secretMin {
		return Key{}, fmt.Errorf("web: the secret of API key %q must have at least %d characters", name, secretMin)
	}
	return Key{name: name, hash: sha256.Sum256([]byte(secret))}, nil
}

// BearerConfig holds what [NewBearer] needs.
type BearerConfig struct {
	// Keys may be empty: then nobody gets in.
	Keys    []Key
	Adapter *Adapter
}

type actorKey struct{}

// NewBearer returns a middleware that lets a request pass only with one of the keys as its bearer token. The handler
// finds the key's name with [Actor].
func NewBearer(cfg BearerConfig) (func(http.Handler) http.Handler, error) {
	if cfg.Adapter == nil {
		return nil, errors.New("web: Bearer needs an Adapter: it is how a request without a key is refused")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, ok := identify(cfg.Keys, r.Header.Get("Authorization"))
			if !ok {
				w.Header().Set("WWW-Authenticate", `Bearer realm="daesa"`)
				cfg.Adapter.Fail(w, r, ErrUnauthorized)
				return
			}
			next.ServeHTTP(w, r.WithContext(WithActor(r.Context(), name)))
		})
	}, nil
}

// identify compares with every key and with hashes only, so that the time it takes tells nothing about a secret.
func identify(keys []Key, authorization string) (string, bool) {
	scheme, token, _ := strings.Cut(authorization, " ")
	hash := sha256.Sum256([]byte(token))
	name, found := "", false
	for _, key := range keys {
		if subtle.ConstantTimeCompare(hash[:], key.hash[:]) == 1 {
			name, found = key.name, true
		}
	}
	return name, found && strings.EqualFold(scheme, "Bearer")
}

// WithActor notes in whose name the rest of the request is done.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor is the name of the key that the request was made with, or nothing if it needed none.
func Actor(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}
