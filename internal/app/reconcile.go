package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"daesa/ledger"
	"daesa/reconcile"
)

type reconcileCommand struct {
	booksSettings
	gatewaySettings

	From  string `required:"" help:"First day (2006-01-02, Korean) or instant (RFC 3339) to read."`
	To    string `help:"Last day or end; now when left out."`
	Again bool   `help:"Read again what was read before."`
	JSON  bool   `help:"Print what was read, and the days, as JSON."`
}

// backfilled is what the command prints.
type backfilled struct {
	From    time.Time              `json:"from"`
	To      time.Time              `json:"to"`
	Windows int                    `json:"windows"`
	Pages   int                    `json:"pages"`
	Rows    int                    `json:"rows"`
	Fresh   int                    `json:"fresh"`
	Covered []reconcile.Stretch    `json:"covered_before"`
	Left    []reconcile.Stretch    `json:"left"`
	Days    []reconcile.HistoryDay `json:"days"`
}

// run reads a stretch of the gateway's list into the mirror and prints what is known of each day then. It reads beside
// the service, which goes on with what is new between any two windows. Exit codes are those of the audit: 1 where a
// mismatch is open in the stretch, 2 where something of it is left unread.
func (c reconcileCommand) run(ctx context.Context, databaseURL string, log *slog.Logger, stdout, stderr io.Writer) (int, error) {
	cfg := Config{
		DatabaseURL: databaseURL, TossURL: c.TossURL, TossSecretKey: c.TossSecretKey, MerchantID: c.MerchantID, Log: quietly(log),
	}
	c.apply(&cfg)
	var done backfilled
	err := withWorkbench(ctx, cfg, func(w *workbench) error {
		from, to, err := stretch(c.From, c.To, w.cfg.Now())
		if err != nil {
			return err
		}
		screen := newScreen(stderr)
		show := historyScreen{screen: screen, began: w.cfg.Now(), now: w.cfg.Now}
		read, readErr := w.reconcile.Mirror.ReadHistory(ctx, reconcile.History{From: from, To: to, Again: c.Again, Progress: show.progress})
		screen.end()
		done = backfilled{
			From: from, To: to, Windows: read.Windows, Pages: read.Pages, Rows: read.Rows, Fresh: read.Fresh,
			Covered: read.Covered, Left: read.Left,
		}
		settle, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer stop()
		done.Days, err = w.reconcile.Mirror.HistoryDays(settle, from, to)
		if errors.Is(readErr, context.Canceled) {
			readErr = nil // the person who stopped it knows; what is left is printed
		}
		return errors.Join(readErr, err)
	})
	if done.To.IsZero() {
		return ExitIncomplete, err
	}
	if printErr := done.print(stdout, c.JSON); printErr != nil {
		return ExitIncomplete, errors.Join(err, printErr)
	}
	return done.exit(err), err
}

// stretch reads where a stretch begins and ends: a day stands for its first instant, and as an end for its last.
func stretch(from, to string, now time.Time) (begin, end time.Time, err error) {
	if begin, _, err = dayOrInstant(from); err != nil {
		return begin, end, fmt.Errorf("--from: %w", err)
	}
	end = now
	if to != "" {
		if _, end, err = dayOrInstant(to); err != nil {
			return begin, end, fmt.Errorf("--to: %w", err)
		}
	}
	if end.After(now) {
		end = now
	}
	if !begin.Before(end) {
		return begin, end, errors.New("--from must lie before --to, and before now")
	}
	return begin, end, nil
}

// dayOrInstant reads a Korean business day or an instant, with its first instant and its end.
func dayOrInstant(text string) (begin, end time.Time, err error) {
	if d, err := ledger.ParseDay(text); err == nil {
		return d.Start(), d.End(), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, at, fmt.Errorf("%.40q is neither a day (2006-01-02) nor an instant (2006-01-02T15:04:05+09:00)", text)
	}
	return at, at, nil
}

// exit is the exit code.
func (b backfilled) exit(err error) int {
	if err != nil || len(b.Left) > 0 {
		return ExitIncomplete
	}
	for _, d := range b.Days {
		if !d.Whole {
			return ExitIncomplete
		}
	}
	for _, d := range b.Days {
		if d.Mismatches > 0 {
			return ExitBreaks
		}
	}
	return ExitOK
}

func (b backfilled) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, b)
	}
	for _, s := range b.Covered {
		fmt.Fprintf(w, "read before      %s – %s (again with --again)\n", seoul(s.From), seoul(s.To))
	}
	fmt.Fprintf(w, "read now         %d windows, %d pages, %d rows, %d of them new\n", b.Windows, b.Pages, b.Rows, b.Fresh)
	if len(b.Left) > 0 {
		fmt.Fprintf(w, "left             %s – %s, %d windows; the same command goes on\n",
			seoul(b.Left[0].From), seoul(b.Left[len(b.Left)-1].To), len(b.Left))
	}
	fmt.Fprintf(w, "\n%-10s  %-5s %8s %9s %8s %8s %8s %8s %6s %10s\n", "day", "whole", "rows", "captures", "cancels", "foreign",
		"before", "booked", "work", "mismatches")
	for _, d := range b.Days {
		whole := "yes"
		if !d.Whole {
			whole = "NO"
		}
		fmt.Fprintf(w, "%-10s  %-5s %8d %9d %8d %8d %8d %8d %6d %10d\n", d.Day, whole, d.Rows, d.Captures, d.Cancels, d.Foreign, d.Before,
			d.Booked, d.Work, d.Mismatches)
	}
	return nil
}

func seoul(t time.Time) string { return t.In(ledger.Seoul()).Format("2006-01-02 15:04:05") }

// historyScreen shows how far a reading has come.
type historyScreen struct {
	screen *screen
	began  time.Time
	now    func() time.Time
}

func (h historyScreen) progress(p reconcile.HistoryProgress) {
	text := fmt.Sprintf("window %d of %d, from %s: %d pages, %d rows, %d new", p.Window, p.Windows, seoul(p.Stretch.From), p.Sum.Pages,
		p.Sum.Rows, p.Sum.Fresh)
	switch {
	case p.Waiting != "":
		text = "waiting for " + p.Waiting
	case p.Ended:
		left := h.now().Sub(h.began) / time.Duration(p.Window) * time.Duration(p.Windows-p.Window)
		text += ", " + rough(left) + " left"
	}
	h.screen.show(text, p.Ended || p.Waiting != "")
}

// screen is where progress goes: on a terminal one line that changes, elsewhere a line for each thing that is done.
type screen struct {
	w        io.Writer
	terminal bool
	last     string
}

func newScreen(w io.Writer) *screen { return &screen{w: w, terminal: isTerminal(w)} }

// show shows how it stands; worth says that it is also worth a line where lines stay.
func (s *screen) show(text string, worth bool) {
	switch {
	case s.terminal:
		fmt.Fprintf(s.w, "\r\x1b[K%s", text)
	case worth && text != s.last:
		fmt.Fprintln(s.w, text)
	}
	s.last = text
}

// end leaves the line that changes.
func (s *screen) end() {
	if s.terminal && s.last != "" {
		fmt.Fprintln(s.w)
	}
}
