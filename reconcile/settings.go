package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// settings decide whose money a row of the list is, what of it lies before our books, and how late it may appear. The
// service keeps in the database those it goes by, so that no command beside it goes by others.
type settings struct {
	OrderPattern string        `db:"order_pattern"` // "" = every order is ours
	OpeningAt    *time.Time    `db:"opening_at"`    // nil = nothing lies before our books
	ListLag      time.Duration `db:"list_lag"`
}

// settings are those of this process, as the database would give them back.
func (c Config) settings() settings {
	s := settings{ListLag: c.withDefaults().ListLag.Truncate(time.Microsecond)}
	if c.OurOrders != nil {
		s.OrderPattern = c.OurOrders.String()
	}
	if !c.OpeningAt.IsZero() {
		opening := c.OpeningAt.UTC().Truncate(time.Microsecond)
		s.OpeningAt = &opening
	}
	return s
}

// opening is the opening for people.
func (s settings) opening() string {
	if s.OpeningAt == nil {
		return "none"
	}
	return s.OpeningAt.In(ledger.Seoul()).Format(time.RFC3339Nano)
}

// pattern is the pattern for people.
func (s settings) pattern() string {
	if s.OrderPattern == "" {
		return "none"
	}
	return fmt.Sprintf("%q", s.OrderPattern)
}

// differ says what of theirs is otherwise here, and which variables to set; empty where nothing is.
func (s settings) differ(theirs settings) (difference string, variables []string) {
	var parts []string
	for _, one := range []struct{ what, variable, theirs, here string }{
		{"order pattern", "DAESA_ORDER_PATTERN", theirs.pattern(), s.pattern()},
		{"opening", "DAESA_OPENING_AT", theirs.opening(), s.opening()},
		{"list lag", "DAESA_LIST_LAG", theirs.ListLag.String(), s.ListLag.String()},
	} {
		if one.theirs != one.here {
			parts = append(parts, fmt.Sprintf("the %s is %s there and %s here", one.what, one.theirs, one.here))
			variables = append(variables, one.variable)
		}
	}
	return strings.Join(parts, ", "), variables
}

// keptSettings reads those that the service goes by; nil where no service of this version has started.
func keptSettings(ctx context.Context, db ledger.Querier) (*settings, error) {
	rows, err := db.Query(ctx, `SELECT order_pattern, opening_at, list_lag FROM books_settings`)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the service: %w", err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[settings])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // nobody has kept any yet
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings of the service: %w", err)
	}
	return &s, nil
}

// KeepSettings keeps the settings of this instance as those of the service, where every command reads them. The instance
// that started last decides, and then the one that reads the list: it is its settings that the rows are written by. That
// an instance had others is logged.
func (r *Reconciler) KeepSettings(ctx context.Context) error { return r.Mirror.cfg.keepSettings(ctx) }

func (c Config) keepSettings(ctx context.Context) error {
	kept, err := keptSettings(ctx, c.DB)
	if err != nil {
		return err
	}
	here := c.settings()
	difference := ""
	if kept != nil {
		if difference, _ = here.differ(*kept); difference == "" {
			return nil
		}
	}
	_, err = c.DB.Exec(ctx, `
		INSERT INTO books_settings AS s (order_pattern, opening_at, list_lag, set_at)
		VALUES (@pattern, @opening, @lag, @now)
		ON CONFLICT (only_row) DO UPDATE
		SET order_pattern = excluded.order_pattern, opening_at = excluded.opening_at, list_lag = excluded.list_lag, set_at = excluded.set_at`,
		pgx.StrictNamedArgs{"pattern": here.OrderPattern, "opening": here.OpeningAt, "lag": here.ListLag, "now": c.now()})
	if err != nil {
		return fmt.Errorf("keep the settings of the service: %w", err)
	}
	if difference != "" {
		c.Log.WarnContext(ctx, "the settings of the books have changed: rows of the list that were read before stay as they were judged until daesa reconcile --again reads them",
			slog.String("before", difference))
	}
	return nil
}

// OtherSettings says how the settings of cfg differ from those of the service; it is empty where they agree, or no service
// of this version has started. It is for commands that only look. Of the configuration it needs DB.
func OtherSettings(ctx context.Context, cfg Config) (difference string, err error) {
	kept, err := keptSettings(ctx, cfg.DB)
	if err != nil || kept == nil {
		return "", err
	}
	difference, _ = cfg.settings().differ(*kept)
	return difference, nil
}

// errUnserved refuses a command by whose settings nobody can say whether they are right.
var errUnserved = errors.New("no service of this version has started on these books, so that nobody can say by which settings: " +
	"start daesa serve first")

// RequireSettings refuses a command that was told other settings than the service goes by, and says which. Where no
// service of this version has started, it refuses every command but one that opens the books: before anything was audited
// there is no service that could go by others.
func RequireSettings(ctx context.Context, db ledger.Querier, cfg Config, opens bool) error {
	kept, err := keptSettings(ctx, db)
	if err != nil {
		return err
	}
	if kept != nil {
		if difference, variables := cfg.settings().differ(*kept); difference != "" {
			return fmt.Errorf("this command was told other settings than the service has, %s; set %s to what the service has",
				difference, strings.Join(variables, " and "))
		}
		return nil
	}
	if !opens {
		return errUnserved
	}
	rows, err := db.Query(ctx, `SELECT EXISTS (SELECT 1 FROM audit_runs)`)
	if err != nil {
		return fmt.Errorf("look whether these books were audited: %w", err)
	}
	audited, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	switch {
	case err != nil:
		return fmt.Errorf("look whether these books were audited: %w", err)
	case audited:
		return errUnserved
	}
	return nil
}
