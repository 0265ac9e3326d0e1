package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"daesa/internal/plan"
	"daesa/ledger"
	"daesa/pgclient"
)

// planCommand works out caps and the limit of notices. What a flag says goes before what Prometheus has seen.
type planCommand struct {
	Prometheus string        `env:"DAESA_PROMETHEUS_URL" help:"A Prometheus that scrapes the service: what it saw is planned for."`
	Over       time.Duration `default:"168h" help:"The time of which Prometheus is asked for the peak."`

	ConfirmRate float64       `help:"Approvals a second at the peak, over all instances."`
	ConfirmP99  time.Duration `name:"confirm-p99" help:"For how long 99 of 100 approvals hold their slot at most while the gateway is well: its own time, and where a store is asked, that time too."`
	QueryRate   float64       `help:"Questions of notices a second at the peak: those of a burst of redeliveries."`
	QueryP99    time.Duration `name:"query-p99" help:"What 99 of 100 questions take at most."`
	StoreRate   float64       `help:"Questions to the store a second at the peak."`
	StoreP99    time.Duration `name:"store-p99" help:"What 99 of 100 of these take at most off the peak."`
	StoreBears  int           `default:"24" help:"How many the store serves at once before its round trip rises."`
	Failing     float64       `help:"Cancel notices that can fail in one minute, and come again together."`
	Fresh       float64       `help:"New notices of a minute beside them."`

	Budget   int  `default:"256" help:"Requests that one instance does at once; no path may hold more than three fifths of them."`
	Replicas int  `help:"Instances that share the caps; by Prometheus, or 1."`
	JSON     bool `help:"Print JSON."`
}

// planned is what the command prints.
type planned struct {
	Paths        []plannedPath `json:"paths"`
	WebhookLimit *int          `json:"webhook_limit_per_minute,omitempty"`
	RefusedKRW   float64       `json:"refused_krw,omitempty"`
	Replicas     int           `json:"replicas"`
	Over         string        `json:"over,omitempty"`
}

// plannedPath is one path: times in seconds, shares from 0 to 1. Measured is left out where nobody measured it.
type plannedPath struct {
	Path             string   `json:"path"`
	Rate             float64  `json:"peak_rate_per_second"`
	P99              float64  `json:"p99_seconds"`
	Cap              int      `json:"cap"` // set, or declared where nobody told
	Lower            int      `json:"lower_bound"`
	Upper            int      `json:"upper_bound"`
	Recommended      int      `json:"recommended_cap"`
	PerInstance      int      `json:"recommended_per_instance"`
	PredictedRefused float64  `json:"predicted_refused_share"`
	PredictedThen    float64  `json:"predicted_refused_share_at_recommended"`
	Measured         *float64 `json:"measured_refused_share,omitempty"`
	Bears            float64  `json:"recommended_bears_seconds"`
	Short            bool     `json:"short,omitempty"`
}

// errPlanNothing reports a plan for nothing.
var errPlanNothing = misuse{errors.New("say what to plan for: --prometheus, or a rate and a p99 (--confirm-rate 30 --confirm-p99 1s), or --failing and --fresh")}

// ofOthers is the part of the requests in flight that one path may hold at most: the rest stays with everybody else.
const ofOthers = 3.0 / 5

func (c planCommand) run(ctx context.Context, now time.Time, stdout io.Writer) error {
	if c.Budget < 1 || c.StoreBears < 1 || c.Replicas < 0 || c.Over < time.Minute ||
		min(c.Failing, c.Fresh, c.ConfirmRate, c.QueryRate, c.StoreRate) < 0 || min(c.ConfirmP99, c.QueryP99, c.StoreP99) < 0 {
		return misuse{errors.New("--budget and --store-bears are at least 1, --over is at least a minute, and nothing is below nothing")}
	}
	measured, err := c.measure(ctx, now)
	if err != nil {
		return err
	}
	out := planned{Replicas: max(1, measured.Replicas), RefusedKRW: measured.RefusedKRW}
	if c.Prometheus != "" {
		out.Over = plan.Span(c.Over)
	}
	for _, name := range []string{string(pgclient.PathConfirm), string(pgclient.PathQuery), plan.PathStore} {
		p := measured.Paths[name]
		if p.Rate == 0 || p.P99 == 0 {
			continue
		}
		p.Most = int(float64(c.Budget*out.Replicas) * ofOthers)
		declared := pgclient.DeclaredCap(pgclient.PathName(name))
		if name == plan.PathStore {
			p.Most, declared = c.StoreBears, c.StoreBears
		}
		p.Cap = cmp.Or(p.Cap, declared)
		advice, err := plan.Advise(p)
		if err != nil {
			return err
		}
		out.Paths = append(out.Paths, planOf(p, advice, out.Replicas))
	}
	if measured.Failing > 0 || measured.Fresh > 0 {
		limit := plan.Limit(measured.Failing, measured.Fresh)
		out.WebhookLimit = &limit
	}
	switch {
	case len(out.Paths) == 0 && out.WebhookLimit == nil:
		return errPlanNothing
	case c.JSON:
		return printJSON(stdout, out)
	}
	return out.print(stdout)
}

