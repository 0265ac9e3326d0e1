package checkout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"daesa/ledger"
)

// How often a delivery is tried: quickly at first, then every six hours, for four and a half days in all.
const (
	deliveryAttempts = 30
	deliveryFirst    = 5 * time.Second
	deliverySlowest  = 6 * time.Hour
	deliveryTimeout  = 10 * time.Second
	answerMax        = 4 << 10
)

// noAddress is the last answer of an event that nobody wants.
const noAddress = "no address configured"

// Receiver is where the events of one audience go.
type Receiver struct {
	URL    string // "" = nobody wants them: they stay undelivered
	Secret string // "whsec_" and base64; signs each delivery
}

func (r Receiver) validate(audience ledger.Audience) error {
	if r.URL == "" {
		return nil
	}
	address, err := url.Parse(r.URL)
	if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return fmt.Errorf("checkout: the address for %s events must look like https://shop.example/events", audience)
	}
	if _, err := standardwebhooks.NewWebhook(r.Secret); err != nil || r.Secret == "" {
		return fmt.Errorf("checkout: the secret for %s events must be whsec_ followed by base64", audience)
	}
	return nil
}

// EventWorkerConfig is what an EventWorker needs.
type EventWorkerConfig struct {
	DB       *pgxpool.Pool
	Merchant Receiver
	Customer Receiver
	Metrics  *Metrics
	Now      func() time.Time
}

// EventWorker delivers events. It is idempotent for us and at least once for the receiver: a crash after the delivery
// and before its row was written delivers again, under the same webhook-id.
type EventWorker struct {
	river.WorkerDefaults[EventArgs]

	cfg  EventWorkerConfig
	http *http.Client
}

