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

// Keys are keys that are known beforehand.
type Keys []Key

// Find is the name of the key that a token is. It compares with every key and with hashes only, so that the time it takes
// tells nothing about a secret.
func (k Keys) Find(token string) (name string, found bool) {
	hash := sha256.Sum256([]byte(token))
	for _, key := range k {
		if subtle.ConstantTimeCompare(hash[:], key.hash[:]) == 1 {
			name, found = key.name, true
		}
	}
	return name, found
}

// Caller is who came with a token, and for what that one is.
type Caller struct {
	Name string // for logs and trails
	May  func(scope string) bool
}

// BearerConfig holds what [NewBearer] needs.
type BearerConfig struct {
	// Recognize says whose a token is. ErrUnauthorized: nobody's.
	Recognize func(ctx context.Context, token string) (Caller, error)
	Adapter   *Adapter
}

type actorKey struct{}

// NewBearer returns what makes middlewares, each of which lets a request pass only with a bearer token that is for its
// scope. The handler finds the caller's name with [Actor].
func NewBearer(cfg BearerConfig) (func(scope string) func(http.Handler) http.Handler, error) {
	if cfg.Adapter == nil || cfg.Recognize == nil {
		return nil, errors.New("web: Bearer needs Recognize, and an Adapter: it is how a request without a key is refused")
	}
	return func(scope string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				caller, err := cfg.identify(r)
				switch {
				case errors.Is(err, ErrUnauthorized):
					w.Header().Set("WWW-Authenticate", `Bearer realm="daesa"`)
					cfg.Adapter.Fail(w, r, err)
				case err != nil:
					cfg.Adapter.Fail(w, r, err)
				case !caller.May(scope):
					w.Header().Set("WWW-Authenticate", `Bearer realm="daesa", error="insufficient_scope", scope="`+scope+`"`)
					cfg.Adapter.Fail(w, r, WithDetail(ErrScope, "this needs the scope "+scope))
				default:
					next.ServeHTTP(w, r.WithContext(WithActor(r.Context(), caller.Name)))
				}
			})
		}
	}, nil
}

func (c BearerConfig) identify(r *http.Request) (Caller, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || !strings.EqualFold(scheme, "Bearer") {
		return Caller{}, ErrUnauthorized
	}
	return c.Recognize(r.Context(), token)
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
