package tosssim

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Kind is how a fault misbehaves.
type Kind string

// The kinds of faults. Any of them may carry a Delay, which is waited out first (LateReply: last). Some do what was asked, some do not.
const (
	Delay        Kind = "delay"          // Answers rightly, but late. The idempotency key is being processed meanwhile.
	Hang         Kind = "hang"           // Does nothing and never answers; holds on for four minutes after the caller left.
	DoThenHang   Kind = "do_then_hang"   // Does it, then never answers.
	Reset        Kind = "reset"          // Does nothing and resets the connection.
	LateReply    Kind = "late_reply"     // Does it at once, and answers after the Delay: notices overtake the reply.
	LostReply    Kind = "lost_reply"     // Does it, then drops the connection.
	Status       Kind = "status"         // Does nothing and answers Code, Body and Headers; not bound to idempotency keys.
	DoThenStatus Kind = "do_then_status" // Does it, then answers Code, Body and Headers. The key is bound to the true reply.
	Refuse       Kind = "refuse"         // Refuses with the error code in Body, as the gateway would: bound to the key.
	HTML         Kind = "html"           // Does nothing and answers a proxy's HTML page with Code, 502 by default.
	Body         Kind = "body"           // Does nothing and answers Body as it stands, with ContentType and Code, 200 by default.
	Stale        Kind = "stale"          // Does nothing and answers Payment, or the payment as it was one version back.
	StalledBody  Kind = "stalled_body"   // Does it, then answers the headers and half of the body, and goes silent.
	Garbage      Kind = "garbage"        // Does it, then answers half of the JSON as if it were whole.
	EmptyArray   Kind = "empty_array"    // Does nothing and answers 200 with [].
	TooMany      Kind = "too_many"       // Does nothing and answers 429.
)

// kinds lists every fault; a script with any other is a mistake.
func kinds() []Kind {
	return []Kind{
		Delay, Hang, DoThenHang, Reset, LateReply, LostReply, Status, DoThenStatus, Refuse, HTML, Body, Stale, StalledBody, Garbage,
		EmptyArray, TooMany,
	}
}

// Fault is one scripted misbehaviour. It hits the next N calls of Op, and of PaymentKey when that is set; of several that
// match, the one scripted first.
type Fault struct {
	Op          Op
	Kind        Kind
	N           int           // How many calls; 0 means one, -1 all until Heal.
	Delay       time.Duration // Real time.
	Code        int
	Body        string
	ContentType string
	Headers     map[string]string
	Payment     []byte // For Stale.
	PaymentKey  string // "" means any.
}

func (f Fault) validate() error {
	if !slices.Contains([]Op{Confirm, Cancel, Get, List}, f.Op) {
		return fmt.Errorf("tosssim: no operation %q", f.Op)
	}
	if !slices.Contains(kinds(), f.Kind) {
		return fmt.Errorf("tosssim: no fault %q", f.Kind)
	}
	return nil
}

// holdAfterLeaving is how long the real gateway has been seen to hold a request after its caller had given up.
const holdAfterLeaving = 4 * time.Minute

