package webhook

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"daesa/internal/web"
	"daesa/ledger"
	"daesa/pgclient"
)

const (
	// BodyMax is far above the largest notice there is: a payment with many cancels has some tens of kilobytes.
	BodyMax = 256 << 10
	// BodyWithin is how long a body may take to arrive, so that more than half of the deadline is left for what follows.
	BodyWithin = 4 * time.Second
)

// errDeadline is the cause of a request that ran out of its own time.
var errDeadline = errors.New("the deadline of the notice has passed")

// Receive answers one delivery of POST /webhooks/toss. A refusal is returned as a [*Refusal].
//
// The question to the gateway ends when the sender hangs up. What is written down does not: an answer of the gateway
// that we already hold is recorded, within the deadline, whoever still listens. The deadline counts from the headers,
// as the sender's patience does.
func (h *Handler) Receive(w http.ResponseWriter, r *http.Request) error {
	seen, waited := h.cfg.Now(), web.Waited(r.Context())
	end := web.Began(r.Context()).Add(h.cfg.Deadline)
	asking, stop := context.WithDeadlineCause(r.Context(), end, errDeadline)
	defer stop()
	writing, stopWriting := context.WithDeadlineCause(context.WithoutCancel(asking), end, errDeadline)
	defer stopWriting()

	v := h.handle(writing, asking, h.deliver(w, r, seen))
	took := h.cfg.Now().Sub(seen) + waited
	h.cfg.Metrics.answered(v.outcome, took, h.cfg.Deadline-took)
	if v.outcome.refusal() != nil {
		return &Refusal{Outcome: v.outcome, Reason: v.reason, status: v.httpStatus(), cause: v.cause}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]Outcome{"outcome": v.outcome})
}

// deliver reads the request. What cannot be read is a delivery too: it has its verdict already.
func (h *Handler) deliver(w http.ResponseWriter, r *http.Request, seen time.Time) delivery {
	d := delivery{at: seen, source: web.ClientIP(r, h.cfg.TrustedProxies).String()}
	body, err := h.read(w, r)
	d.hash, d.size = sha256.Sum256(body), len(body)
	if err != nil {
		d.settled = verdict{outcome: OutcomeBodyUnparsable, reason: unread(err), status: unreadStatus(err), cause: err}
		return d
	}
	if d.notice, err = h.cfg.Gateway.ReadNotice(r.Header, body); err != nil {
		d.settled = verdict{outcome: OutcomeBodyUnparsable, reason: "not_an_object", cause: err}
		return d
	}
	d = h.sort(d, h.cfg.Gateway.VerifySignature(r.Header, body))
	if d.settled.outcome == "" {
		d.masked = d.notice.Masked()
	}
	return d
}

// read takes the body in, within its own budget, so that a slow sender leaves time for what follows.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	bounded := web.Timeout(h.cfg.BodyBudget)
	bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err = web.ReadBody(r, BodyMax)
	})).ServeHTTP(w, r)
	return body, err
}

func unread(err error) string {
	switch {
	case errors.Is(err, web.ErrBodyTooLarge):
		return "too_large"
	case errors.Is(err, web.ErrBodyTimeout):
		return "too_slow"
	case errors.Is(err, web.ErrUnsupportedMedia):
		return "encoded"
	}
	return "broken_off"
}

func unreadStatus(err error) int {
	switch {
	case errors.Is(err, web.ErrBodyTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, web.ErrBodyTimeout):
		return http.StatusRequestTimeout
	case errors.Is(err, web.ErrUnsupportedMedia):
		return http.StatusUnsupportedMediaType
	}
	return http.StatusBadRequest
}

// handle stores the delivery, and asks and records where storing did not decide it.
func (h *Handler) handle(writing, asking context.Context, d delivery) verdict {
	stored, err := h.store(writing, d)
	if err != nil {
		return verdict{outcome: OutcomeDBFailed, reason: "store", cause: err}
	}
	if stored.NotParked {
		h.cfg.Metrics.notParked.Inc()
	}
	if stored.Outcome != received {
		v := d.settled
		v.outcome = stored.Outcome
		return v
	}
	d.id, d.paymentKey = stored.DeliveryID, stored.PaymentKey
	asked := h.cfg.Now()
	if !h.fruitless.begin(d.paymentKey, asked) {
		h.cfg.Metrics.queryFailed.WithLabelValues(reasonFruitless).Inc()
		return h.conclude(writing, d, verdict{outcome: OutcomeQueryFailed, reason: reasonFruitless, cause: errFruitless})
	}
	return h.question(writing, asking, d, asked)
}

// question asks the gateway and writes down what it says. One that was begun ends here, also by a panic.
func (h *Handler) question(writing, asking context.Context, d delivery, asked time.Time) (v verdict) {
	defer func() { h.fruitless.end(d.paymentKey, asked, v.fruitless) }()
	seen, reason, err := h.ask(asking, d.paymentKey)
	d.queryTook = h.cfg.Now().Sub(asked)
	h.cfg.Metrics.asked(reason, d.queryTook)
	if err != nil {
		unknown := reason == pgclient.ReasonNotFound // an answer too
		v = h.conclude(writing, d, verdict{outcome: OutcomeQueryFailed, reason: string(reason), cause: err, fruitless: unknown})
		h.quarantine(writing, d, err)
		return v
	}
	return h.record(writing, d, seen)
}

// ask puts the question to the gateway. It holds no lock and no database connection. The reason is "" when the gateway
// answered.
func (h *Handler) ask(ctx context.Context, paymentKey string) (ledger.Observation, pgclient.Reason, error) {
	deadline, _ := ctx.Deadline()
	ctx, stop := context.WithDeadline(ctx, deadline.Add(-writeReserve))
	defer stop()
	ctx, stopBudget := context.WithTimeout(ctx, h.cfg.QueryBudget)
	defer stopBudget()
	seen, err := h.cfg.Gateway.Query(ctx, ledger.ChannelWebhook, paymentKey)
	if err == nil {
		return seen, "", nil
	}
	failure, ok := errors.AsType[*pgclient.Error](err)
	switch {
	case !ok || failure.Reason == "":
		return seen, pgclient.ReasonUnreadable, err
	case failure.Reason == pgclient.ReasonCanceled && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return seen, pgclient.ReasonTimeout, err // it was our patience that ended, not the sender's
	}
	return seen, failure.Reason, err
}

// logConclusion notes that the outcome of a delivery could not be written; the reaper will close it.
func (h *Handler) logConclusion(ctx context.Context, d delivery, v verdict, err error) {
	h.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "delivery left open",
		slog.Int64("delivery_id", d.id), slog.String("outcome", string(v.outcome)), slog.Any("error", err))
}
