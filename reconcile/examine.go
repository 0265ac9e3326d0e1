package reconcile

import (
	"context"
	"errors"
	"fmt"
)

// Examine compares both books as an audit does and writes nothing: no run is kept, no mismatch opened or resolved. It is
// for a person at a terminal, whose settings need not be the service's. Of the configuration it needs DB and Now; order
// pattern, opening and lag mean what they mean to the service.
func Examine(ctx context.Context, cfg Config, scope Scope) (Statement, error) {
	cfg = cfg.withDefaults()
	switch {
	case cfg.DB == nil:
		return Statement{}, errors.New("reconcile: DB is required")
	case cfg.Now == nil:
		return Statement{}, errors.New("reconcile: Now is required")
	}
	a := Auditor{cfg: cfg}
	began := cfg.now()
	s, err := a.compare(ctx, scope, began, nil)
	if err != nil {
		return Statement{}, fmt.Errorf("examine %s %s: %w", scope.Name, scope.Day, err)
	}
	s.Scope, s.Day, s.StartedAt = scope.Name, scope.Day, began
	return s, nil
}
