package people

import "errors"

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
func ParseScopes(text string) ([]Scope, error) { return parseWords(text, Scopes(), ErrScope) }

// FormatScopes writes scopes as [ParseScopes] reads them.
func FormatScopes(scopes []Scope) string { return formatWords(scopes) }