// measure is what Prometheus saw, with the flags over it.
func (c planCommand) measure(ctx context.Context, now time.Time) (plan.Measured, error) {
	m := plan.Measured{Paths: make(map[string]plan.Path)}
	names := []string{string(pgclient.PathConfirm), string(pgclient.PathQuery), plan.PathStore}
	if c.Prometheus != "" {
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		var err error
		if m, err = plan.Measure(ctx, c.Prometheus, names, c.Over, now); err != nil {
			return m, err
		}
	}
	set := func(name string, rate float64, p99 time.Duration) {
		p, seen := m.Paths[name]
		if !seen {
			p = plan.Path{Name: name, Refused: -1}
		}
		if rate != 0 {
			p.Rate = rate
		}
		if p99 != 0 {
			p.P99 = p99
		}
		m.Paths[name] = p
	}
	set(names[0], c.ConfirmRate, c.ConfirmP99)
	set(names[1], c.QueryRate, c.QueryP99)
	set(names[2], c.StoreRate, c.StoreP99)
	if c.Failing > 0 || c.Fresh > 0 {
		m.Failing, m.Fresh = c.Failing, c.Fresh
	}
	if c.Replicas > 0 {
		m.Replicas = c.Replicas
	}
	return m, nil
}

func planOf(p plan.Path, advice plan.Cap, replicas int) plannedPath {
	out := plannedPath{
		Path: p.Name, Rate: p.Rate, P99: p.P99.Seconds(), Cap: p.Cap, Lower: advice.Lower, Upper: advice.Upper,
		Recommended: advice.Recommended, PerInstance: max(1, advice.Recommended/replicas), PredictedRefused: advice.AtCap,
		PredictedThen: advice.AtRecommended, Bears: advice.Bears.Seconds(), Short: advice.Short,
	}
	if p.Refused >= 0 {
		out.Measured = &p.Refused
	}
	return out
}

// print writes the plan for people.
func (p planned) print(stdout io.Writer) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "path\tpeak\tp99\tlower\tupper\tcap\trecommended\teach of "+fmt.Sprint(p.Replicas)+"\tbears\trefused at the peak")
	for _, path := range p.Paths {
		refused := fmt.Sprintf("%.1f %% predicted now, %.1f %% then", 100*path.PredictedRefused, 100*path.PredictedThen)
		if path.Measured != nil {
			refused += fmt.Sprintf(", %.1f %% measured in all", 100**path.Measured)
		}
		fmt.Fprintf(table, "%s\t%.1f/s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", path.Path, path.Rate, seconds(path.P99), path.Lower, path.Upper, path.Cap,
			path.Recommended, path.PerInstance, seconds(path.Bears), refused)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	for _, path := range p.Paths {
		if path.Short {
			fmt.Fprintf(stdout, "\n%s: the peak needs %d at once and only %d may be: run more instances, or let the rest be refused.\n", path.Path, path.Lower, path.Upper)
		}
	}
	if p.WebhookLimit != nil {
		fmt.Fprintf(stdout, "\nWebhook limit: %d notices a minute and source (those that fail together, the new ones beside them, and half to spare).\n", *p.WebhookLimit)
	}
	if p.RefusedKRW > 0 {
		fmt.Fprintf(stdout, "\nIn %s confirms of %s KRW were turned away before anything was sent.\n", p.Over, ledger.Grouped(strconv.FormatFloat(p.RefusedKRW, 'f', 0, 64)))
	}
	_, err := fmt.Fprint(stdout, `
lower: rate × p99, what is under way at the peak while all is well. upper: what leaves the rest to others, or what the
store bears. recommended: the lower bound and a third to spare. bears: how slow it may become at the peak before the
recommended cap refuses anything; beyond that 1 − cap ÷ (rate × time) of the calls.
`)
	if err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	return nil
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
