package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"daesa/internal/postgres"
	"daesa/internal/postgres/embedded"
	"daesa/migrations"
	"daesa/reconcile/desk"
)

// Exit codes of the program.
const (
	ExitOK         = 0
	ExitBreaks     = 1 // the audit found breaks, or a command failed
	ExitIncomplete = 2 // the audit could not see everything; also a wrong command line
)

// cli is the command line. Every setting has a flag and an environment variable; flags win.
type cli struct {
	DatabaseURL string `name:"database-url" env:"DAESA_DATABASE_URL" help:"PostgreSQL, as a postgres:// address."`
	LogLevel    string `name:"log-level" env:"DAESA_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`

	Serve     serveCommand     `cmd:"" help:"Answer checkout and webhooks, and reconcile without pause."`
	Migrate   migrateCommand   `cmd:"" help:"Bring the database to this version."`
	Audit     auditCommand     `cmd:"" help:"Print the statement: gateway cancels = canceled orders + pending. Exits 1 on a break, 2 when incomplete."`
	Verify    verifyCommand    `cmd:"" help:"Recompute the journal, its heads, states and credits, and name the first wrong entry. Exits 1 when broken, 2 when it could not look."`
	SealKey   sealKeyCommand   `cmd:"" name:"seal-key" help:"Make a key that signs the journal's daily heads, and print its public half."`
	Report    reportCommand    `cmd:"" help:"Write a report for finance: a day, a range of days, an order, the trial balance."`
	Reconcile reconcileCommand `cmd:"" help:"Read any stretch of the past from the gateway's list, and say what it knows of each day."`
	Replay    replayCommand    `cmd:"" help:"Take a delivery up again: shows each row that this would change; --apply does it."`
	Import    importCommand    `cmd:"" help:"Take payments of the system before this one over, each proven by asking the gateway. Says what it would do; --apply does it."`
	Mismatch  mismatchCommand  `cmd:"" help:"Work on what is wrong between the gateway's books and ours."`
	Incident  incidentCommand  `cmd:"" help:"Work on storms of mismatches."`
	Pending   pendingCommand   `cmd:"" help:"Show the cancels that are still owed an answer, soonest last chance first."`
	User      userCommand      `cmd:"" help:"Accounts of the people who use the pages."`
	Health    healthCommand    `cmd:"" help:"Ask the instance on this machine whether it is ready. Exits 1 when it is not."`
	Key       keyCommand       `cmd:"" help:"API keys of the merchant's servers."`
	Plan      planCommand      `cmd:"" help:"Work out the caps of calls and the limit of notices, from flags or from a running Prometheus."`
	Day       dayCommand       `cmd:"" help:"Business days: list, show, close and sign them."`
}

// booksSettings say which payments are ours to account for. Those of serve decide; every command must be told the same.
type booksSettings struct {
	OrderPattern string        `name:"order-pattern" env:"DAESA_ORDER_PATTERN" help:"Regular expression of our order ids, when other systems share the merchant id."`
	OpeningAt    time.Time     `name:"opening-at" env:"DAESA_OPENING_AT" help:"Earlier payments belong to the system before this one (RFC 3339)."`
	ListLag      time.Duration `name:"list-lag" env:"DAESA_LIST_LAG" default:"10m" help:"How late a row may appear in the gateway's list."`
}

// gatewaySettings say which gateway is asked, and as whom.
type gatewaySettings struct {
	TossURL       string `name:"toss-url" env:"TOSS_BASE_URL" default:"https://api.tosspayments.com" help:"The gateway's API."`
	TossSecretKey string `name:"toss-secret-key" env:"TOSS_SECRET_KEY" help:"Secret key of the merchant id. Never printed."`
	MerchantID    string `name:"merchant-id" env:"DAESA_MERCHANT_ID" help:"Every payment must carry it; empty: not checked."`
}

