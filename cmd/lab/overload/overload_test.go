package overload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"daesa/cmd/lab/harness"
	"daesa/cmd/lab/report"
	"daesa/pgclient/tosssim"
)

// TestForge: the notice says canceled, in the gateway's own form, of a payment that is not.
func TestForge(t *testing.T) {
	t.Parallel()
	approval := tosssim.Notice{TransmissionID: "a", Body: []byte(`{"eventType":"PAYMENT_STATUS_CHANGED","data":{"paymentKey":"pk","status":"DONE","totalAmount":5000,"balanceAmount":5000,"cancels":null}}`)}
	made, err := forge(approval, 7)
	if err != nil {
		t.Fatal(err)
	}
	var event struct {
		Data struct {
			PaymentKey, Status string
			BalanceAmount      int
			Cancels            []struct {
				TransactionKey string
				CancelAmount   int
			}
		}
	}
	if err := json.Unmarshal(made.Body, &event); err != nil {
		t.Fatal(err)
	}
	d := event.Data
	if d.PaymentKey != "pk" || d.Status != "CANCELED" || d.BalanceAmount != 0 || len(d.Cancels) != 1 || d.Cancels[0].CancelAmount != 5000 {
		t.Errorf("got %+v", d)
	}
	if made.TransmissionID == approval.TransmissionID {
		t.Error("it has the id of the true one")
	}
}

// TestBurst_Predicted: what a bucket admits is its size and what refills until the last arrival.
func TestBurst_Predicted(t *testing.T) {
	t.Parallel()
	size := burst{over: 30 * time.Second}
	for _, test := range []struct{ notices, limit, want int }{{200, 100, 149}, {200, 300, 200}, {1500, 300, 449}} {
		if got := size.predicted(burstTry{notices: test.notices, limit: test.limit}); got != test.want {
			t.Errorf("%d at %d a minute: got %d, want %d", test.notices, test.limit, got, test.want)
		}
	}
}

// TestBurst_SharesWouldShow: instances that count alone, each with its share, let another number pass than one bucket does.
func TestBurst_SharesWouldShow(t *testing.T) {
	t.Parallel()
	size := burstOf(false)
	for _, try := range size.tries {
		if try.instances == 1 {
			continue
		}
		sum, alone := 0, 0
		for _, part := range try.split {
			sum += part
		}
		for _, part := range try.split {
			own := try.notices * part / sum
			alone += min(own, size.predicted(burstTry{notices: own, limit: try.limit / try.instances}))
		}
		if one := size.predicted(try); alone*10 > one*9 {
			t.Errorf("%s: %d pass with shares, %d with one bucket: that shows nothing", try.name, alone, one)
		}
	}
}

// TestBrownoutRun_Predicted: 84 % at 5 s, as they found, and none where the cap is enough. What an approval took is measured
// of those that were approved.
func TestBrownoutRun_Predicted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		took time.Duration
		want string
	}{{5 * time.Second, "84.0 %"}, {3 * time.Second, "73.3 %"}, {time.Second, "20.0 %"}, {500 * time.Millisecond, "0.0 %"}} {
		confirms := harness.Sending{Stream: harness.Stream{Name: "confirms", Rate: 50}, Sent: []harness.Sent{
			{Took: test.took, Status: 200, Word: "done"}, {Took: time.Millisecond, Status: 503, Word: "gateway_busy"},
		}}
		run := brownoutRun{Observed: harness.Observed{Load: []harness.Sending{confirms}}, slots: 40}
		if got := percent(run.predicted()); got != test.want {
			t.Errorf("%s: got %s, want %s", test.took, got, test.want)
		}
		if run.refused() != 1 || run.share() != 0.5 {
			t.Errorf("got %d refused, a share of %v; want 1 of 2", run.refused(), run.share())
		}
	}
}