// Fail scripts a fault. It panics when the operation or the kind does not exist.
func (s *Sim) Fail(f Fault) {
	if err := f.validate(); err != nil {
		panic(err.Error())
	}
	if f.N == 0 {
		f.N = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Heal removes all faults, cuts delays short and drops the connections of held requests.
func (s *Sim) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	close(s.healed)
	s.healed = make(chan struct{})
}

// Held returns how many requests are being held open now, those whose callers have left included.
func (s *Sim) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// pick returns the fault that hits this call, and uses it up by one.
func (s *Sim) pick(call *Call) *Fault {
	for _, f := range s.faults {
		if f.Op != call.Op || f.N == 0 || (f.PaymentKey != "" && f.PaymentKey != call.PaymentKey) {
			continue
		}
		if f.N > 0 {
			f.N--
		}
		return f
	}
	return nil
}

// misbehave does what the fault wants.
func (s *Sim) misbehave(w http.ResponseWriter, r *http.Request, in *inbound) {
	f := in.fault
	for name, value := range f.Headers {
		w.Header().Set(name, value)
	}
	switch f.Kind {
	case Delay:
		s.answer(w, in, s.process(in, f.Delay))
	case LateReply:
		out := s.process(in, 0)
		s.pause(f.Delay, in.healed)
		s.answer(w, in, out)
	case LostReply:
		s.process(in, f.Delay)
		drop(w, false)
	case DoThenHang:
		s.process(in, f.Delay)
		s.hold(r, in)
		drop(w, false)
	case DoThenStatus:
		s.process(in, f.Delay)
		s.answerFault(w, in, http.StatusInternalServerError, f.Body)
	case Refuse:
		in.act = func(*inbound) reply {
			out := refuse(f.Body)
			if f.Code != 0 {
				out.status = f.Code
			}
			return out
		}
		s.answer(w, in, s.process(in, f.Delay))
	case StalledBody, Garbage:
		s.answerHalf(w, r, in, s.process(in, f.Delay))
	case Hang, Reset, Status, HTML, Body, Stale, EmptyArray, TooMany:
		s.pause(f.Delay, in.healed)
		s.misbehaveIdly(w, r, in)
	}
}

// misbehaveIdly is the part of the faults that do nothing.
func (s *Sim) misbehaveIdly(w http.ResponseWriter, r *http.Request, in *inbound) {
	f := in.fault
	switch f.Kind {
	case Hang:
		s.hold(r, in)
		drop(w, false)
	case Reset:
		drop(w, true)
	case Status:
		s.answerFault(w, in, http.StatusInternalServerError, f.Body)
	case TooMany:
		s.answerFault(w, in, http.StatusTooManyRequests, f.Body)
	case HTML:
		w.Header().Set("Content-Type", "text/html")
		s.answer(w, in, reply{
			status: codeOr(f.Code, http.StatusBadGateway),
			body:   []byte("<html><body><h1>Bad Gateway</h1></body></html>"),
		})
	case Body:
		if f.ContentType != "" {
			w.Header().Set("Content-Type", f.ContentType)
		}
		s.answer(w, in, reply{status: codeOr(f.Code, http.StatusOK), body: []byte(f.Body)})
	case EmptyArray:
		s.answer(w, in, reply{status: codeOr(f.Code, http.StatusOK), body: []byte("[]")})
	case Stale:
		s.answer(w, in, reply{status: codeOr(f.Code, http.StatusOK), body: s.stale(in)})
	case Delay, DoThenHang, LateReply, LostReply, DoThenStatus, Refuse, StalledBody, Garbage:
	}
}

// answerFault answers the fault's status and body, or an error body that fits the status.
func (s *Sim) answerFault(w http.ResponseWriter, in *inbound, status int, body string) {
	status = codeOr(in.fault.Code, status)
	if in.fault.ContentType != "" {
		w.Header().Set("Content-Type", in.fault.ContentType)
	}
	if body == "" {
		code := "FAILED_INTERNAL_SYSTEM_PROCESSING"
		if status == http.StatusTooManyRequests {
			code = "TOO_MANY_REQUESTS" // The real code of a 429 is not documented.
		}
		body = string(errorBody(code, in.english()))
	}
	s.answer(w, in, reply{status: status, body: []byte(body)})
}

// answerHalf sends half of the true reply: as if it were all, or as the beginning of something that never ends.
func (s *Sim) answerHalf(w http.ResponseWriter, r *http.Request, in *inbound, out reply) {
	body := out.body
	if body == nil {
		body = bodyOf(out, in)
	}
	half := body[:len(body)/2]
	if in.fault.Kind == Garbage {
		s.answer(w, in, reply{status: out.status, body: half})
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	s.noteStatus(in, out.status)
	w.WriteHeader(out.status)
	write(w, half)
	_ = http.NewResponseController(w).Flush() // A recorder in a test that cannot flush has the half all the same.
	s.hold(r, in)
	drop(w, false)
}

// stale returns what an out-of-date replica of the gateway would answer.
func (s *Sim) stale(in *inbound) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.payments[in.call.PaymentKey]
	switch {
	case in.fault.Payment != nil:
		return in.fault.Payment
	case p == nil:
		return errorBody("NOT_FOUND_PAYMENT", in.english())
	case p.previous != nil:
		return p.previous
	}
	return p.raw
}

// pause waits in real time, unless the simulator heals or closes first. That the caller has left does not shorten it: the
// gateway would not notice either.
func (s *Sim) pause(d time.Duration, healed <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-healed:
	case <-s.life.Done():
	}
}

// hold keeps a request open: until Heal or Close, or for four minutes of the simulator's clock after its caller has left.
func (s *Sim) hold(r *http.Request, in *inbound) {
	s.addHeld(1)
	defer s.addHeld(-1)
	select {
	case <-in.healed:
		return
	case <-s.life.Done():
		return
	case <-r.Context().Done():
	}
	select {
	case <-in.healed:
	case <-s.life.Done():
	case <-s.clock.After(holdAfterLeaving):
	}
}

func (s *Sim) addHeld(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += n
}

// drop ends the connection without a reply: in an orderly way, or with a reset.
func drop(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // Not a connection of HTTP/1.1; the server cuts it off.
	}
	if lingerer, ok := conn.(interface{ SetLinger(sec int) error }); ok && reset {
		_ = lingerer.SetLinger(0) // Without it the caller sees an orderly end, which is a fault too.
	}
	_ = conn.Close() // It is gone either way.
}

func codeOr(code, otherwise int) int {
	if code != 0 {
		return code
	}
	return otherwise
}
