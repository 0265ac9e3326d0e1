package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"daesa/ledger"
	"daesa/reconcile/opening"
)

type importCommand struct {
	booksSettings
	gatewaySettings

	CSV        string `name:"csv" type:"path" help:"File of payments, CSV UTF-8: payment_key, order_id, amount; optional currency, canceled, approved_at, ordered_at, customer_id, name, credits."`
	FromMirror bool   `name:"from-mirror" help:"Payments that the gateway's list shows as taken before the opening; read it with daesa reconcile first."`
	From       string `help:"With --from-mirror: first day or instant."`
	To         string `help:"With --from-mirror: last day or end; the opening when left out."`
	Apply      bool   `help:"Write. Without it the command only says what it would do."`
	Rejects    string `type:"path" help:"Where rejected rows go, with the reason; beside the file when left out."`
	JSON       bool   `help:"Print the rows and the sums as JSON."`
	PerMinute  int    `name:"per-minute" default:"60" help:"Questions to the gateway a minute; a test key may ask 100 in all."`
	Parallel   int    `default:"2" help:"Questions to the gateway at once, 1 to 8, besides the service's own."`
}

// imported is what the command prints.
type imported struct {
	Applied  bool          `json:"applied"`
	Read     int           `json:"read"`
	Imported int           `json:"imported"`
	Known    int           `json:"known"`
	Rejected int           `json:"rejected"`
	Left     int           `json:"left"`
	Sums     []importSum   `json:"sums"`
	Rows     []importedRow `json:"rows,omitempty"`
}

// importSum is the money of the rows that were, or would be, imported.
type importSum struct {
	Currency ledger.Currency `json:"currency"`
	Captured string          `json:"captured"`
	Canceled string          `json:"canceled"`
}

type importedRow struct {
	Line       int            `json:"line"`
	PaymentKey string         `json:"payment_key"`
	OrderID    string         `json:"order_id"`
	Result     opening.Result `json:"result"`
	Reason     string         `json:"reason,omitempty"`
	Captured   string         `json:"captured,omitempty"`
	Canceled   string         `json:"canceled,omitempty"`
	money      [2]ledger.Money
}

// run takes payments of the system before this one over, or, without --apply, says what it would do. It exits 1 when
// rows are rejected and 2 when rows are left or nothing could be read.
func (c importCommand) run(ctx context.Context, databaseURL string, log *slog.Logger, stdout, stderr io.Writer) (int, error) {
	cfg := Config{
		DatabaseURL: databaseURL, TossURL: c.TossURL, TossSecretKey: c.TossSecretKey, MerchantID: c.MerchantID, Log: quietly(log),
	}
	c.apply(&cfg)
	by, err := operator()
	if err != nil {
		return ExitIncomplete, err
	}
	if (c.CSV == "") == !c.FromMirror {
		return ExitIncomplete, errors.New("name what to import: --csv FILE or --from-mirror, one of them")
	}
	if err := c.keepsFile(); err != nil {
		return ExitIncomplete, err
	}
	code := ExitIncomplete
	err = withWorkbench(ctx, cfg, func(w *workbench) error {
		screen := newScreen(stderr)
		show := importScreen{screen: screen, began: w.cfg.Now(), now: w.cfg.Now}
		importer, err := opening.New(opening.Config{
			DB: w.db, Ledger: w.ledger, Gateway: w.gateway, Now: w.cfg.Now, By: by, OpeningAt: w.cfg.OpeningAt, OurOrders: w.ourOrders,
			Allowed: w.requireSettings, Apply: c.Apply, PerMinute: c.PerMinute, Parallel: c.Parallel, Progress: show.progress,
		})
		if err != nil {
			return err
		}
		claims, err := c.claims(ctx, w)
		if err != nil {
			return err
		}
		summary, runErr := importer.Run(ctx, claims)
		screen.end()
		if summary.Read == 0 && runErr != nil {
			return runErr
		}
		code = exitOfImport(summary, runErr)
		if errors.Is(runErr, context.Canceled) {
			runErr = nil // the person who stopped it knows; what is left is printed
		}
		return errors.Join(runErr, c.printImport(stdout, stderr, claims, summary))
	})
	if err != nil && code == ExitOK {
		code = ExitBreaks
	}
	return code, err
}

// rejects is where rejected rows go.
func (c importCommand) rejects() string {
	return cmp.Or(c.Rejects, cmp.Or(c.CSV, "import")+".rejects.csv")
}

// keepsFile refuses to write the rejects over the file they come from.
func (c importCommand) keepsFile() error {
	rejects, err := os.Stat(c.rejects())
	if c.CSV == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look where rejected rows go: %w", err)
	}
	if file, err := os.Stat(c.CSV); err == nil && os.SameFile(file, rejects) {
		return errors.New("--rejects names the file of payments itself: choose another")
	}
	return nil
}

func exitOfImport(s opening.Summary, err error) int {
	switch {
	case err != nil || s.Left > 0:
		return ExitIncomplete
	case s.Rejected > 0:
		return ExitBreaks
	}
	return ExitOK
}

