package admission

import (
	"context"
	"errors"

	"daesa/internal/postgres"
)

// Fallback is why an instance counted alone.
type Fallback string

const (
	// FallbackSlow is a database that did not answer in time.
	FallbackSlow Fallback = "slow"
	// FallbackBusy is a pool without a free connection.
	FallbackBusy Fallback = "busy"
	// FallbackFailed is a database that cannot be reached, or that refuses the statement.
	FallbackFailed Fallback = "failed"
	// FallbackResting is a database that is not asked for a moment, because it has not answered before.
	FallbackResting Fallback = "resting"
)

// Fallbacks lists every reason.
func Fallbacks() []Fallback {
	return []Fallback{FallbackSlow, FallbackBusy, FallbackFailed, FallbackResting}
}

// fallbackOf says why the database did not answer.
func fallbackOf(err error) Fallback {
	switch {
	case errors.Is(err, errBusy):
		return FallbackBusy
	case errors.Is(err, context.DeadlineExceeded) || postgres.IsLate(err):
		return FallbackSlow
	default:
		return FallbackFailed
	}
}
