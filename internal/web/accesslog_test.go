package web

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// newRouter returns the outermost handler of a small service, its registry and its log.
func newRouter(t *testing.T) (http.Handler, *prometheus.Registry, *bytes.Buffer) {
	t.Helper()
	a, _ := newAdapter(t)
	router := chi.NewRouter()
	router.NotFound(a.NotFound)
	router.MethodNotAllowed(a.MethodNotAllowed)
	router.Route("/v1", func(r chi.Router) {
		r.Get("/orders/{id}", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			switch chi.URLParam(r, "id") {
			case "broken":
				return errTeapot
			case "gone":
				return context.Canceled
			case "panic":
				panic("boom")
			default:
				return WriteJSON(w, http.StatusOK, 12345)
			}
		}))
		r.Post("/orders", func(http.ResponseWriter, *http.Request) {})
	})
	routes, err := Routes(router)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET /v1/orders/{id}", "POST /v1/orders"}, routes); diff != "" {
		t.Fatalf("routes: -want +got:\n%s", diff)
	}
	reg := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(reg, routes)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	return a.Recover(AccessLog(slog.New(slog.NewTextHandler(&log, nil)), metrics)(InFlight(metrics)(router))), reg, &log
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, target string
		gone                 bool
		want                 string // Part of the line.
		route, counted       string
		class                statusClass
	}{
		{"answered", "GET", "/v1/orders/a?secret=1", false, "method=GET route=/v1/orders/{id} status=200 ms=0 bytes=5", "/v1/orders/{id}", "GET", "2xx"},
		{"refused", "GET", "/v1/orders/broken", false, "route=/v1/orders/{id} status=418", "/v1/orders/{id}", "GET", "4xx"},
		{"nothing written", "POST", "/v1/orders", false, "route=/v1/orders status=200 ms=0 bytes=0", "/v1/orders", "POST", "2xx"},
		{"client gone", "GET", "/v1/orders/gone", true, "status=499 ms=0 bytes=0", "/v1/orders/{id}", "GET", "gone"},
		{"panic", "GET", "/v1/orders/panic", false, "status=500", "/v1/orders/{id}", "GET", "5xx"},
		{"no such path", "GET", "/etc/passwd", false, "status=404", unmatched, unmatched, "4xx"},
		{"other method", "BREW", "/v1/orders", false, "status=405", unmatched, unmatched, "4xx"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			handler, reg, log := newRouter(t)
			r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.target, nil)
			if tt.gone {
				ctx, cancel := context.WithCancel(r.Context())
				cancel()
				r = r.WithContext(ctx)
			}
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if !strings.Contains(log.String(), tt.want) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("got log %s, want one line with %s", log, tt.want)
			}
			if strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "passwd") {
				t.Errorf("got log %s, want no path and no query", log)
			}
			if got := observed(t, reg, tt.route, tt.counted, tt.class); got != 1 {
				t.Errorf("got %d observations, want 1", got)
			}
		})
	}
}

func TestMetrics_EverySeriesStartsAtZero(t *testing.T) {
	t.Parallel()
	_, reg, _ := newRouter(t)
	for _, class := range statusClasses() {
		if got := observed(t, reg, "/v1/orders", "POST", class); got != 0 {
			t.Errorf("got %d for %s, want 0", got, class)
		}
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("got %v %v, want clean metrics", problems, err)
	}
}

func TestNewMetrics_RefusesWhatIsNoRoute(t *testing.T) {
	t.Parallel()
	for _, route := range []string{"", "GET", "/v1", "GET v1"} {
		if _, err := NewMetrics(prometheus.NewPedanticRegistry(), []string{route}); err == nil {
			t.Errorf("got no error for %q", route)
		}
	}
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	metrics, err := NewMetrics(prometheus.NewPedanticRegistry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	InFlight(metrics)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if got := testutil.ToFloat64(metrics.inFlight); got != 1 {
			t.Errorf("got %v in flight, want 1", got)
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if got := testutil.ToFloat64(metrics.inFlight); got != 0 {
		t.Errorf("got %v in flight afterwards, want 0", got)
	}
}

// observed is the number of observations of one series, or -1 when there is no such series.
func observed(t *testing.T, reg *prometheus.Registry, route, method string, class statusClass) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"route": route, "method": method, "status_class": string(class)}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if cmp.Equal(labels, want) {
				return int(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}
