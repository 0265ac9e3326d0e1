package harness

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Look is one look at everything that runs, while load is on it. What several instances hold is added up.
type Look struct {
	At         time.Duration // after the load began
	Goroutines int
	Sockets    int
	Resident   int64         // bytes
	Processor  time.Duration // since the load began
	PoolInUse  int
	InFlight   map[string]int // requests by class
	AtGateway  map[string]int // calls by path
	Breaker    int            // of payments: 0 closed, 1 half open, 2 open

	GatewayProcessor time.Duration // of the simulator's process
	LoadProcessor    time.Duration // of ours
	Busy             float64       // share of the whole machine since the look before
}

// classes and paths that are looked at.
func classNames() []string { return []string{"money", "notification", "reading"} }
func pathNames() []string  { return []string{"confirm", "cancel", "query", "recover"} }

// watcher looks again and again.
type watcher struct {
	instances []*Instance
	gateway   *Gateway

	began time.Time
	base  Look
	last  machine
	seen  []Look
}

// Watch looks at instances of the service and their gateway until ctx ends, and tells after each look. The first error
// ends it: a watch that failed half-way has seen half.
func Watch(ctx context.Context, instances []*Instance, gateway *Gateway, every time.Duration, tell func(Look)) ([]Look, error) {
	w := &watcher{instances: instances, gateway: gateway, began: time.Now()}
	var err error
	if w.last, err = machineNow(); err != nil {
		return nil, err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		look, err := w.look(context.WithoutCancel(ctx))
		if err != nil {
			return nil, fmt.Errorf("watch the service: %w", err)
		}
		w.seen = append(w.seen, look)
		tell(look)
		select {
		case <-ctx.Done():
			return w.seen, nil
		case <-tick.C:
		}
	}
}

func (w *watcher) look(ctx context.Context) (Look, error) {
	look := Look{At: time.Since(w.began), InFlight: map[string]int{}, AtGateway: map[string]int{}}
	for _, i := range w.instances {
		m, err := i.Metrics(ctx)
		if err != nil {
			return look, err
		}
		used, err := usageOf(i.pid())
		if err != nil {
			return look, err
		}
		look.add(m, used)
	}
	gateway, err := usageOf(w.gateway.pid())
	if err != nil {
		return look, err
	}
	ours, err := usageOf(os.Getpid())
	if err != nil {
		return look, err
	}
	now, err := machineNow()
	if err != nil {
		return look, err
	}
	look.GatewayProcessor, look.LoadProcessor, look.Busy = gateway.processor, ours.processor, now.busy(w.last)
	w.last = now
	if len(w.seen) == 0 {
		w.base = look
	}
	look.Processor -= w.base.Processor
	look.GatewayProcessor -= w.base.GatewayProcessor
	look.LoadProcessor -= w.base.LoadProcessor
	return look, nil
}

func (l *Look) add(m Metrics, used usage) {
	l.Goroutines += m.Count("go_goroutines")
	l.PoolInUse += m.Count("daesa_postgres_pool_acquired_connections")
	l.Breaker = max(l.Breaker, m.Count("daesa_pgclient_breaker_state", "breaker", "money"))
	l.Sockets += used.sockets
	l.Resident += used.resident
	l.Processor += used.processor
	for _, class := range classNames() {
		l.InFlight[class] += m.Count("daesa_admission_gate_in_flight_requests", "class", class)
	}
	for _, path := range pathNames() {
		l.AtGateway[path] += m.Count("daesa_pgclient_in_flight_calls", "path", path)
	}
}

// LookColumns name what LookRow has.
func LookColumns() []string {
	return []string{
		"run", "at_ms", "goroutines", "sockets", "resident_mib", "processor_ms", "pool_in_use", "money", "notification", "reading",
		"confirms_at_gateway", "queries_at_gateway", "recoveries_at_gateway", "breaker", "gateway_processor_ms", "load_processor_ms",
		"machine_busy_percent",
	}
}

// LookRow is a look as a row of raw data.
func LookRow(run string, l Look) []string {
	cells := []string{run}
	for _, v := range []int64{
		l.At.Milliseconds(), int64(l.Goroutines), int64(l.Sockets), l.Resident >> 20, l.Processor.Milliseconds(), int64(l.PoolInUse),
		int64(l.InFlight["money"]), int64(l.InFlight["notification"]), int64(l.InFlight["reading"]),
		int64(l.AtGateway["confirm"]), int64(l.AtGateway["query"]), int64(l.AtGateway["recover"]), int64(l.Breaker),
		l.GatewayProcessor.Milliseconds(), l.LoadProcessor.Milliseconds(), int64(100 * l.Busy),
	} {
		cells = append(cells, strconv.FormatInt(v, 10))
	}
	return cells
}
