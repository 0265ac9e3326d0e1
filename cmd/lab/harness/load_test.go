package harness

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func stream(n int, rate float64) Stream {
	return Stream{
		Name: "confirms", Method: http.MethodGet, Route: "/", Rate: rate, Requests: n, Patience: 10 * time.Second,
		Make: func(int) Request { return Request{Path: "/"} },
	}
}

// TestAttack_IsAnOpenLoop: no answer comes before the last request has arrived, and still all are sent, each once.
func TestAttack_IsAnOpenLoop(t *testing.T) {
	t.Parallel()
	const n = 60
	arrived, all := make(chan struct{}, n), make(chan struct{})
	go func() {
		for range n {
			<-arrived
		}
		close(all)
	}()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Fragment != "" {
			t.Error("the number of the request was sent")
		}
		arrived <- struct{}{}
		<-all
		_, _ = w.Write([]byte(`{"status":"done"}`))
	}))
	t.Cleanup(server.Close)
	load, err := attack(t.Context(), []string{server.URL}, []Stream{stream(n, 500)})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, s := range load[0].Sent {
		seen[s.N] = true
		if s.Status != http.StatusOK || s.Word != "done" {
			t.Errorf("got %+v", s)
		}
	}
	if most, mean := load[0].Overlap(); len(seen) != n || most != n || mean > n {
		t.Errorf("got %d requests, %d at once, %.1f on average; want %d of each", len(seen), most, mean, n)
	}
}

// TestAttack_TurnsToEveryInstance: requests go to the instances in turn.
func TestAttack_TurnsToEveryInstance(t *testing.T) {
	t.Parallel()
	counts := make([]chan struct{}, 3)
	urls := make([]string, 3)
	for i := range counts {
		counts[i] = make(chan struct{}, 100)
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { counts[i] <- struct{}{} }))
		t.Cleanup(server.Close)
		urls[i] = server.URL
	}
	if _, err := attack(t.Context(), urls, []Stream{stream(9, 1000)}); err != nil {
		t.Fatal(err)
	}
	for i, c := range counts {
		if len(c) != 3 {
			t.Errorf("instance %d got %d of 9 requests", i, len(c))
		}
	}
}

// TestAttack_IsBounded: what could load a machine is refused before anything is sent, and an end is an end.
func TestAttack_IsBounded(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Stream{
		"too many": stream(requestsMax+1, 1e6), "too long": stream(10_000, 1), "no rate": stream(1, 0), "no patience": {Rate: 1, Requests: 1},
	} {
		if _, err := attack(t.Context(), []string{"http://127.0.0.1:1"}, []Stream{s}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	t.Cleanup(server.Close)
	load, err := attack(ctx, []string{server.URL}, []Stream{stream(50, 0.4)})
	if err == nil || len(load[0].Sent) > 2 {
		t.Errorf("got %d requests after the end (%v)", len(load[0].Sent), err)
	}
}

// TestStream_CountsFromTheInstantDue: a request that was sent late took longer, by as much.
func TestStream_CountsFromTheInstantDue(t *testing.T) {
	t.Parallel()
	began := time.Now()
	r := &vegeta.Result{
		Seq: 3, Timestamp: began.Add(350 * time.Millisecond), Latency: 20 * time.Millisecond, Code: 503,
		URL: "http://127.0.0.1/v1/payments/confirm#7", Body: []byte(`{"status":503,"code":"gateway_busy"}`),
	}
	want := Sent{N: 7, Due: 300 * time.Millisecond, Late: 50 * time.Millisecond, Took: 70 * time.Millisecond, Status: 503, Word: "gateway_busy"}
	if got := stream(10, 10).sent(r, began); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	r.Code, r.Error = 200, "unexpected EOF"
	if got := stream(10, 10).sent(r, began); got.Status != 0 {
		t.Errorf("an answer that broke off counts as %d", got.Status)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m, err := ReadMetrics([]byte(`# HELP x of something
x_total{path="confirm",reason="cap"} 3
x_total{path="confirm",reason="breaker"} 4
x_total{path="query",reason="cap"} 5
x_bucket{route="/v1/{id}",le="1"} 2
go_goroutines 17
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{12, "x_total", nil},
		{7, "x_total", []string{"path", "confirm"}},
		{3, "x_total", []string{"reason", "cap", "path", "confirm"}},
		{0, "x_total", []string{"path", "con"}},
		{2, "x_bucket", []string{"le", "1", "route", "/v1/{id}"}},
		{17, "go_goroutines", nil},
	} {
		if got := m.Of(test.name, test.labels...); got != test.want {
			t.Errorf("%s %v: got %v, want %v", test.name, test.labels, got, test.want)
		}
	}
	if len(m.Missing()) != 0 {
		t.Errorf("got %v missing, want none", m.Missing())
	}
	m.Of("x_totals")
	if len(m.Missing()) != 1 {
		t.Errorf("got %v missing, want the name that nobody exports", m.Missing())
	}
	since := m.plus(m).minus(m)
	if got := since.Of("x_total"); got != 12 {
		t.Errorf("twice less once is %v, want 12", got)
	}
}

// TestUsageOf: the system knows this very process.
func TestUsageOf(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	used, err := usageOf(os.Getpid())
	if err != nil || used.resident < 1<<20 || used.sockets < 1 {
		t.Errorf("got %+v: %v", used, err)
	}
	if now, err := machineNow(); err != nil || now.all <= now.idle {
		t.Errorf("got %+v: %v", now, err)
	}
}

func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://[::1]:8080": true,
		"http://10.0.0.1": false, "https://api.tosspayments.com": false, "http://localhost.example": false, "::": false,
	} {
		if err := LoopbackOnly(address); (err == nil) != want {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

// TestSending_Under counts who was under way in a stretch of time, whenever they began.
func TestSending_Under(t *testing.T) {
	t.Parallel()
	s := Sending{Sent: []Sent{
		{Due: 0, Took: 10 * time.Second},
		{Due: 2 * time.Second, Took: time.Second},
		{Due: 4 * time.Second, Late: time.Second, Took: 2 * time.Second}, // from 5 s to 6 s
	}}
	for _, test := range []struct {
		from, to time.Duration
		want     int
	}{
		{time.Second, 1500 * time.Millisecond, 1},
		{time.Second, 2500 * time.Millisecond, 2},
		{3500 * time.Millisecond, 4500 * time.Millisecond, 1},
		{5500 * time.Millisecond, 5600 * time.Millisecond, 2},
		{11 * time.Second, 12 * time.Second, 0},
	} {
		if got := s.Under(test.from, test.to); got != test.want {
			t.Errorf("%s to %s: got %d, want %d", test.from, test.to, got, test.want)
		}
	}
}

// TestStream_Instance: requests go to the instances in turn, or as they are split.
func TestStream_Instance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		split []int
		want  [3]int
	}{{nil, [3]int{20, 20, 20}}, {[]int{16, 3, 1}, [3]int{48, 9, 3}}} {
		var got [3]int
		for n := range 60 {
			got[Stream{Split: test.split}.instance(n, 3)]++
		}
		if got != test.want {
			t.Errorf("split %v: got %v, want %v", test.split, got, test.want)
		}
	}
}