type serveCommand struct {
	booksSettings
	gatewaySettings
	RetentionDays
	storeSettings
	admissionSettings
	guardSettings

	TossSecurityKey string `name:"toss-security-key" env:"TOSS_SECURITY_KEY" help:"64 hexadecimal digits that sign payout and seller notices."`

	Listen        string        `env:"DAESA_LISTEN" default:"127.0.0.1:8080" help:"Public address: checkout and webhook."`
	PrivateListen string        `name:"private-listen" env:"DAESA_PRIVATE_LISTEN" default:"127.0.0.1:9090" help:"Metrics, health and profiles. Keep it private."`
	PagesListen   string        `name:"pages-listen" env:"DAESA_PAGES_LISTEN" default:"127.0.0.1:8081" help:"Pages for finance and on-call."`
	PagesURL      string        `name:"pages-url" env:"DAESA_PAGES_URL" help:"The https address at which people reach the pages, through your proxy."`
	Embedded      bool          `env:"DAESA_EMBEDDED" help:"Start a PostgreSQL of our own on this machine, data kept. Refused with a live key."`
	EmbeddedDir   string        `name:"embedded-dir" env:"DAESA_EMBEDDED_DIR" help:"Where its data is kept."`
	PostgresBin   string        `name:"postgres-bin" env:"DAESA_POSTGRES_BIN" help:"Folder with initdb and postgres, when not found by itself."`
	APIKeys       []string      `name:"api-keys" env:"DAESA_API_KEYS" help:"name=secret, for the merchant's own servers, for everything; daesa key makes others while the service runs."`
	TokenKey      string        `name:"token-key" env:"DAESA_TOKEN_KEY" help:"Signs the status address of a payment; derived from the secret key when empty."`
	CORSOrigins   []string      `name:"cors-origins" env:"DAESA_CORS_ORIGINS" help:"Front ends that may call confirm, as scheme://host."`
	MerchantURL   string        `name:"merchant-url" env:"DAESA_MERCHANT_URL" help:"Where order events are delivered."`
	CustomerURL   string        `name:"customer-url" env:"DAESA_CUSTOMER_URL" help:"Where customer notices are delivered."`
	EventSecret   string        `name:"event-secret" env:"DAESA_EVENT_SECRET" help:"whsec_…, signs what is delivered (Standard Webhooks)."`
	SealKeyFile   string        `name:"seal-key-file" env:"DAESA_SEAL_KEY_FILE" help:"Private key that signs the journal's daily heads; daesa seal-key makes one."`
	SealOldKeys   []string      `name:"seal-old-keys" env:"DAESA_SEAL_OLD_KEYS" help:"Files of other public keys that may have signed heads which the heads file does not know yet, while keys are changed."`
	HeadsFile     string        `name:"heads-file" env:"DAESA_HEADS_FILE" help:"Where each head is also written, outside the database; the key's file with .heads when empty."`
	Replicas      int           `env:"DAESA_REPLICAS" default:"1" help:"Instances that share the caps."`
	Lazy          bool          `env:"DAESA_LAZY" help:"Ask about a claimed cancel only at its last chance."`
	DatabaseMax   int32         `name:"database-max-connections" env:"DAESA_DATABASE_MAX" default:"20" help:"Connections to PostgreSQL for payments and jobs; a quarter as many more for notices, as many for look-ups, 4 for rate limits."`
	ListEvery     time.Duration `name:"list-every" env:"DAESA_LIST_EVERY" default:"1m" help:"How often the gateway's list is read."`
	SecondPerson  int64         `name:"second-person-above" env:"DAESA_SECOND_PERSON_ABOVE" default:"1000000" help:"Above how many won at risk a second person must confirm how a mismatch is resolved."`
	StopTimeout   time.Duration `name:"stop-timeout" env:"DAESA_STOP_TIMEOUT" default:"45s" help:"How long a stop may wait for what is in flight."`

	change func(*Config)
}

type migrateCommand struct{}

