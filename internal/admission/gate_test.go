package admission

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"
)

func newGate(tb testing.TB, cfg GateConfig) *Gate {
	tb.Helper()
	cfg.Adapter, cfg.Metrics = newAdapter(tb), newMetrics()
	gate, err := NewGate(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return gate
}

// fill admits requests of class until one is refused, and says how many there were.
func fill(gate *Gate, class Class) (admitted int) {
	for {
		if _, ok := gate.Admit(class); !ok {
			return admitted
		}
		admitted++
	}
}

func TestGate_ReadingIsShedFirst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		order []Class
		want  []int
	}{
		{"reading alone stops at its ceiling or at what it leaves", []Class{ClassReading}, []int{80}},
		{"money alone stops at its ceiling", []Class{ClassMoney}, []int{176}},
		{"money first: the others keep their reserves", []Class{ClassMoney, ClassNotification, ClassReading}, []int{176, 64, 16}},
		{"reading first: money still finds slots", []Class{ClassReading, ClassMoney}, []int{80, 112}},
		{"notices first: money still finds slots", []Class{ClassNotification, ClassMoney, ClassReading}, []int{160, 80, 16}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			gate := newGate(t, GateConfig{Enforce: true})
			for i, class := range tt.order {
				if got := fill(gate, class); got != tt.want[i] {
					t.Errorf("got %d of %s admitted, want %d", got, class, tt.want[i])
				}
			}
		})
	}
}

// TestGate_ReservesAreNeverViolated drives gates of any shape with any sequence of arrivals and departures.
func TestGate_ReservesAreNeverViolated(t *testing.T) {
	t.Parallel()
	adapter := newAdapter(t)
	rapid.Check(t, func(t *rapid.T) {
		limits, budget := drawLimits(t)
		gate, err := NewGate(GateConfig{Adapter: adapter, Metrics: newMetrics(), Enforce: true, Budget: budget, Limits: limits})
		if err != nil {
			t.Fatalf("%v", err)
		}
		held := make(map[Class][]func())
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			class := rapid.SampledFrom(Classes()).Draw(t, "class")
			before := len(held[class])
			if before > 0 && rapid.IntRange(0, 3).Draw(t, "departs") == 0 {
				done := held[class][before-1]
				done()
				done() // A second call gives nothing back.
				held[class] = held[class][:before-1]
				continue
			}
			done, ok := gate.Admit(class)
			if !ok && before < limits[class].Reserve {
				t.Fatalf("%s refused with %d of its reserve of %d in use", class, before, limits[class].Reserve)
			}
			if ok {
				held[class] = append(held[class], done)
			}
			checkBounds(t, limits, budget, held)
		}
		for _, dones := range held {
			for _, done := range dones {
				done()
			}
		}
		if gate.sharedInUse() != 0 || gate.classes[ClassMoney].inFlight != 0 {
			t.Fatalf("got %d in flight after all have left", gate.classes[ClassMoney].inFlight)
		}
	})
}

func drawLimits(t *rapid.T) (limits map[Class]ClassLimit, budget int) {
	limits = make(map[Class]ClassLimit)
	budget = rapid.IntRange(0, 12).Draw(t, "shared")
	for _, class := range Classes() {
		reserve := rapid.IntRange(1, 5).Draw(t, "reserve")
		budget += reserve
		limits[class] = ClassLimit{Reserve: reserve}
	}
	for _, class := range Classes() {
		limit := limits[class]
		limit.Ceiling = rapid.IntRange(limit.Reserve, budget).Draw(t, "ceiling")
		limit.Leave = rapid.IntRange(0, 6).Draw(t, "leave")
		limits[class] = limit
	}
	return limits, budget
}

// checkBounds requires that what is held leaves every unused reserve free.
func checkBounds(t *rapid.T, limits map[Class]ClassLimit, budget int, held map[Class][]func()) {
	taken := 0
	for class, limit := range limits {
		if len(held[class]) > limit.Ceiling {
			t.Fatalf("%s has %d, above its ceiling of %d", class, len(held[class]), limit.Ceiling)
		}
		taken += max(len(held[class]), limit.Reserve)
	}
	if taken > budget {
		t.Fatalf("slots held and reserved make %d, above the budget of %d", taken, budget)
	}
}

