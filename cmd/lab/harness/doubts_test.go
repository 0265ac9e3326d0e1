package harness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

// possible is a run of 40 confirms in 4 s in front of a gateway that takes a second: 30 approved, 10 refused by the cap.
func possible() Observed {
	s := Sending{Stream: stream(40, 10)}
	s.Route, s.Method = "/v1/payments/confirm", "POST"
	for n := range 40 {
		one := Sent{N: n, Due: s.at(n), Took: 1010 * time.Millisecond, Status: 200, Word: "done"}
		if n%4 == 3 {
			one.Took, one.Status, one.Word = 2*time.Millisecond, 503, "gateway_busy"
		}
		s.Sent = append(s.Sent, one)
	}
	text := ""
	for class, n := range map[string]int{"2xx": 30, "3xx": 0, "4xx": 0, "5xx": 10, "gone": 0} {
		labels := fmt.Sprintf(`method="POST",route="/v1/payments/confirm",status_class=%q`, class)
		text += fmt.Sprintf("daesa_web_request_seconds_count{%s} %d\n", labels, n)
		within := n
		if class == "2xx" {
			within = 0
		}
		text += fmt.Sprintf("daesa_web_request_seconds_bucket{%s,le=\"1\"} %d\n", labels, within)
		text += fmt.Sprintf("daesa_web_request_seconds_bucket{%s,le=\"10\"} %d\n", labels, n)
	}
	for result, n := range map[string]int{"approved": 30, "busy": 10, "down": 0, "unknown": 0} {
		text += fmt.Sprintf("daesa_checkout_confirms_total{result=%q} %d\n", result, n)
	}
	for path, n := range map[string]int{"confirm": 30, "cancel": 0, "query": 0, "recover": 2} {
		text += fmt.Sprintf("daesa_pgclient_answers_total{path=%q,result=\"ok\"} %d\n", path, n)
	}
	m, err := ReadMetrics([]byte(text + "daesa_admission_gate_shed_total{class=\"reading\"} 0\n"))
	if err != nil {
		panic(err)
	}
	look := Look{Goroutines: 90, Resident: 1 << 25, Sockets: 40, InFlight: map[string]int{"money": 10}}
	books := Snapshot{
		Metrics: m, Calls: map[tosssim.Op]int{tosssim.Confirm: 30, tosssim.Cancel: 0, tosssim.Get: 2, tosssim.List: 3},
		Captures: Money{30, 300_000}, GatewayCaptures: Money{30, 300_000}, Cancels: Money{2, 20_000}, GatewayCancels: Money{2, 20_000},
	}
	return Observed{
		Plan: Plan{Name: "gateway 1s", Latency: time.Second}, Arm: "cap", Wall: 5 * time.Second,
		Load: []Sending{s}, Looks: []Look{look, look},
		Since: books, After: books,
	}
}

func TestDoubts(t *testing.T) {
	t.Parallel()
	o := possible()
	if found := append(o.Doubts(), o.Unexported()...); len(found) > 0 {
		t.Fatalf("a possible run is doubted: %v", found)
	}
	set := func(series string, v float64) func(*Observed) {
		return func(o *Observed) {
			if _, known := o.Since.Metrics.series[series]; !known {
				panic(series)
			}
			o.Since.Metrics.series[series] = v
		}
	}
	tests := []struct {
		name   string
		change func(*Observed)
		want   string
	}{
		{"a gateway never called", func(o *Observed) { o.Since.Calls[tosssim.Confirm] = 0 }, "the gateway was never called"},
		{"fewer calls than approvals", func(o *Observed) { o.Since.Calls[tosssim.Confirm] = 29 }, "30 payments were approved by 29 calls"},
		{"a question that nobody asked", func(o *Observed) { o.Since.Calls[tosssim.Get] = 3 }, "3 calls to get arrived at the gateway and the service counts 2"},
		{"an approval that nobody sent", func(o *Observed) { o.Since.Calls[tosssim.Confirm] = 31 }, "31 calls to confirm arrived at the gateway and the service counts 30"},
		{"faster than the gateway", func(o *Observed) { o.Load[0].Sent[4].Took = 900 * time.Millisecond }, "approved after 900ms by a gateway that takes 1s"},
		{"a request not sent", func(o *Observed) { o.Load[0].Sent = o.Load[0].Sent[1:] }, "40 requests of confirms were wanted and 39 sent"},
		{"a request sent twice", func(o *Observed) { o.Load[0].Sent[1].N = 2 }, "came back twice"},
		{"a loop that was not open", func(o *Observed) { o.Load[0].Sent[4].Late = 3 * time.Second }, "the open loop could not be kept"},
		{"no multiple of the latency", func(o *Observed) { o.Latency = 900 * time.Millisecond }, "no multiple of the gateway's"},
		{"too few of the latency", func(o *Observed) { o.Latency = 2 * time.Second }, "no multiple of the gateway's"},
		{"an answer not counted", set(`daesa_web_request_seconds_count{method="POST",route="/v1/payments/confirm",status_class="5xx"}`, 9), "the client saw 10 answers 5xx"},
		{"another route counted", set(`daesa_web_request_seconds_count{method="POST",route="/v1/payments/confirm",status_class="4xx"}`, 5), "and the service counts 45"},
		{"late answers that the client did not see", set(`daesa_web_request_seconds_bucket{method="POST",route="/v1/payments/confirm",status_class="5xx",le="10"}`, 0), "past 10s, the client 0"},
		{"an approval not counted", set(`daesa_checkout_confirms_total{result="approved"}`, 28), "30 confirms that are approved, the service counts 28"},
		{"refusals of something else", set(`daesa_checkout_confirms_total{result="busy"}`, 0), "10 confirms that are busy, the service counts 0"},
		{"turned away and not told", set(`daesa_admission_gate_shed_total{class="reading"}`, 4), "turned away 0 times and the service counts 4"},
		{"a name that nobody exports", func(o *Observed) {
			for series := range o.Since.Metrics.series {
				if strings.HasPrefix(series, "daesa_checkout_confirms_total") {
					delete(o.Since.Metrics.series, series)
				}
			}
		}, "the service exports no daesa_checkout_confirms_total"},
		{"money that nobody looks for", func(o *Observed) { o.After.GatewayCaptures = Money{31, 310_000} }, "the gateway captured 31 of 310000 won"},
		{"money out of nothing", func(o *Observed) { o.After.Captures = Money{31, 310_000} }, "the books hold 31 of 310000 won"},
		{"other money", func(o *Observed) { o.After.Captures.Won++ }, "the books hold 30 of 300001 won"},
		{"a cancel out of nothing", func(o *Observed) { o.After.Cancels.Count = 3 }, "the gateway canceled 2 of 20000 won and the books hold 3"},
		{"another cancel", func(o *Observed) { o.After.Cancels.Won++ }, "the gateway canceled 2 of 20000 won and the books hold 2 of 20001"},
		{"more in flight than sent", func(o *Observed) { o.Looks[1].InFlight = map[string]int{"money": 90} }, "a look saw 90 requests in flight"},
		{"nobody looked", func(o *Observed) { o.Looks = nil }, "nobody looked"},
		{"a service that was not there", func(o *Observed) { o.Looks[0].Goroutines = 0 }, "a look saw no service"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := possible()
			test.change(&o)
			if found := strings.Join(append(o.Doubts(), o.Unexported()...), "\n"); !strings.Contains(found, test.want) {
				t.Errorf("got doubts %q, want one with %q", found, test.want)
			}
		})
	}
}