type auditCommand struct {
	booksSettings

	Day  string `help:"One Korean business day, 2006-01-02; without it everything is audited."`
	JSON bool   `help:"Print the statement as JSON."`
}

// Main runs the program with the arguments after its name and returns its exit code.
func Main(args []string, stdout, stderr io.Writer) int { return MainWith(args, stdout, stderr, nil) }

// MainWith is Main for a program that serves with something changed, beyond what settings can: there is no setting that
// makes the service answer a notice which it has not recorded.
func MainWith(args []string, stdout, stderr io.Writer, change func(*Config)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := cli{Serve: serveCommand{change: change}}
	exit := -1
	parser, err := kong.New(&c, kong.Name("daesa"), kong.UsageOnError(), kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.Description("Proves that every payment and cancel at Toss Payments is in your books exactly once."))
	if err != nil {
		fmt.Fprintf(stderr, "daesa: %v\n", err)
		return ExitIncomplete
	}
	command, err := parser.Parse(longFlags(args))
	if exit >= 0 {
		return exit
	}
	if err != nil {
		fmt.Fprintf(stderr, "daesa: %v\n", err)
		return ExitIncomplete
	}
	code, err := c.run(ctx, command.Command(), stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "daesa: %v\n", err)
	}
	return code
}

// longFlags lets flags be written with one dash, as Go programs do.
func longFlags(args []string) []string {
	long := make([]string, 0, len(args))
	for _, a := range args {
		if len(a) > 2 && a[0] == '-' && a[1] != '-' && !strings.ContainsAny(a[1:2], "0123456789") {
			a = "-" + a
		}
		long = append(long, a)
	}
	return long
}

func (c *cli) run(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level(c.LogLevel)}))
	var err error
	switch command {
	case "serve":
		err = c.Serve.run(ctx, c.DatabaseURL, log)
	case "migrate":
		err = withPool(ctx, c.DatabaseURL, func(db *pgxpool.Pool) error { return migrations.Apply(ctx, db) })
	case "audit":
		return c.Audit.run(ctx, c.DatabaseURL, log, stdout)
	case "verify":
		return c.Verify.run(ctx, c.DatabaseURL, stdout)
	case "seal-key":
		err = c.SealKey.run(stdout)
	case "report day <day>", "report range <from> <to>", "report order <order-id>", "report applied",
		"report trial-balance":
		return c.Report.run(ctx, command, c.DatabaseURL, log, stdout)
	case "import":
		return c.Import.run(ctx, c.DatabaseURL, log, stdout, stderr)
	case "day list", "day show <day>", "day close <day>", "day sign <day>":
		return c.Day.run(ctx, command, c.DatabaseURL, log, stdout)
	case "reconcile":
		return c.Reconcile.run(ctx, c.DatabaseURL, log, stdout, stderr)
	case "replay <delivery>":
		err = c.Replay.run(ctx, c.DatabaseURL, log, stdout)
	case "health":
		err = c.Health.run(ctx, stdout)
	case "plan":
		err = c.Plan.run(ctx, time.Now(), stdout)
	case "pending":
		err = c.Pending.run(ctx, c.DatabaseURL, stdout)
	default:
		switch word, _, _ := strings.Cut(command, " "); word {
		case "mismatch":
			err = c.Mismatch.run(ctx, command, c.DatabaseURL, stdout)
		case "user":
			err = c.User.run(ctx, command, c.DatabaseURL, stdout)
		case "key":
			err = c.Key.run(ctx, command, c.DatabaseURL, stdout)
		case "incident":
			err = c.Incident.run(ctx, command, c.DatabaseURL, stdout)
		default:
			err = fmt.Errorf("no such command: %s", command)
		}
	}
	switch {
	case err == nil:
		return ExitOK, nil
	case errors.As(err, new(misuse)), errors.Is(err, desk.ErrRequest):
		return ExitIncomplete, err
	}
	return ExitBreaks, err
}

