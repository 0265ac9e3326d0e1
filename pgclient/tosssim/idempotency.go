package tosssim

import (
	"net/http"
	"time"
)

const (
	idempotencyKeyMax   = 300
	idempotencyValidFor = 15 * 24 * time.Hour
)

// bound is the first reply to an idempotency key. It is replayed byte for byte for fifteen days, refusals included, whatever
// the later request's body says; after that the same key acts anew.
type bound struct {
	since      time.Time
	processing bool
	reply      reply
	trace      string
}

// scope is what an idempotency key is valid for: API key, method and address, but not the body.
func (in *inbound) scope() string {
	return in.user + "\x00" + in.call.Method + "\x00" + in.call.Path + "\x00" + in.call.IdempotencyKey
}

// claim looks an idempotency key up before the request acts. It returns the reply to give instead, if there is one;
// otherwise the key is marked as being processed until settle.
func (s *Sim) claim(in *inbound) (reply, bool) {
	key := in.call.IdempotencyKey
	if key == "" || in.call.Method != http.MethodPost {
		return reply{}, false
	}
	if len(key) > idempotencyKeyMax {
		return refuse("INVALID_IDEMPOTENCY_KEY"), true
	}
	now := s.clock.Now()
	if first := s.idempotent[in.scope()]; first != nil && now.Before(first.since.Add(idempotencyValidFor)) {
		if first.processing {
			return refuse("IDEMPOTENT_REQUEST_PROCESSING"), true
		}
		replay := first.reply
		replay.effect = false
		replay.trace = in.trace + ", " + first.trace
		return replay, true
	}
	in.bound = &bound{since: now, processing: true, trace: in.trace}
	s.idempotent[in.scope()] = in.bound
	return reply{}, false
}

// settle binds the reply to the key. Server errors are not bound: how the gateway replays those is not known.
func (s *Sim) settle(in *inbound, out reply) {
	if in.bound == nil {
		return
	}
	in.bound.processing = false
	in.bound.reply = out
	if out.status >= http.StatusInternalServerError && s.idempotent[in.scope()] == in.bound {
		delete(s.idempotent, in.scope())
	}
}
