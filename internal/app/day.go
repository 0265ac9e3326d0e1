package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/ledger"
	"daesa/reconcile"
)

// dayCommand looks at business days, closes and signs them. Closing and signing are refused where the service was told other
// settings of the books.
type dayCommand struct {
	booksSettings

	JSON bool `help:"Print as JSON."`

	List struct {
		From string `help:"First day, 2006-01-02; without it five weeks back."`
		To   string `help:"Last day; without it the last that has ended."`
	} `cmd:"" help:"The days with verdict, figures and signature. Exits 1 when one breaks or is no longer what was signed, 2 when one is not closed."`
	Show struct {
		Day string `arg:"" help:"Korean business day, 2006-01-02."`
	} `cmd:"" help:"The day's newest statement, with what changed since the one before, and its signatures."`
	Close struct {
		Day string `arg:"" help:"Korean business day, 2006-01-02."`
	} `cmd:"" help:"Close the day now, once more if need be, and print its statement."`
	Sign struct {
		Day    string `arg:"" help:"Korean business day, 2006-01-02."`
		Digest string `help:"Of the statement that you saw; without it the newest one's."`
		Note   string `help:"What you want to say with it."`
	} `cmd:"" help:"Sign the closed day in the name of the user who runs this command."`
}

// run does what the words after day say. The exit code is that of daesa audit.
func (c *dayCommand) run(ctx context.Context, command, databaseURL string, log *slog.Logger, stdout io.Writer) (int, error) {
	cfg := Config{DatabaseURL: databaseURL, Log: log}
	c.apply(&cfg)
	ourOrders, err := cfg.ourOrders()
	if err != nil {
		return ExitIncomplete, err
	}
	code := ExitIncomplete
	err = withPool(ctx, databaseURL, func(db *pgxpool.Pool) error {
		if err := requireMigrated(ctx, db); err != nil {
			return err
		}
		settings := reconcile.Config{
			DB: db, Metrics: reconcile.NewMetrics(prometheus.NewRegistry()), Now: time.Now, OurOrders: ourOrders,
			OpeningAt: cfg.OpeningAt, ListLag: cfg.ListLag,
		}
		auditor, err := reconcile.NewAuditor(settings)
		if err != nil {
			return err
		}
		if command == "day close <day>" || command == "day sign <day>" {
			if err := reconcile.RequireSettings(ctx, db, settings, false); err != nil {
				return err
			}
		}
		code, err = c.do(ctx, command, auditor, stdout)
		return err
	})
	switch {
	case errors.Is(err, reconcile.ErrDayNotClosed), errors.Is(err, reconcile.ErrDayDiffers), errors.Is(err, reconcile.ErrNotAcknowledged):
		return ExitBreaks, err
	case err != nil:
		return ExitIncomplete, err
	}
	return code, nil
}

// warnOfOtherSettings tells a person at a terminal that what follows is not what the service says.
func warnOfOtherSettings(ctx context.Context, settings reconcile.Config, log *slog.Logger) error {
	difference, err := reconcile.OtherSettings(ctx, settings)
	if err != nil {
		return err
	}
	if difference != "" {
		log.WarnContext(ctx, "this command was told other settings than the service has: the service may say something else of these books",
			slog.String("difference", difference))
	}
	return nil
}

func (c *dayCommand) do(ctx context.Context, command string, auditor *reconcile.Auditor, stdout io.Writer) (int, error) {
	switch verb, _, _ := strings.Cut(strings.TrimPrefix(command, "day "), " "); verb {
	case "show":
		return c.show(ctx, auditor, stdout)
	case "close":
		return c.closeNow(ctx, auditor, stdout)
	case "sign":
		return c.sign(ctx, auditor, stdout)
	}
	return c.list(ctx, auditor, stdout)
}

func (c *dayCommand) list(ctx context.Context, auditor *reconcile.Auditor, stdout io.Writer) (int, error) {
	to := reconcile.LastEnded(time.Now())
	from := ledger.DayOf(to.Start().AddDate(0, 0, -34))
	for _, end := range []struct {
		text string
		day  *ledger.Day
	}{{c.List.From, &from}, {c.List.To, &to}} {
		if end.text == "" {
			continue
		}
		day, err := ledger.ParseDay(end.text)
		if err != nil {
			return ExitIncomplete, err
		}
		*end.day = day
	}
	days, err := auditor.Days(ctx, from, to)
	if err != nil {
		return ExitIncomplete, err
	}
	code := ExitOK
	for _, d := range days {
		code = worse(code, exitOfDay(d.Verdict, d.Signed))
	}
	if c.JSON {
		return code, printJSON(stdout, days)
	}
	if err := writeDays(stdout, days); err != nil {
		return ExitIncomplete, err
	}
	if len(days) == reconcile.DaysMax && days[len(days)-1].Day > from {
		fmt.Fprintf(stdout, "%d days are listed at a time: name an earlier -to for those before %s\n", reconcile.DaysMax, days[len(days)-1].Day)
	}
	return code, nil
}

// exitOfDay is the exit code of a day: one that is no longer what was signed is a break.
func exitOfDay(v reconcile.Verdict, signed reconcile.Signed) int {
	if signed == reconcile.SignedChanged {
		return ExitBreaks
	}
	return exitOf(v)
}