// misuse is a command line that makes no sense, whatever the books say.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

func level(name string) slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return l
}

func (s booksSettings) apply(cfg *Config) {
	cfg.OrderPattern, cfg.OpeningAt, cfg.ListLag = s.OrderPattern, s.OpeningAt, s.ListLag
}

// run serves until a signal comes. An embedded database is stopped last.
func (s serveCommand) run(ctx context.Context, databaseURL string, log *slog.Logger) (err error) {
	cfg := Config{
		DatabaseURL: databaseURL, TossURL: s.TossURL, TossSecretKey: s.TossSecretKey, TossSecurityKey: s.TossSecurityKey,
		MerchantID: s.MerchantID, Listen: s.Listen, PrivateListen: s.PrivateListen, PagesListen: s.PagesListen, PagesURL: s.PagesURL, APIKeys: s.APIKeys, TokenKey: s.TokenKey,
		CORSOrigins: s.CORSOrigins, MerchantURL: s.MerchantURL, CustomerURL: s.CustomerURL,
		EventSecret: s.EventSecret, SealKeyFile: s.SealKeyFile, SealOldKeys: s.SealOldKeys, HeadsFile: s.HeadsFile, Replicas: s.Replicas, Lazy: s.Lazy, DatabaseMax: s.DatabaseMax,
		ListEvery: s.ListEvery, SecondPersonAbove: &s.SecondPerson, StopTimeout: s.StopTimeout, Log: log,
	}
	s.booksSettings.apply(&cfg)
	s.storeSettings.apply(&cfg)
	s.admissionSettings.apply(&cfg)
	s.guardSettings.apply(&cfg)
	cfg.Retention = s.RetentionDays
	if s.Embedded {
		server, startErr := s.startEmbedded(ctx, cfg)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, server.Stop()) }() //nolint:contextcheck // it is stopped when ctx is over
		cfg.DatabaseURL = server.URL
		if err := withPool(ctx, cfg.DatabaseURL, func(db *pgxpool.Pool) error { return migrations.Apply(ctx, db) }); err != nil {
			return err
		}
	}
	if s.change != nil {
		s.change(&cfg)
	}
	app, err := New(ctx, cfg)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// startEmbedded starts a database of our own. Real money deserves a database that is looked after.
func (s serveCommand) startEmbedded(ctx context.Context, cfg Config) (*embedded.Server, error) {
	switch {
	case strings.HasPrefix(cfg.TossSecretKey, "live_"):
		return nil, errors.New("serve -embedded takes test keys only: set DAESA_DATABASE_URL to a database that is backed up")
	case cfg.DatabaseURL != "":
		return nil, errors.New("set DAESA_DATABASE_URL or use serve -embedded, not both")
	}
	dir := s.EmbeddedDir
	if dir == "" {
		found, err := embedded.DefaultDir(os.Getenv("XDG_STATE_HOME"), "serve")
		if err != nil {
			return nil, err
		}
		dir = found
	}
	return embedded.Start(ctx, embedded.Config{Dir: dir, Database: "daesa", BinDir: s.PostgresBin, Log: cfg.Log})
}

// withPool opens a small pool for one command.
func withPool(ctx context.Context, databaseURL string, fn func(*pgxpool.Pool) error) error {
	if databaseURL == "" {
		return errors.New("set DAESA_DATABASE_URL to the PostgreSQL database")
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: databaseURL, MaxConns: 4, ApplicationName: "daesa"})
	if err != nil {
		return err
	}
	defer db.Close()
	return fn(db)
}

// printJSON prints what a command found for a program to read.
func printJSON(stdout io.Writer, v any) error {
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	return nil
}

// printTable prints what text writes, its cells aligned where tabs are, or v as JSON.
func printTable(stdout io.Writer, asJSON bool, v any, text func(io.Writer)) error {
	if asJSON {
		return printJSON(stdout, v)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	text(table)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
