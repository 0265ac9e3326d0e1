package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"daesa/internal/app"
	"daesa/internal/people"
	"daesa/internal/postgres/embedded"
	"daesa/internal/stage"
)

// demo is the stage with the database under it.
type demo struct {
	*stage.Stage
	database    *stage.Database
	books       string // name of this run's own database: two demos may run at once
	databaseURL string
	password    string // of the account of the pages
}

// setStage starts everything. The database is made anew each time: a story begins with empty books.
func setStage(ctx context.Context, log *slog.Logger) (_ *demo, err error) {
	d := &demo{}
	defer func() { //nolint:contextcheck // what was begun is undone also when ctx is over
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	dir, err := embedded.DefaultDir(os.Getenv("XDG_STATE_HOME"), "demo")
	if err != nil {
		return nil, err
	}
	d.database, err = stage.StartDatabase(ctx, stage.DatabaseConfig{Dir: dir, BinDir: os.Getenv("DAESA_POSTGRES_BIN"), Log: log})
	if err != nil {
		return nil, err
	}
	d.books = fmt.Sprintf("demo_%d", os.Getpid())
	if d.databaseURL, err = d.database.Fresh(ctx, d.books); err != nil {
		return nil, err
	}
	d.Stage, err = stage.Set(ctx, stage.Config{
		DatabaseURL: d.databaseURL, GatewayListen: stage.FreeNear(ctx, "127.0.0.1:9400"), Log: log,
		Service: app.Config{
			Listen:        stage.FreeNear(ctx, "127.0.0.1:8080"),
			PrivateListen: stage.FreeNear(ctx, "127.0.0.1:9090"),
			PagesListen:   stage.FreeNear(ctx, "127.0.0.1:8081"),
			CORSOrigins:   []string{"http://localhost:4000"}, // where the gateway's sample front ends run
		},
	})
	if err != nil {
		return nil, err
	}
	d.password, err = d.account(ctx)
	return d, err
}

// demoAccount is who works on the pages of the demo: everything that one person can.
const demoAccount = "demo"

// account makes the account of the demo and returns its password.
func (d *demo) account(ctx context.Context) (string, error) {
	accounts, err := people.New(people.Config{DB: d.App.DB(), Now: time.Now})
	if err != nil {
		return "", err
	}
	given, err := accounts.Add(ctx, "os:demo", demoAccount, []people.Role{people.RoleApprover, people.RoleOperator})
	if err != nil {
		return "", err
	}
	chosen := people.OneTimePassword()
	_, err = accounts.Choose(ctx, demoAccount, given, chosen, "demo")
	return chosen, err
}

// close ends everything in order: service, gateway, database.
func (d *demo) close() error {
	var err error
	if d.Stage != nil {
		err = d.Close()
	}
	if d.books != "" {
		err = errors.Join(err, d.database.Drop(context.Background(), d.books))
	}
	if d.database != nil {
		err = errors.Join(err, d.database.Stop())
	}
	return err
}

func (d *demo) introduce(out io.Writer) {
	fmt.Fprintf(out, "  service      %s   (API key: %s)\n", d.App.URL(), stage.APISecret)
	fmt.Fprintf(out, "  pages        %s   (sign in as %s, password %s)\n", d.App.PagesURL(), demoAccount, d.password)
	fmt.Fprintf(out, "  metrics      %s/metrics\n", d.App.PrivateURL())
	fmt.Fprintf(out, "  gateway      %s   (simulated; play it at %[1]s/__sim/)\n", d.SimURL)
	fmt.Fprintf(out, "  database     %s\n", d.databaseURL)
}