// TestDoubts_ARequestWithoutAnswer: what the client did not see may have happened, and no more than that.
func TestDoubts_ARequestWithoutAnswer(t *testing.T) {
	t.Parallel()
	o := possible()
	o.Load[0].Sent[0].Status, o.Load[0].Sent[0].Word = 0, ""
	if found := o.Doubts(); len(found) > 0 {
		t.Errorf("an approval that nobody read is doubted: %v", found)
	}
	o.Since.Metrics.series[`daesa_checkout_confirms_total{result="approved"}`] = 31
	if found := o.Doubts(); len(found) == 0 {
		t.Error("two more approvals than the clients saw pass, with one request unanswered")
	}
}

// TestDoubts_NoticesThatNobodyAskedAbout: what a notice comes to rests on the gateway's word, and takes as long as that.
func TestDoubts_NoticesThatNobodyAskedAbout(t *testing.T) {
	t.Parallel()
	run := func(took time.Duration) Observed {
		o := possible()
		notices := Sending{Stream: stream(40, 10), Sent: []Sent{{Status: 200, Word: "applied_full", Took: took}}}
		notices.Name = "notices"
		o.Load = append(o.Load, notices)
		o.Fault = Fault{Ops: []tosssim.Op{tosssim.Get}}
		o.Since.Outcomes = map[string]int{"applied_full": 1}
		return o
	}
	o := run(1010 * time.Millisecond)
	const unasked, early = "1 notices rest on the gateway's word, and it was asked 0 times", "notice 0 was applied_full after 990ms by the word of a gateway that takes 1s"
	if found := strings.Join(o.Doubts(), "\n"); strings.Contains(found, "rest on the gateway's word") || strings.Contains(found, "by the word of") {
		t.Errorf("a notice that was asked about is doubted: %s", found)
	}
	o.Since.Calls[tosssim.Get] = 0
	if found := strings.Join(o.Doubts(), "\n"); !strings.Contains(found, unasked) {
		t.Errorf("got doubts %q, want one with %q", found, unasked)
	}
	o = run(990 * time.Millisecond)
	if found := strings.Join(o.Doubts(), "\n"); !strings.Contains(found, early) {
		t.Errorf("got doubts %q, want one with %q", found, early)
	}
}

// TestDoubts_NoticesThatWereNotTaken: one that the database did not take has no row, and the metric knows of it.
func TestDoubts_NoticesThatWereNotTaken(t *testing.T) {
	t.Parallel()
	o := possible()
	notices := Sending{Stream: stream(40, 10), Sent: []Sent{{Status: 503, Word: "db_failed"}}}
	notices.Name = "notices"
	o.Load = append(o.Load, notices)
	const unseen = "the sender saw 1 answers db_failed and the metrics 0"
	if found := strings.Join(o.Doubts(), "\n"); !strings.Contains(found, unseen) {
		t.Errorf("got doubts %q, want one with %q", found, unseen)
	}
	o.Since.Metrics.series[`daesa_webhook_outcomes_total{outcome="db_failed"}`] = 1
	if found := strings.Join(o.Doubts(), "\n"); strings.Contains(found, "db_failed") {
		t.Errorf("a delivery that was not taken is doubted: %s", found)
	}
}
