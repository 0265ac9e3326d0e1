package tosssim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const requestBodyMax = 1 << 20

// inbound is one request to the gateway while it is being answered.
type inbound struct {
	call     *Call
	act      func(*inbound) reply // What the address does.
	json     document             // The body of a POST; nil when it is not an object.
	user     string               // Who authenticated.
	testCode string
	trace    string
	fault    *Fault
	healed   <-chan struct{} // As of arrival: a later Heal closes it.
	bound    *bound
}

func (in *inbound) english() bool { return english(in.call.AcceptLanguage) }

// reply is what the gateway answers.
type reply struct {
	status int
	body   []byte
	code   string // Of a refusal, whose body is written in the caller's language.
	effect bool   // State changed.
	trace  string
}

func refuse(code string) reply { return reply{status: statusOf(code), code: code} }

// serveGateway answers one request of the vendor API: note it, do what a scripted fault wants, else process it.
func (s *Sim) serveGateway(w http.ResponseWriter, r *http.Request) {
	in := s.receive(r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("x-tosspayments-trace-id", in.trace)
	if in.call.IdempotencyKey != "" {
		w.Header().Set("idempotency-key", in.call.IdempotencyKey)
	}
	if in.fault != nil {
		s.misbehave(w, r, in)
		return
	}
	s.answer(w, in, s.process(in, 0))
}

// receive reads the request, notes it among the calls, and picks the fault that hits it.
func (s *Sim) receive(r *http.Request) *inbound {
	body, _ := io.ReadAll(io.LimitReader(r.Body, requestBodyMax))
	in := &inbound{
		testCode: r.Header.Get("TossPayments-Test-Code"),
		call: &Call{
			Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Body: body,
			IdempotencyKey: r.Header.Get("Idempotency-Key"), AcceptLanguage: r.Header.Get("Accept-Language"),
			Authorization: r.Header.Get("Authorization"),
		},
	}
	if r.Method == http.MethodPost {
		in.json, _ = parseDocument(body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.route(in)
	in.trace = fmt.Sprintf("%032x", s.next())
	in.call.At = s.clock.Now()
	s.calls = append(s.calls, in.call)
	in.fault, in.healed = s.pick(in.call), s.healed
	return in
}

// route finds out what the address does. Segments are split before they are unescaped, so a payment key that contains a
// slash stays a payment key.
func (s *Sim) route(in *inbound) {
	segments := strings.Split(strings.TrimPrefix(in.call.Path, "/"), "/")
	for i := range segments {
		if text, err := url.PathUnescape(segments[i]); err == nil {
			segments[i] = text
		}
	}
	call, method := in.call, http.MethodGet
	in.act = func(*inbound) reply { return refuse("NOT_FOUND") }
	switch {
	case slices.Equal(segments, []string{"v1", "payments", "confirm"}):
		call.Op, method = Confirm, http.MethodPost
		call.PaymentKey, call.OrderID = in.json.text("paymentKey"), in.json.text("orderId")
		in.act = s.confirm
	case slices.Equal(segments, []string{"v1", "transactions"}):
		call.Op, in.act = List, s.list
	case len(segments) < 3 || segments[0] != "v1" || segments[1] != "payments":
		return
	case len(segments) == 3:
		call.Op, call.PaymentKey, in.act = Get, segments[2], s.get
	case len(segments) == 4 && segments[2] == "orders":
		call.Op, call.OrderID, in.act = Get, segments[3], s.get
		if p := s.newest(call.OrderID); p != nil {
			call.PaymentKey = p.key
		}
	case len(segments) == 4 && segments[3] == "cancel":
		call.Op, call.PaymentKey, method = Cancel, segments[2], http.MethodPost
		in.act = s.cancel
	default:
		return
	}
	if call.Method != method {
		call.Op = ""
		in.act = func(*inbound) reply { return refuse("METHOD_NOT_ALLOWED") }
	}
}

// process is the gateway at work: who is it, is it a test code, was it answered before, and only then the act. A delay lies
// between the claim of the idempotency key and the act, so that a second request finds the first one running.
func (s *Sim) process(in *inbound, delay time.Duration) reply {
	s.mu.Lock()
	early, done := s.admit(in)
	s.mu.Unlock()
	if done {
		return early
	}
	s.pause(delay, in.healed)

	s.mu.Lock()
	defer s.mu.Unlock()
	out := in.act(in)
	out.body = bodyOf(out, in)
	s.settle(in, out)
	in.call.Effect = out.effect
	if out.effect {
		s.nudge()
	}
	return out
}

// admit decides what needs no look at payments.
func (s *Sim) admit(in *inbound) (reply, bool) {
	if code := s.authenticate(in); code != "" {
		return refuse(code), true
	}
	if early, done := s.claim(in); done {
		return early, true
	}
	isTest := strings.HasPrefix(s.cfg.SecretKey, "test_")
	if in.testCode != "" && isTest && (in.call.Op == Confirm || in.call.Op == Cancel) {
		in.act = func(*inbound) reply { return refuse(in.testCode) }
	}
	return reply{}, false
}

// authenticate checks the Basic credentials: the secret key as user, and an empty password after the colon.
func (s *Sim) authenticate(in *inbound) (code string) {
	if in.call.Authorization == "" {
		return "UNAUTHORIZED_KEY"
	}
	encoded, isBasic := strings.CutPrefix(in.call.Authorization, "Basic ")
	plain, err := base64.StdEncoding.DecodeString(encoded)
	user, _, hasColon := strings.Cut(string(plain), ":")
	if !isBasic || err != nil || !hasColon {
		return "INCORRECT_BASIC_AUTH_FORMAT"
	}
	if user != s.cfg.SecretKey {
		return "UNAUTHORIZED_KEY"
	}
	in.user = user
	return ""
}

// get answers GET /v1/payments/{paymentKey} and GET /v1/payments/orders/{orderId}, the latter with the order's newest.
func (s *Sim) get(in *inbound) reply {
	s.expireDue()
	p := s.payments[in.call.PaymentKey]
	if in.call.OrderID != "" {
		p = s.newest(in.call.OrderID)
	}
	if p == nil {
		return refuse("NOT_FOUND_PAYMENT")
	}
	body := p.raw
	if s.cfg.HideSecret {
		body = p.doc.with("secret", nil).bytes()
	}
	return reply{status: http.StatusOK, body: body}
}

// bodyOf writes the body in the caller's language.
func bodyOf(out reply, in *inbound) []byte {
	if out.code != "" {
		return errorBody(out.code, in.english())
	}
	if in.english() && in.call.Op != List {
		if doc, err := parseDocument(out.body); err == nil {
			return translated(doc).bytes()
		}
	}
	return out.body
}

func errorBody(code string, english bool) json.RawMessage {
	return encode(object("code", code, "message", messageOf(code, english)))
}

// answer writes a reply and notes its status.
func (s *Sim) answer(w http.ResponseWriter, in *inbound, out reply) {
	if out.trace != "" {
		w.Header().Set("x-tosspayments-trace-id", out.trace)
	}
	if out.body == nil {
		out.body = bodyOf(out, in)
	}
	s.noteStatus(in, out.status)
	w.WriteHeader(out.status)
	write(w, out.body)
}

// write sends a body as far as the caller still listens.
func write(w io.Writer, body []byte) {
	_, _ = w.Write(body)
}