// NewEventWorker makes an EventWorker.
func NewEventWorker(cfg EventWorkerConfig) (*EventWorker, error) {
	if cfg.DB == nil || cfg.Metrics == nil || cfg.Now == nil {
		return nil, errors.New("checkout: EventWorker needs DB, Metrics and Now")
	}
	if err := errors.Join(cfg.Merchant.validate(ledger.AudienceMerchant), cfg.Customer.validate(ledger.AudienceCustomer)); err != nil {
		return nil, err
	}
	return &EventWorker{cfg: cfg, http: &http.Client{
		Timeout:       deliveryTimeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close drops idle connections.
func (w *EventWorker) Close() { w.http.CloseIdleConnections() }

// Timeout bounds one attempt with its database work.
func (w *EventWorker) Timeout(*river.Job[EventArgs]) time.Duration { return 3 * deliveryTimeout }

// NextRetry doubles the wait from five seconds to six hours.
func (w *EventWorker) NextRetry(job *river.Job[EventArgs]) time.Time {
	return w.cfg.Now().Add(deliveryWait(job.Attempt))
}

func deliveryWait(attempt int) time.Duration {
	wait := deliveryFirst
	for range attempt - 1 {
		if wait *= 2; wait >= deliverySlowest {
			return deliverySlowest
		}
	}
	return wait
}

type eventRow struct {
	EventID     string           `db:"event_id"`
	Kind        ledger.EventKind `db:"kind"`
	Audience    ledger.Audience  `db:"audience"`
	Facts       map[string]any   `db:"facts"`
	CreatedAt   time.Time        `db:"created_at"`
	DeliveredAt *time.Time       `db:"delivered_at"`
}

// Work makes one attempt.
func (w *EventWorker) Work(ctx context.Context, job *river.Job[EventArgs]) error {
	event, err := w.load(ctx, job.Args.EventID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return river.JobCancel(fmt.Errorf("event %s: %w", job.Args.EventID, ErrNoEvent))
	case err != nil:
		return err
	case event.DeliveredAt != nil:
		return nil
	}
	to := w.receiver(event.Audience)
	if to.URL == "" {
		w.cfg.Metrics.delivered(event.Audience, deliveryUnset)
		err := w.note(ctx, event, deliveryUnset, noAddress)
		return errors.Join(err, river.JobCancel(errors.New(noAddress)))
	}
	answer, failure := w.post(ctx, to, event)
	came := deliveryDone
	switch {
	case failure != nil && job.Attempt >= job.MaxAttempts:
		came = deliveryDead
	case failure != nil:
		came = deliveryFailed
	}
	w.cfg.Metrics.delivered(event.Audience, came)
	return errors.Join(failure, w.note(ctx, event, came, answer))
}

func (w *EventWorker) load(ctx context.Context, eventID string) (eventRow, error) {
	rows, err := w.cfg.DB.Query(ctx, `
		SELECT event_id, kind, audience, facts, created_at, delivered_at FROM events WHERE event_id = @event_id`,
		pgx.StrictNamedArgs{"event_id": eventID})
	if err != nil {
		return eventRow{}, fmt.Errorf("read event %s: %w", eventID, err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[eventRow])
}

// note writes what came of an attempt.
func (w *EventWorker) note(ctx context.Context, event eventRow, came delivery, answer string) error {
	_, err := w.cfg.DB.Exec(ctx, `
		UPDATE events
		SET attempts = attempts + CASE WHEN @came = 'unset' THEN 0 ELSE 1 END, last_answer = @answer,
			delivered_at = CASE WHEN @came = 'delivered' THEN @now::timestamptz END,
			dead_at = CASE WHEN @came = 'dead' THEN @now::timestamptz END
		WHERE event_id = @event_id AND delivered_at IS NULL`,
		pgx.StrictNamedArgs{"came": came, "answer": answer, "now": w.cfg.Now(), "event_id": event.EventID})
	if err != nil {
		return fmt.Errorf("note delivery of event %s: %w", event.EventID, err)
	}
	return nil
}

func (w *EventWorker) receiver(audience ledger.Audience) Receiver {
	switch audience {
	case ledger.AudienceMerchant:
		return w.cfg.Merchant
	case ledger.AudienceCustomer:
		return w.cfg.Customer
	}
	return Receiver{}
}

// eventBody is what a receiver reads.
type eventBody struct {
	ID        string           `json:"id"`
	Type      ledger.EventKind `json:"type"`
	Timestamp time.Time        `json:"timestamp"`
	Data      map[string]any   `json:"data"`
}

func bodyOf(event eventRow) eventBody {
	body := eventBody{ID: event.EventID, Type: event.Kind, Timestamp: event.CreatedAt.UTC(), Data: event.Facts}
	if event.Audience == ledger.AudienceCustomer {
		body.Data["text"] = noticeText(event.Kind, event.Facts)
	}
	return body
}

// post delivers once. The answer is for people and holds nothing secret; any status but 2xx is a failure.
func (w *EventWorker) post(ctx context.Context, to Receiver, event eventRow) (answer string, err error) {
	body, err := json.Marshal(bodyOf(event))
	if err != nil {
		return "", fmt.Errorf("write event %s: %w", event.EventID, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("address event %s: %w", event.EventID, err)
	}
	if err := w.sign(request, to.Secret, event.EventID, body); err != nil {
		return "", err
	}
	response, err := w.http.Do(request)
	if err != nil {
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err // the address may hold a secret
		}
		return "no answer: " + err.Error(), fmt.Errorf("deliver event %s: %w", event.EventID, err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, answerMax) // the status is the answer; the rest only frees the connection
	answer = "status " + strconv.Itoa(response.StatusCode)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return answer, fmt.Errorf("deliver event %s: %s", event.EventID, answer)
	}
	return answer, nil
}

// sign adds the headers of Standard Webhooks.
func (w *EventWorker) sign(request *http.Request, secret, id string, body []byte) error {
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return errors.New("the secret for events is not base64")
	}
	at := w.cfg.Now()
	signature, err := signer.Sign(id, at, body)
	if err != nil {
		return fmt.Errorf("sign event %s: %w", id, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "daesa")
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return nil
}