// claims reads what is to be imported.
func (c importCommand) claims(ctx context.Context, w *workbench) (opening.Claims, error) {
	if c.CSV != "" {
		content, err := os.ReadFile(c.CSV)
		if err != nil {
			return opening.Claims{}, fmt.Errorf("read the file of payments: %w", err)
		}
		claims, err := opening.ReadCSV(c.CSV, content)
		if err != nil {
			return claims, fmt.Errorf("%s: %w", c.CSV, err)
		}
		return claims, nil
	}
	from, to := time.Unix(0, 0), w.cfg.OpeningAt
	if c.From != "" {
		begin, _, err := dayOrInstant(c.From)
		if err != nil {
			return opening.Claims{}, fmt.Errorf("--from: %w", err)
		}
		from = begin
	}
	if c.To != "" {
		_, end, err := dayOrInstant(c.To)
		if err != nil {
			return opening.Claims{}, fmt.Errorf("--to: %w", err)
		}
		to = end
	}
	return opening.FromMirror(ctx, w.db, from, to, w.cfg.OpeningAt)
}

// printImport prints the rows and sums, and writes the rejects to their file.
func (c importCommand) printImport(stdout, stderr io.Writer, claims opening.Claims, s opening.Summary) error {
	done := importedOf(s, c.Apply)
	if c.JSON {
		if err := printJSON(stdout, done); err != nil {
			return err
		}
	} else {
		done.write(stdout)
	}
	path := c.rejects()
	switch {
	case !c.Apply && c.Rejects == "":
		return nil
	case s.Rejected == 0 && s.Left == 0:
		return removeRejects(path)
	case s.Rejected == 0:
		return nil
	}
	if err := writeRejects(path, claims.Header, s.Rows); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "rejected rows are in %s; correct them there and import that file\n", path)
	return nil
}

func importedOf(s opening.Summary, applied bool) imported {
	done := imported{Applied: applied, Read: s.Read, Imported: s.Imported, Known: s.Known, Rejected: s.Rejected, Left: s.Left}
	sums := make(map[ledger.Currency]*[2]int64)
	for _, r := range s.Rows {
		row := importedRow{Line: r.Claim.Line, PaymentKey: r.Claim.PaymentKey, OrderID: r.Claim.OrderID, Result: r.Result, Reason: r.Reason}
		if r.Captured.Currency != "" {
			row.Captured, row.Canceled, row.money = r.Captured.Decimal(), r.Canceled.Decimal(), [2]ledger.Money{r.Captured, r.Canceled}
		}
		done.Rows = append(done.Rows, row)
		if r.Result != opening.ResultImported {
			continue
		}
		if sums[r.Captured.Currency] == nil {
			sums[r.Captured.Currency] = &[2]int64{}
		}
		sums[r.Captured.Currency][0] += r.Captured.Minor
		sums[r.Captured.Currency][1] += r.Canceled.Minor
	}
	for currency, sum := range sums {
		done.Sums = append(done.Sums, importSum{
			Currency: currency, Captured: ledger.Money{Minor: sum[0], Currency: currency}.Decimal(),
			Canceled: ledger.Money{Minor: sum[1], Currency: currency}.Decimal(),
		})
	}
	slices.SortFunc(done.Sums, func(a, b importSum) int { return cmp.Compare(a.Currency, b.Currency) })
	return done
}

// write prints for a terminal: every row of a dry run, and what needs somebody of a real one.
func (d imported) write(w io.Writer) {
	for _, r := range d.Rows {
		if d.Applied && (r.Result == opening.ResultImported || r.Result == opening.ResultKnown) {
			continue
		}
		fmt.Fprintf(w, "line %-6d %-9s %-24s %-32s", r.Line, r.Result, r.OrderID, r.PaymentKey)
		if r.Captured != "" {
			fmt.Fprintf(w, " %s, canceled %s", r.money[0], r.money[1])
		}
		if r.Reason != "" {
			fmt.Fprintf(w, " %s", r.Reason)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "read %d = imported %d + already there %d + rejected %d", d.Read, d.Imported, d.Known, d.Rejected)
	if d.Left > 0 {
		fmt.Fprintf(w, " + left %d; the same command goes on", d.Left)
	}
	fmt.Fprintln(w)
	for _, s := range d.Sums {
		fmt.Fprintf(w, "%s: captured %s, canceled %s\n", s.Currency, s.Captured, s.Canceled)
	}
	if !d.Applied {
		fmt.Fprintln(w, "nothing was written; --apply does")
	}
}

// removeRejects takes away what an earlier run rejected, once nothing is.
func removeRejects(path string) error {
	old, err := os.Lstat(path)
	if err == nil && old.Mode().IsRegular() {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the rows that were rejected before: %w", err)
	}
	return nil
}

// writeRejects writes the rejected rows to a file that its owner alone can read.
func writeRejects(path string, header []string, rows []opening.Row) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // the path is the operator's own
	if err != nil {
		return fmt.Errorf("write the rejected rows: %w", err)
	}
	err = opening.WriteRejects(file, header, rows)
	if closeErr := file.Close(); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("write the rejected rows: %w", closeErr))
	}
	return err
}

// importScreen shows how far an import has come.
type importScreen struct {
	screen *screen
	began  time.Time
	now    func() time.Time
}

// importEvery is how many rows are worth a line where lines stay.
const importEvery = 100

func (i importScreen) progress(s opening.Summary) {
	took, done := i.now().Sub(i.began), s.Done()
	if done == 0 {
		return
	}
	rate := int64(done) * int64(time.Minute) / max(1, int64(took))
	i.screen.show(fmt.Sprintf("%d of %d rows, %d imported, %d rejected, %d a minute, %s left", done, s.Read, s.Imported, s.Rejected, rate,
		rough(took/time.Duration(done)*time.Duration(s.Left))), done%importEvery == 0 || s.Left == 0)
}
