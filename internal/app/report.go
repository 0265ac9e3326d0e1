package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/ledger"
	"daesa/reconcile"
	"daesa/reconcile/report"
)

// reportCommand writes what finance keeps. CSV unless told otherwise, also to a terminal: what a command writes must not
// depend on who looks.
type reportCommand struct {
	booksSettings

	Format string `enum:"csv,xlsx,json" default:"csv" help:"csv, xlsx or json; all from the same rows."`
	Lang   string `enum:"en,ko" default:"en" help:"Language of column names and words in csv and xlsx: en or ko."`
	Out    string `help:"File to write, whole or not at all; standard output without it."`

	Day          reportDayCommand   `cmd:"" help:"One business day: the statement, and every row behind every line."`
	Range        reportRangeCommand `cmd:"" help:"Business days from one to another, both with it, and their sums."`
	Order        reportOrderCommand `cmd:"" help:"Everything that happened to one order, in time order."`
	Applied      struct{}           `cmd:"" help:"Every cancel that both books have, of all time: what the cumulative statement only counts."`
	TrialBalance trialCommand       `cmd:"" name:"trial-balance" help:"Debits, credits and balance of every account at an instant."`
}

type reportDayCommand struct {
	Day string `arg:"" help:"Korean business day, 2006-01-02."`
}

type reportRangeCommand struct {
	From string `arg:"" help:"First business day, 2006-01-02."`
	To   string `arg:"" help:"Last business day, 2006-01-02."`
}

type reportOrderCommand struct {
	OrderID string `arg:"" name:"order-id" help:"Order id."`
}

type trialCommand struct {
	AsOf    time.Time `name:"as-of" help:"What had occurred by then (RFC 3339); known-at without it."`
	KnownAt time.Time `name:"known-at" help:"What had been recorded by then (RFC 3339); now without it."`
}

// make makes the report that the command line names, and hands it to write.
func (c reportCommand) make(ctx context.Context, command string, r *report.Reporter, write func(report.Report) error) error {
	switch command {
	case "report day <day>":
		day, err := ledger.ParseDay(c.Day.Day)
		if err != nil {
			return err
		}
		return r.Day(ctx, day, write)
	case "report range <from> <to>":
		from, err := ledger.ParseDay(c.Range.From)
		if err != nil {
			return err
		}
		to, err := ledger.ParseDay(c.Range.To)
		if err != nil {
			return err
		}
		return r.Range(ctx, from, to, write)
	case "report order <order-id>":
		return r.Order(ctx, c.Order.OrderID, write)
	case "report applied":
		return r.Applied(ctx, write)
	case "report trial-balance":
		return r.TrialBalance(ctx, c.TrialBalance.AsOf, c.TrialBalance.KnownAt, write)
	}
	return fmt.Errorf("no such report: %s", command)
}

// run writes one report. It only reads the database. What it says of the books is in the report: the exit code
// says that it was written, that nobody knows the order (1), or that it could not be written (2).
func (c reportCommand) run(ctx context.Context, command, databaseURL string, log *slog.Logger, stdout io.Writer) (int, error) {
	cfg := Config{DatabaseURL: databaseURL, Log: log}
	c.apply(&cfg)
	ourOrders, err := cfg.ourOrders()
	if err != nil {
		return ExitIncomplete, err
	}
	if c.Out == "" && c.Format == string(report.XLSX) && isTerminal(stdout) {
		return ExitIncomplete, errors.New("a workbook is not for a terminal: name a file with -out, or redirect")
	}
	err = withPool(ctx, databaseURL, func(db *pgxpool.Pool) error {
		if err := requireMigrated(ctx, db); err != nil {
			return err
		}
		settings := reconcile.Config{
			DB: db, Metrics: reconcile.NewMetrics(prometheus.NewRegistry()), Now: time.Now,
			OurOrders: ourOrders, OpeningAt: cfg.OpeningAt, ListLag: cfg.ListLag,
		}
		auditor, err := reconcile.NewAuditor(settings)
		if err != nil {
			return err
		}
		if command == "report day <day>" || command == "report range <from> <to>" || command == "report applied" {
			if err := warnOfOtherSettings(ctx, settings, log); err != nil {
				return err
			}
		}
		reporter, err := report.New(report.Config{DB: db, Auditor: auditor, Now: time.Now})
		if err != nil {
			return err
		}
		return c.make(ctx, command, reporter, func(r report.Report) error { return c.write(r, stdout) })
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return ExitBreaks, err
	case err != nil:
		return ExitIncomplete, err
	}
	return ExitOK, nil
}

// write writes the report to where it belongs. A file appears whole or not at all: it is written beside its place and
// moved there last.
func (c reportCommand) write(r report.Report, stdout io.Writer) error {
	format, language := report.Format(c.Format), report.Language(c.Lang)
	if c.Out == "" {
		return r.Write(stdout, format, language)
	}
	file, err := os.CreateTemp(filepath.Dir(c.Out), ".daesa-report-*")
	if err != nil {
		return fmt.Errorf("make the report's file: %w", err)
	}
	err = r.Write(file, format, language)
	if closeErr := errors.Join(file.Sync(), file.Close()); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), c.Out)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", c.Out, err), os.Remove(file.Name()))
	}
	return nil
}

// isTerminal reports whether a person reads what is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
