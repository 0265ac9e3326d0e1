package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// What a run may not exceed: the lab shows shapes, it is not for loading a machine.
const (
	requestsMax = 200_000
	workersMax  = 4_000 // requests under way at once; what is due beyond that is sent late, and the lateness is told
	loadMax     = 10 * time.Minute
)

// Request is one request of a stream.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Stream is requests of one kind at a constant rate.
type Stream struct {
	Name     string
	Method   string
	Route    string  // as the service's metrics name it
	Rate     float64 // a second
	Requests int
	Patience time.Duration // after which the client hangs up
	Make     func(n int) Request
	// Split is how many of each sum go to the first instance, to the second and so on; nil sends to them in turn.
	Split []int
}

// Over is the time in which the requests are due.
func (s Stream) Over() time.Duration { return s.at(s.Requests) }

// at is when a request is due, after the load began.
func (s Stream) at(n int) time.Duration {
	return time.Duration(float64(n) / s.Rate * float64(time.Second))
}

// Sent is one request and its answer, as the client sees it.
type Sent struct {
	N      int
	Due    time.Duration // after the load began
	Late   time.Duration // how much later it was really sent
	Took   time.Duration // from the instant it was due to the last byte
	Status int           // 0 when no answer came
	Word   string        // what the answer says: outcome, problem code or status of the payment
	Later  bool          // it says when to come again
	Err    string
}

// Ended is when the answer came.
func (s Sent) Ended() time.Duration { return s.Due + s.Took }

// Sending is a stream and what came of it, in the order in which it was sent.
type Sending struct {
	Stream

	Sent []Sent
}

// attack sends all streams at once to the instances in turn, and waits for every answer. When ctx ends no more are
// begun. Each stream has an attacker of its own: one that has attacked once sends nothing any more.
func attack(ctx context.Context, urls []string, streams []Stream) ([]Sending, error) {
	requests := 0
	for _, s := range streams {
		requests += s.Requests
		if s.Over() > loadMax || s.Rate <= 0 || s.Patience <= 0 {
			return nil, fmt.Errorf("stream %s: a load has a rate, patience, and ends within %s", s.Name, loadMax)
		}
	}
	if requests > requestsMax {
		return nil, fmt.Errorf("a load of %d requests is above %d", requests, requestsMax)
	}
	all := make([]Sending, len(streams))
	var under sync.WaitGroup
	for n, s := range streams {
		under.Go(func() { all[n] = Sending{s, s.send(ctx, urls)} })
	}
	under.Wait()
	return all, ctx.Err()
}

// send is the attack of one stream.
func (s Stream) send(ctx context.Context, urls []string) []Sent {
	client := newClient(s.Patience)
	defer client.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.MaxWorkers(workersMax))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	pace := &pacer{stream: s, over: func() bool { return ctx.Err() != nil }}
	sent := make([]Sent, 0, s.Requests)
	for r := range attacker.Attack(s.targeter(urls), pace, 0, "") {
		sent = append(sent, s.sent(r, pace.began))
	}
	return sent
}

// sent is a result as it is kept: its time counts from the instant at which it was due.
func (s Stream) sent(r *vegeta.Result, began time.Time) Sent {
	due := s.at(int(r.Seq)) //nolint:gosec // bounded by Requests
	at := r.Timestamp.Sub(began)
	return Sent{
		N: numberOf(r.URL), Due: due, Late: max(0, at-due), Took: at + r.Latency - due,
		Status: statusOf(r), Word: word(r.Body), Later: r.Headers.Get("Retry-After") != "", Err: r.Error,
	}
}

// statusOf is the status of an answer that arrived whole.
func statusOf(r *vegeta.Result) int {
	if r.Code == 0 || (r.Error != "" && r.Code < http.StatusBadRequest) {
		return 0
	}
	return int(r.Code)
}

// targeter hands out the stream's requests in their order. The number of a request is the fragment of its address,
// which is not sent but comes back with the result.
func (s Stream) targeter(urls []string) vegeta.Targeter {
	var next atomic.Int64
	return func(t *vegeta.Target) error {
		n := int(next.Add(1)) - 1
		made := s.Make(n)
		t.Method, t.Header, t.Body = s.Method, made.Header, made.Body
		t.URL = urls[s.instance(n, len(urls))] + made.Path + "#" + strconv.Itoa(n)
		return nil
	}
}

// instance is the one that a request is sent to, of so many.
func (s Stream) instance(n, of int) int {
	if s.Split == nil {
		return n % of
	}
	sum := 0
	for _, part := range s.Split {
		sum += part
	}
	n %= sum
	for one, part := range s.Split {
		if n -= part; n < 0 {
			return one
		}
	}
	return 0
}

func numberOf(address string) int {
	at, err := url.Parse(address)
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(at.Fragment)
	if err != nil {
		return -1
	}
	return n
}

// word reads the one word of an answer that says what came of the request.
func word(body []byte) string {
	var says struct {
		Outcome string          `json:"outcome"`
		Code    string          `json:"code"`
		Status  json.RawMessage `json:"status"`
	}
	if json.Unmarshal(body, &says) != nil {
		return ""
	}
	if says.Outcome != "" {
		return says.Outcome
	}
	if says.Code != "" {
		return says.Code
	}
	var status string
	_ = json.Unmarshal(says.Status, &status) // a problem's status is a number
	return status
}

// pacer is the open loop: a request is due at its instant, whatever became of those before it.
type pacer struct {
	stream Stream
	over   func() bool // nobody wants the rest any more
	began  time.Time
}

// Pace says how long until the next request is due.
func (p *pacer) Pace(elapsed time.Duration, sent uint64) (time.Duration, bool) {
	if p.began.IsZero() {
		p.began = time.Now().Add(-elapsed)
	}
	n := int(sent) //nolint:gosec // bounded by Requests
	return max(0, p.stream.at(n)-elapsed), n >= p.stream.Requests || p.over()
}

// Rate is the constant rate.
func (p *pacer) Rate(time.Duration) float64 { return p.stream.Rate }
