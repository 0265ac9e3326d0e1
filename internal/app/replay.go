package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/people"
	"daesa/ledger"
	"daesa/webhook"
)

// replayCommand takes a delivery up again, as the page of it does.
type replayCommand struct {
	booksSettings
	gatewaySettings

	Delivery int64  `arg:"" help:"Number of the delivery, as the pages and an order's report show it."`
	Apply    bool   `help:"Write it down; without it everything is rolled back."`
	Reason   string `help:"Why, for the trail; --apply needs it."`
	JSON     bool   `help:"Print JSON."`
}

func (c replayCommand) run(ctx context.Context, databaseURL string, log *slog.Logger, stdout io.Writer) error {
	reason := strings.TrimSpace(c.Reason)
	switch {
	case c.Apply && reason == "":
		return misuse{errors.New("--apply needs --reason, for the trail")}
	case !ledger.PlainText(reason, people.ReasonMost):
		return misuse{fmt.Errorf("--reason is plain text of at most %d characters", people.ReasonMost)}
	}
	who, err := operator()
	if err != nil {
		return err
	}
	cfg := Config{
		DatabaseURL: databaseURL, TossURL: c.TossURL, TossSecretKey: c.TossSecretKey, MerchantID: c.MerchantID, Log: quietly(log),
	}
	c.apply(&cfg)
	return withWorkbench(ctx, cfg, func(w *workbench) error {
		done, err := w.replay(ctx, c.Delivery, people.By(who), reason, c.Apply)
		if err != nil {
			return err
		}
		return printTable(stdout, c.JSON, done, func(w io.Writer) { writeReplayed(w, done) })
	})
}

// replay takes a delivery up again in somebody's name. The trail has it before it is done.
func (w *workbench) replay(ctx context.Context, id int64, by people.By, reason string, apply bool) (webhook.Replayed, error) {
	notices, err := webhook.New(webhook.Config{
		DB: w.db, Ledger: w.ledger, Gateway: w.gateway, Metrics: webhook.NewMetrics(prometheus.NewRegistry()), Log: w.cfg.Log, Now: w.cfg.Now,
		OurOrders: w.ourOrders, MerchantID: w.cfg.MerchantID,
	})
	if err != nil {
		return webhook.Replayed{}, err
	}
	accounts, err := people.New(people.Config{DB: w.db, Now: w.cfg.Now})
	if err != nil {
		return webhook.Replayed{}, err
	}
	deed := people.Deed{By: by, Action: people.ActionRehearsed, Subject: "delivery " + strconv.FormatInt(id, 10), Detail: reason}
	if apply {
		deed.Action = people.ActionReplayed
	}
	if err := accounts.Note(ctx, deed); err != nil {
		return webhook.Replayed{}, err
	}
	done, err := notices.Replay(ctx, id, apply)
	if err != nil {
		return webhook.Replayed{}, fmt.Errorf("take delivery %d up again: %w", id, err)
	}
	return done, nil
}

func writeReplayed(w io.Writer, r webhook.Replayed) {
	fmt.Fprintf(w, "delivery %d was %s and is now %s", r.DeliveryID, r.Was, r.Outcome)
	if r.Reason != "" {
		fmt.Fprintf(w, " (%s)", r.Reason)
	}
	fmt.Fprintf(w, "; the gateway says %s\n", r.Word)
	if r.Detail != "" {
		fmt.Fprintln(w, r.Detail)
	}
	switch {
	case len(r.Changes) == 0:
		fmt.Fprintln(w, "no row of the books changes")
		return
	case r.Applied:
		fmt.Fprint(w, "rows that were written:\n\n")
	default:
		fmt.Fprint(w, "rows that --apply --reason WHY would write; nothing was written:\n\n")
	}
	fmt.Fprintln(w, "table\trow\tcolumn\tbefore\tafter")
	for _, change := range r.Changes {
		name, key := change.Table, change.Key
		for _, column := range change.Columns {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, key, column.Name, column.Before, column.After)
			name, key = "", ""
		}
	}
}
