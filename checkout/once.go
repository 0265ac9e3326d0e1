package checkout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
	"daesa/internal/web"
)

// keyHeader is where a caller names its request.
const keyHeader = "Idempotency-Key"

// leaseFor is past the longest time that a request can take. A crash leaves its mark for no longer than this.
const leaseFor = 2 * time.Minute

// retryAfterInFlight is when a caller may look for the reply of its own earlier request.
const retryAfterInFlight = 2 * time.Second

// kept is a final reply as it is stored: a success, or a refusal of the gateway's.
type kept struct {
	Body    json.RawMessage `json:"body,omitempty"`
	Refused bool            `json:"refused,omitempty"`
	Cancel  bool            `json:"cancel,omitempty"` // it was a cancel that was refused
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Extra   map[string]any  `json:"extra,omitempty"`
}

// once runs act at most once for the request's Idempotency-Key within its scope, and answers a repetition with the
// stored reply. Only final replies are stored: what is not known yet, and what was turned away, is worth another try, of
// the same request.
func (h *Handler) once(r *http.Request, scope string, body any, act func() (reply, error)) (reply, error) {
	key := r.Header.Get(keyHeader)
	if !validKey(key) {
		return reply{}, ErrKeyMissing
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return reply{}, fmt.Errorf("hash request: %w", err)
	}
	hash := sha256.Sum256(encoded)
	claim := callerClaim{scope: scope + " " + web.Actor(r.Context()), key: key, hash: hash[:]}
	claim.now = h.now().UTC().Truncate(time.Microsecond)
	known, err := h.claim(r.Context(), claim)
	if err != nil || known != nil {
		return replayed(known), errors.Join(err, refusalOf(known))
	}
	answer, err := act()
	h.finish(r.Context(), claim, answer, err)
	return answer, err
}

func validKey(key string) bool {
	if key == "" || len(key) > 255 {
		return false
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// callerClaim is one caller's request and the moment it was claimed.
type callerClaim struct {
	scope, key string
	hash       []byte
	now        time.Time
}

// until is the end of the lease; it also tells whose lease it is.
func (c callerClaim) until() time.Time { return c.now.Add(leaseFor) }

type callerRow struct {
	RequestHash []byte     `db:"request_hash"`
	LeaseUntil  *time.Time `db:"lease_until"`
	Status      *int       `db:"status"`
	Reply       *kept      `db:"reply"`
}

// claim takes the lease, or returns what is known of an earlier request: nil when the lease is ours.
func (h *Handler) claim(ctx context.Context, c callerClaim) (*callerRow, error) {
	var known callerRow
	err := postgres.InTx(ctx, h.cfg.DB, func(tx pgx.Tx) error {
		known = callerRow{} // of an earlier try of the same transaction
		tag, err := tx.Exec(ctx, `
			INSERT INTO caller_requests AS c (scope, key, request_hash, lease_until, created_at)
			VALUES (@scope, @key, @hash, @until, @now)
			ON CONFLICT (scope, key) DO UPDATE SET lease_until = excluded.lease_until
			WHERE c.request_hash = excluded.request_hash AND c.lease_until <= @now`,
			pgx.StrictNamedArgs{"scope": c.scope, "key": c.key, "hash": c.hash, "until": c.until(), "now": c.now})
		if err != nil || tag.RowsAffected() == 1 {
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT request_hash, lease_until, status, reply FROM caller_requests WHERE scope = @scope AND key = @key`,
			pgx.StrictNamedArgs{"scope": c.scope, "key": c.key})
		if err != nil {
			return err
		}
		known, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[callerRow])
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrInFlight // forgotten this instant
		}
		return err
	})
	switch {
	case errors.Is(err, ErrInFlight):
		return nil, web.WithRetryAfter(ErrInFlight, retryAfterInFlight)
	case err != nil:
		return nil, unavailable(fmt.Errorf("claim the caller's request: %w", err))
	case known.RequestHash == nil:
		return nil, nil //nolint:nilnil // the lease is ours and there is no reply yet
	case !bytes.Equal(known.RequestHash, c.hash):
		return nil, ErrKeyReused
	case known.Status == nil || known.Reply == nil:
		return nil, web.WithRetryAfter(ErrInFlight, retryAfterInFlight)
	}
	return &known, nil
}

// replayed is the stored success.
func replayed(known *callerRow) reply {
	if known == nil || known.Reply.Refused {
		return reply{}
	}
	return reply{status: *known.Status, body: known.Reply.Body, replay: true}
}

// refusalOf is the stored refusal.
func refusalOf(known *callerRow) error {
	if known == nil || !known.Reply.Refused {
		return nil
	}
	cause := ErrRefused
	if known.Reply.Cancel {
		cause = ErrCancelRefused
	}
	return &refusal{
		cause: cause, status: *known.Status, code: known.Reply.Code, message: known.Reply.Message, extra: known.Reply.Extra,
	}
}

// finish stores a final reply, or ends the lease. Either way the key stays bound to its request: sent with another one it
// would be answered with what became of this one, or carry out a second. A failure here is not the caller's: the lease
// runs out by itself, and the request has its own row to be answered from.
func (h *Handler) finish(ctx context.Context, c callerClaim, answer reply, err error) {
	status, final := finalReply(answer, err)
	args := pgx.StrictNamedArgs{"scope": c.scope, "key": c.key, "until": c.until()}
	sql := `
		UPDATE caller_requests SET lease_until = @ended
		WHERE scope = @scope AND key = @key AND lease_until = @until`
	if final != nil {
		sql = `
			UPDATE caller_requests SET status = @status, reply = @reply, lease_until = NULL
			WHERE scope = @scope AND key = @key AND lease_until = @until`
		args["status"], args["reply"] = status, final
	} else {
		args["ended"] = c.now // past on every clock
	}
	failed := h.settle(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, args)
		return err
	})
	if failed != nil {
		h.log.WarnContext(ctx, "caller's request keeps its lease", slog.String("scope", c.scope), slog.Any("error", failed))
	}
}

// finalReply is what to store, nil when the reply is not final.
func finalReply(answer reply, err error) (int, *kept) {
	if r, ok := errors.AsType[*refusal](err); ok && (errors.Is(err, ErrRefused) || errors.Is(err, ErrCancelRefused)) {
		return r.status, &kept{
			Refused: true, Cancel: errors.Is(err, ErrCancelRefused), Code: r.code, Message: r.message, Extra: r.extra,
		}
	}
	if err != nil || !answer.final() {
		return 0, nil
	}
	body, err := json.Marshal(answer.body)
	if err != nil {
		return 0, nil
	}
	return answer.status, &kept{Body: body}
}