// TestSizes: every size of a run fits the harness's own checks: it lasts at least three times the latency, and a multiple.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		b := brownoutOf(quick)
		for _, latency := range b.latencies {
			if latency > 0 && (b.over < 3*latency || b.over%latency != 0) {
				t.Errorf("brownout, quick %v: %s is no multiple of %s", quick, b.over, latency)
			}
		}
		w, d, f, s, c := webhooksOf(quick), debtOf(quick), floodOf(quick), stormOf(quick), comebackOf(quick)
		for name, times := range map[string][2]time.Duration{
			"webhooks": {w.over, w.latency}, "debt": {d.over, d.latency}, "flood": {f.over, f.latency}, "storm": {s.over, s.latency},
			"comeback": {c.over, c.latency}, "comeback, before it": {c.calm, c.latency},
		} {
			if times[0] < 3*times[1] || times[0]%times[1] != 0 {
				t.Errorf("%s, quick %v: %s is no multiple of %s", name, quick, times[0], times[1])
			}
		}
		if d.short >= d.latency || d.long <= d.latency {
			t.Errorf("debt, quick %v: the limits %s and %s do not lie on both sides of %s", quick, d.short, d.long, d.latency)
		}
	}
}

// TestKindOf: of ten notices six are ignored, two are duplicates, two are cancels.
func TestKindOf(t *testing.T) {
	t.Parallel()
	counts := make(map[noticeKind]int)
	for n := range 10 {
		counts[kindOf(n)]++
	}
	if got := fmt.Sprint(counts[noticeIgnored], counts[noticeDuplicate], counts[noticeCancel]); got != "6 2 2" {
		t.Errorf("got %s", got)
	}
}

// TestSteady: what is owed may rise until it is known, and then falls until it is gone.
func TestSteady(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		owed []int
		want bool
	}{
		{"known at once", []int{600, 300, 100, 0}, true},
		{"known later", []int{0, 600, 300, 40}, true},
		{"nothing", []int{0, 0, 0}, true},
		{"a few more", []int{600, 300, 320, 0}, true},
		{"rises again", []int{600, 300, 400, 0}, false},
		{"stays", []int{600, 600, 600, 600}, false},
	} {
		if got := steady(test.owed); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// TestComeback_Together: each notice comes as often as it should, each time as one that was sent once more.
func TestComeback_Together(t *testing.T) {
	t.Parallel()
	sent, retried := comeback{cancels: 3, each: 2}.together([]tosssim.Notice{{PaymentKey: "a"}, {PaymentKey: "b"}, {PaymentKey: "c"}})
	counts := make(map[string]int)
	for n, notice := range sent {
		counts[notice.PaymentKey]++
		if retried[n] != counts[notice.PaymentKey] {
			t.Errorf("delivery %d of %s says that it was sent %d times before", counts[notice.PaymentKey], notice.PaymentKey, retried[n])
		}
	}
	if got := fmt.Sprint(counts); got != "map[a:2 b:2 c:2]" {
		t.Errorf("got %s", got)
	}
}

// TestKeep_AsksLastForWhatNobodyExports: a claim that reads a wrong name after a run was kept is doubted all the same.
func TestKeep_AsksLastForWhatNobodyExports(t *testing.T) {
	t.Parallel()
	metrics, err := harness.ReadMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Result
	o := harness.Observed{Looks: []harness.Look{{}}, Since: harness.Snapshot{Metrics: metrics}}
	keep(&r, o)
	before := r.AllDoubts()
	if n := o.Since.Metrics.Count("daesa_store_questions_renamed"); n != 0 {
		t.Fatal(n)
	}
	if got := r.AllDoubts(); len(got) != len(before)+1 || !strings.Contains(got[len(got)-1], "exports no daesa_store_questions_renamed") {
		t.Errorf("got doubts %q, want one more than %q", got, before)
	}
}

// TestClaim502_OfNone: that no cancel was refused is no proof that it would have been refused in time.
func TestClaim502_OfNone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sent  []harness.Sent
		holds bool
	}{
		{[]harness.Sent{{Status: 200, Took: time.Second}}, false},
		{[]harness.Sent{{Status: 200, Took: time.Second}, {Status: 502, Took: 3 * time.Second}}, true},
		{[]harness.Sent{{Status: 502, Took: time.Second}, {Status: 502, Took: 4 * time.Second}}, false},
	} {
		var r report.Result
		claim502(&r, harness.Observed{Load: []harness.Sending{{Stream: harness.Stream{Name: "notices"}, Sent: test.sent}}}, 3300*time.Millisecond)
		if r.Claims[0].Holds != test.holds {
			t.Errorf("%+v: holds is %t, want %t", test.sent, r.Claims[0].Holds, test.holds)
		}
	}
}
