package app

import (
	"context"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"daesa/internal/web"
)

// readyTimeout bounds each question to the database: a probe must be answered, not wait.
const readyTimeout = time.Second

// readiness says whether this instance should be sent requests.
type readiness struct {
	money    *pgxpool.Pool
	limits   *pgxpool.Pool // whose connections nothing holds for long
	stopping atomic.Bool
}

func (r *readiness) check(ctx context.Context) (string, bool) {
	if r.stopping.Load() {
		return "stopping", false
	}
	if answers(ctx, r.money) || (busy(r.money) && answers(ctx, r.limits)) {
		return "ready", true
	}
	return "database unreachable", false
}

// busy reports whether all connections are at work. Sending the load of such an instance to the others helps nobody.
func busy(pool *pgxpool.Pool) bool {
	now := pool.Stat()
	return now.AcquiredConns() == now.MaxConns()
}

func answers(ctx context.Context, pool *pgxpool.Pool) bool {
	ctx, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	return pool.Ping(ctx) == nil
}

// privateRouter serves what only operators see: metrics, health and profiles. It has a listener of its own.
func privateRouter(reg *prometheus.Registry, ready *readiness) http.Handler {
	r := chi.NewRouter()
	r.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		_ = web.WriteJSON(w, http.StatusOK, map[string]string{"status": "alive"})
	})
	r.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		text, ok := ready.check(r.Context())
		status := http.StatusOK
		if !ok {
			status = http.StatusServiceUnavailable
		}
		_ = web.WriteJSON(w, status, map[string]string{"status": text})
	})
	r.HandleFunc("/debug/pprof/*", pprof.Index)
	r.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	r.HandleFunc("/debug/pprof/profile", pprof.Profile)
	r.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	r.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return r
}
