package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// statusClass is how an answer is counted.
type statusClass string

const (
	classSuccess     statusClass = "2xx"
	classRedirect    statusClass = "3xx"
	classClientError statusClass = "4xx"
	classServerError statusClass = "5xx"
	classGone        statusClass = "gone" // The client hung up before the answer.
)

func statusClasses() []statusClass {
	return []statusClass{classSuccess, classRedirect, classClientError, classServerError, classGone}
}

func classOf(status int) statusClass {
	switch {
	case status == StatusClientGone:
		return classGone
	case status >= http.StatusInternalServerError:
		return classServerError
	case status >= http.StatusBadRequest:
		return classClientError
	case status >= http.StatusMultipleChoices:
		return classRedirect
	default:
		return classSuccess
	}
}

// unmatched is the route and the method of every request that no known route serves. A stranger must not be able to
// make a label value.
const unmatched = "unmatched"

// Metrics are the figures of all routes.
type Metrics struct {
	seconds            *prometheus.HistogramVec
	inFlight           prometheus.Gauge
	untrustedForwarded prometheus.Counter
	routes             map[string]struct{}
}

// NewMetrics registers the figures on reg. Routes are written "METHOD /pattern", as [Routes] lists them; each has its
// series from the start, and what is not among them counts as unmatched.
func NewMetrics(reg prometheus.Registerer, routes []string) (*Metrics, error) {
	factory := promauto.With(reg)
	m := &Metrics{
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "daesa_web_request_seconds",
			Help: "Time from a request's headers to the end of its answer, by route. Status class gone means that the " +
				"client hung up first.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 7.5, 10, 15, 30, 60},
		}, []string{"route", "method", "status_class"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "daesa_web_in_flight_requests",
			Help: "Requests being answered now. More than the arrival rate explains means that answers have become slow.",
		}),
		untrustedForwarded: factory.NewCounter(prometheus.CounterOpts{
			Name: "daesa_web_untrusted_forwarded_total",
			Help: "Requests with X-Forwarded-For from a private address that is not a trusted proxy. If they grow with the " +
				"traffic, a proxy is missing in DAESA_TRUSTED_PROXIES, and all who come through it share one rate limit.",
		}),
		routes: make(map[string]struct{}, len(routes)),
	}
	for _, route := range routes {
		method, pattern, ok := strings.Cut(route, " ")
		if !ok || method == "" || !strings.HasPrefix(pattern, "/") {
			return nil, fmt.Errorf("web: route %q is not of the form METHOD /pattern", route)
		}
		m.routes[route] = struct{}{}
		m.openSeries(pattern, method)
	}
	m.openSeries(unmatched, unmatched)
	return m, nil
}

func (m *Metrics) openSeries(route, method string) {
	for _, class := range statusClasses() {
		m.seconds.WithLabelValues(route, method, string(class))
	}
}

func (m *Metrics) observe(route, method string, status int, took time.Duration) {
	if _, known := m.routes[method+" "+route]; !known {
		route, method = unmatched, unmatched
	}
	m.seconds.WithLabelValues(route, method, string(classOf(status))).Observe(took.Seconds())
}

// Routes lists what router serves, as "METHOD /pattern".
func Routes(router chi.Routes) ([]string, error) {
	var routes []string
	err := chi.Walk(router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, method+" "+trimSlash(pattern))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	slices.Sort(routes)
	return routes, nil
}

// trimSlash brings a pattern of a mounted router to the form in which a request reports it.
func trimSlash(pattern string) string {
	pattern = strings.ReplaceAll(pattern, "/*/", "/")
	if len(pattern) > 1 {
		pattern = strings.TrimSuffix(pattern, "/")
	}
	return pattern
}