func TestGate_RecordOnlyRefusesNobody(t *testing.T) {
	t.Parallel()
	gate := newGate(t, GateConfig{})
	for range 300 {
		if _, ok := gate.Admit(ClassReading); !ok {
			t.Fatal("refused in record-only mode")
		}
	}
	figures := gate.classes[ClassReading].metrics
	if shed, would := testutil.ToFloat64(figures.shed), testutil.ToFloat64(figures.wouldShed); shed != 0 || would != 220 {
		t.Errorf("got %v shed and %v that would be, want 0 and 220", shed, would)
	}
}

func TestGate_Concurrent(t *testing.T) {
	t.Parallel()
	gate := newGate(t, GateConfig{Enforce: true})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				for _, class := range Classes() {
					if done, ok := gate.Admit(class); ok {
						done()
					}
				}
			}
		})
	}
	group.Wait()
	for _, class := range Classes() {
		if got := testutil.ToFloat64(gate.classes[class].metrics.inFlight); got != 0 {
			t.Errorf("got %v of %s in flight, want 0", got, class)
		}
	}
}

func TestGate_Middleware(t *testing.T) {
	t.Parallel()
	gate := newGate(t, GateConfig{Enforce: true})
	handler := gate.Middleware(ClassReading)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if got := testutil.ToFloat64(gate.classes[ClassReading].metrics.inFlight); got != 1 {
			t.Errorf("got %v in flight, want 1", got)
		}
	}))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if w.Code != 200 || gate.classes[ClassReading].inFlight != 0 {
		t.Errorf("got %d and %d in flight, want 200 and a slot given back", w.Code, gate.classes[ClassReading].inFlight)
	}
	fill(gate, ClassReading)
	w = httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if after := w.Header().Get("Retry-After"); w.Code != 503 || (after != "1" && after != "2" && after != "3") {
		t.Errorf("got %d, Retry-After %q, want 503 and 1 to 3 seconds", w.Code, after)
	}
}

func TestGate_MiddlewareOfAnUnknownClassPanicsAtStart(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("got no panic")
		}
	}()
	newGate(t, GateConfig{}).Middleware("gossip")
}

func TestNewGate_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	without := func(class Class) map[Class]ClassLimit {
		limits := maps.Clone(defaultLimits())
		delete(limits, class)
		return limits
	}
	with := func(class Class, limit ClassLimit) map[Class]ClassLimit {
		limits := maps.Clone(defaultLimits())
		limits[class] = limit
		return limits
	}
	good := GateConfig{Adapter: newAdapter(t), Metrics: newMetrics(), Budget: 256}
	for name, limits := range map[string]map[Class]ClassLimit{
		"no limits":            nil,
		"a class missing":      without(ClassReading),
		"a class too many":     with("gossip", ClassLimit{1, 1, 0}),
		"no reserve":           with(ClassReading, ClassLimit{0, 10, 0}),
		"ceiling too low":      with(ClassReading, ClassLimit{10, 9, 0}),
		"ceiling above budget": with(ClassReading, ClassLimit{10, 257, 0}),
		"reserves too large":   with(ClassReading, ClassLimit{200, 200, 0}),
	} {
		cfg := good
		cfg.Limits = limits
		if _, err := NewGate(cfg); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	for name, cfg := range map[string]GateConfig{
		"no adapter": {Metrics: good.Metrics}, "no metrics": {Adapter: good.Adapter},
		"negative time": {Adapter: good.Adapter, Metrics: good.Metrics, RetryAfter: -1},
	} {
		if _, err := NewGate(cfg); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestMetrics_EverySeriesStartsAtZero(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	NewMetrics(reg, "webhook")
	for name, want := range map[string]int{
		"daesa_admission_gate_in_flight_requests": 3, "daesa_admission_gate_shed_total": 3,
		"daesa_admission_gate_would_shed_total": 3, "daesa_admission_gate_wait_seconds": 3,
		"daesa_admission_rate_refused_total": 1, "daesa_admission_rate_would_refuse_total": 1, "daesa_admission_rate_unasked_total": 1,
		"daesa_admission_rate_fallbacks_total": 4, "daesa_admission_rate_tracked_sources": 1, "daesa_admission_rate_shared_seconds": 1,
	} {
		if got, err := testutil.GatherAndCount(reg, name); err != nil || got != want {
			t.Errorf("got %d series of %s (%v), want %d", got, name, err, want)
		}
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("got %v %v, want clean metrics", problems, err)
	}
}
