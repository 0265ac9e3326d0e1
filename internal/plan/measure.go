package plan

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Measured is what a Prometheus has seen of the service.
type Measured struct {
	Paths map[string]Path
	// Replicas is how many instances run now; 0 = unknown.
	Replicas int
	// Failing is the most notices of a minute that would all come again if the gateway failed, and Fresh the most of any
	// kind in a minute.
	Failing, Fresh float64
	// RefusedKRW is what confirms of so many won were turned away by the cap or the breaker, before anything was sent.
	RefusedKRW float64
}

// question is a value to ask for, and where it goes. What the Prometheus has no sample of leaves nothing.
type question struct {
	expr string
	set  func(m *Measured, value float64)
}

// questions ask for the time in over, as "7d"; a peak is that of one minute. Times are those for which a slot was held, but
// for calls that failed: a confirm holds its slot while the store is asked, too.
func questions(paths []string, over string) []question {
	all := []question{
		{`count(daesa_pgclient_cap_calls{path="confirm"})`, func(m *Measured, v float64) { m.Replicas = int(v) }},
		{
			`max_over_time(sum(increase(daesa_webhook_outcomes_total{outcome!~"event_ignored|status_ignored|signature_rejected|body_unparsable"}[1m]))[` + over + `:1m])`,
			func(m *Measured, v float64) { m.Failing = v },
		},
		{`max_over_time(sum(increase(daesa_webhook_outcomes_total[1m]))[` + over + `:1m])`, func(m *Measured, v float64) { m.Fresh = v }},
		{`sum(increase(daesa_checkout_refused_before_sending_krw_total[` + over + `]))`, func(m *Measured, v float64) { m.RefusedKRW = v }},
	}
	for _, name := range paths {
		of := func(set func(p *Path, value float64)) func(*Measured, float64) {
			return func(m *Measured, v float64) {
				p := m.Paths[name]
				set(&p, v)
				m.Paths[name] = p
			}
		}
		at := seriesOf(name)
		all = append(all,
			question{
				`max_over_time(sum(rate(` + at.waits + `[1m]))[` + over + `:1m])`,
				of(func(p *Path, v float64) { p.Rate = v }),
			},
			question{
				`histogram_quantile(0.99, sum by (le) (increase(` + at.times + `[` + over + `])))`,
				of(func(p *Path, v float64) { p.P99 = time.Duration(v * float64(time.Second)) }),
			},
			question{`sum(` + at.cap + `)`, of(func(p *Path, v float64) { p.Cap = int(v) })},
			question{
				`sum(increase(` + at.refusals + `[` + over + `])) / sum(increase(` + at.waits + `[` + over + `]))`,
				of(func(p *Path, v float64) { p.Refused = v }),
			},
		)
	}
	return all
}

// series names what a path exports: calls that wanted a slot, how long they took, the slots, and those that got none.
type series struct{ waits, times, cap, refusals string }

// PathStore is the way to the merchant's store, which exports series of its own.
const PathStore = "store"

func seriesOf(path string) series {
	if path == PathStore {
		return series{
			waits: `daesa_store_queue_wait_seconds_count`, times: `daesa_store_call_seconds_bucket{path="ask"}`,
			cap: `daesa_store_cap_calls{path="ask"}`, refusals: `daesa_store_refusals_total{path="ask",reason="cap"}`,
		}
	}
	label := fmt.Sprintf(`path=%q`, path)
	return series{
		waits: `daesa_pgclient_queue_wait_seconds_count{` + label + `}`, times: `daesa_pgclient_slot_seconds_bucket{` + label + `,use!="failed"}`,
		cap: `daesa_pgclient_cap_calls{` + label + `}`, refusals: `daesa_pgclient_refusals_total{` + label + `,reason="cap"}`,
	}
}

// Span writes a time as Prometheus does: "1w", "24h" as "1d".
func Span(over time.Duration) string { return model.Duration(over).String() }

// Expressions are what [Measure] asks for.
func Expressions(paths []string, over time.Duration) []string {
	var all []string
	for _, q := range questions(paths, Span(over)) {
		all = append(all, q.expr)
	}
	return all
}

// Measure asks the Prometheus at an address what the paths did in a time that ends now.
func Measure(ctx context.Context, address string, paths []string, over time.Duration, now time.Time) (Measured, error) {
	m := Measured{Paths: make(map[string]Path)}
	for _, name := range paths {
		m.Paths[name] = Path{Name: name, Refused: -1}
	}
	client, err := api.NewClient(api.Config{Address: address})
	if err != nil {
		return m, fmt.Errorf("ask Prometheus: %w", err)
	}
	server := v1.NewAPI(client)
	for _, q := range questions(paths, Span(over)) {
		result, _, _, err := server.Query(ctx, q.expr, now)
		if err != nil {
			return m, fmt.Errorf("ask Prometheus for %s: %w", q.expr, err)
		}
		vector, isVector := result.(model.Vector)
		if !isVector {
			return m, fmt.Errorf("ask Prometheus for %s: %w: a %s", q.expr, errMeasure, result.Type())
		}
		if len(vector) == 0 || math.IsNaN(float64(vector[0].Value)) || math.IsInf(float64(vector[0].Value), 0) {
			continue // it has not seen any
		}
		q.set(&m, float64(vector[0].Value))
	}
	return m, nil
}
