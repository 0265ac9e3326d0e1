package app

import (
	"context"
	"net/http"
	"net/http/pprof"
	"slices"
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
	// pools are asked one after the other until one answers. An instance whose connections are all at work is busy, and
	// sending its load to the others helps nobody, so the first is the one whose connections nothing holds for long.
	pools    []*pgxpool.Pool
	stopping atomic.Bool
}

func (r *readiness) check(ctx context.Context) (string, bool) {
	if r.stopping.Load() {
		return "stopping", false
	}
	if !slices.ContainsFunc(r.pools, func(pool *pgxpool.Pool) bool { return answers(ctx, pool) }) {
		return "database unreachable", false
	}
	return "ready", true
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
