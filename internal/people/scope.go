package people

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Scope is what an API key may be used for: the merchant's servers come in for one thing each, and a key that is lost
// should open no more than that.
type Scope string

// The scopes.
const (
	ScopeMoney Scope = "money" // make orders, cancel payments, spend credits, have an event sent again
	ScopeRead  Scope = "read"  // look-ups of everything; they change nothing
	ScopeBooks Scope = "books" // judge: work on mismatches and incidents, sign days
)

// Scopes lists every scope.
func Scopes() []Scope { return []Scope{ScopeMoney, ScopeRead, ScopeBooks} }

// ErrScope reports a scope that there is not, or none at all.
var ErrScope = errors.New("scopes are money, read and books, at least one")

// ParseScopes reads scopes as they are written: money,read. The order and the repetition of what is written is lost.
func ParseScopes(text string) ([]Scope, error) {
	var scopes []Scope
	for word := range strings.SplitSeq(text, ",") {
		scope := Scope(strings.TrimSpace(word))
		if !slices.Contains(Scopes(), scope) {
			return nil, fmt.Errorf("%.40q: %w", word, ErrScope)
		}
		scopes = append(scopes, scope)
	}
	slices.SortFunc(scopes, func(a, b Scope) int { return slices.Index(Scopes(), a) - slices.Index(Scopes(), b) })
	return slices.Compact(scopes), nil
}

// FormatScopes writes scopes as [ParseScopes] reads them.
func FormatScopes(scopes []Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ",")
}