// worse takes a break before what could not be seen, and that before nothing.
func worse(a, b int) int {
	if a == ExitBreaks || b == ExitBreaks {
		return ExitBreaks
	}
	return max(a, b)
}

// writeDays writes one line per day and currency.
func writeDays(stdout io.Writer, days []reconcile.DaySummary) error {
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DAY\tVERDICT\tCURRENCY\tCANCELED AT GATEWAY\tCANCELED HERE\tPENDING\tUNEXPLAINED\tBREAKS\tSIGNED")
	for _, d := range days {
		verdict := string(d.Verdict)
		if verdict == "" {
			verdict = "not closed"
		}
		sums := d.Sums
		if len(sums) == 0 {
			sums = []reconcile.Sum{{}}
		}
		for _, s := range sums {
			figure := func(f reconcile.Figure) string {
				return fmt.Sprintf("%d, %s", f.Count, ledger.Money{Minor: f.Amount, Currency: s.Currency}.Decimal())
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", d.Day, verdict, s.Currency, figure(s.Gateway), figure(s.Canceled),
				figure(s.Pending), figure(s.Unexplained), d.Breaks, signedText(d.Signed, d.Signature))
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the days: %w", err)
	}
	return nil
}

func signedText(how reconcile.Signed, s *reconcile.Signature) string {
	if s == nil {
		return string(how)
	}
	text := fmt.Sprintf("%s, %s", s.SignedBy, s.SignedAt.In(ledger.Seoul()).Format(time.DateTime))
	if how == reconcile.SignedChanged {
		text += ", CHANGED SINCE"
	}
	return text
}

func (c *dayCommand) show(ctx context.Context, auditor *reconcile.Auditor, stdout io.Writer) (int, error) {
	day, err := ledger.ParseDay(c.Show.Day)
	if err != nil {
		return ExitIncomplete, err
	}
	d, err := auditor.Day(ctx, day)
	if err != nil {
		return ExitIncomplete, err
	}
	code := exitOfDay(d.Statement.Verdict, d.Signed)
	if c.JSON {
		return code, printJSON(stdout, d)
	}
	if err := d.Statement.WriteText(stdout); err != nil {
		return ExitIncomplete, err
	}
	for _, s := range d.Signatures {
		fmt.Fprintf(stdout, "\nsigned by %s at %s KST: digest %s", s.SignedBy, s.SignedAt.In(ledger.Seoul()).Format(time.DateTime), s.Digest)
		if s.JournalHead != nil {
			fmt.Fprintf(stdout, ", journal head %s", *s.JournalHead)
		}
		fmt.Fprintf(stdout, "\n  %s", sealedText(s))
		if s.Note != "" {
			fmt.Fprintf(stdout, "\n  %q", s.Note)
		}
		fmt.Fprintln(stdout)
	}
	if d.Signed == reconcile.SignedChanged {
		fmt.Fprintln(stdout, "\nThe day no longer says what was signed.")
	}
	return code, nil
}

func (c *dayCommand) closeNow(ctx context.Context, auditor *reconcile.Auditor, stdout io.Writer) (int, error) {
	day, err := ledger.ParseDay(c.Close.Day)
	if err != nil {
		return ExitIncomplete, err
	}
	if last := reconcile.LastEnded(time.Now()); day > last {
		return ExitIncomplete, fmt.Errorf("%s is not over, and what is said of it now would be kept for ever: the last day that is over is %s", day, last)
	}
	s, err := auditor.Close(ctx, day)
	if err != nil {
		return ExitIncomplete, err
	}
	if c.JSON {
		return exitOf(s.Verdict), printJSON(stdout, s)
	}
	return exitOf(s.Verdict), s.WriteText(stdout)
}

func (c *dayCommand) sign(ctx context.Context, auditor *reconcile.Auditor, stdout io.Writer) (int, error) {
	day, err := ledger.ParseDay(c.Sign.Day)
	if err != nil {
		return ExitIncomplete, err
	}
	by, err := operator()
	if err != nil {
		return ExitIncomplete, err
	}
	s, err := auditor.Sign(ctx, reconcile.Signing{Day: day, By: by, Digest: c.Sign.Digest, Note: c.Sign.Note})
	if err != nil {
		return ExitIncomplete, err
	}
	if c.JSON {
		return ExitOK, printJSON(stdout, s)
	}
	again := ""
	if s.Again {
		again = "already "
	}
	_, err = fmt.Fprintf(stdout, "%s %ssigned by %s: digest %s\n%s\n", s.Day, again, s.SignedBy, s.Digest, sealedText(s))
	return ExitOK, err
}

// sealedText says whether a head of the journal is over everything that was booked of a signed statement.
func sealedText(s reconcile.Signature) string {
	switch s.Sealed {
	case reconcile.SealedAtSigning:
		return "all of its bookings were sealed when it was signed, by journal head " + *s.SealedBy
	case reconcile.SealedSince:
		return "its bookings were not all sealed when it was signed; they are now, by journal head " + *s.SealedBy
	case reconcile.SealedNotYet:
		return "its bookings are not all sealed yet: the next journal head will be over them, once the service has a key to seal with"
	case reconcile.SealedUnrecorded:
		return "it was not kept how far its bookings reach in the journal"
	}
	return string(s.Sealed)
}
