package report

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpreadOf_TakesMeasuredTimes(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for n := 99; n >= 0; n-- {
		times = append(times, time.Duration(n)*time.Millisecond)
	}
	want := Spread{P50: 49 * time.Millisecond, P95: 94 * time.Millisecond, P99: 98 * time.Millisecond, Most: 99 * time.Millisecond}
	if diff := cmp.Diff(want, SpreadOf(times)); diff != "" {
		t.Errorf("spread (-want +got):\n%s", diff)
	}
	if one := SpreadOf([]time.Duration{time.Second}); one.P50 != time.Second || one.P95 != time.Second {
		t.Errorf("of one time: got %v", one)
	}
	if none := SpreadOf(nil); none != (Spread{}) {
		t.Errorf("of no time: got %v", none)
	}
}

// TestReport_Keep: every file that the document names is there, and says what was measured.
func TestReport_Keep(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := Report{Name: "brownout", File: "0000-brownout", Command: "lab run brownout", Setting: Setting{Version: "abc", Machine: "2 cores"}}
	r.Columns = []string{"", "they", "we"}
	r.Row("refused", "84.0 %", "84.1 %")
	r.Claim(true, "none is refused at 0 ms")
	r.ClaimTime(false, "p95 stays")
	r.Tables = []Table{
		{Of: "request", Packed: true, Rows: [][]string{{"took"}, {"1"}}},
		{Name: "watch", Of: "look at the service", Rows: [][]string{{"goroutines"}, {"7"}}},
	}
	r.Plots = []NamedPlot{{Name: "share", Plot: Plot{Title: "Refused", X: []string{"0", "1"}, Series: []Series{{"we", []float64{0, 20}}}}}}
	if err := r.Keep(folder); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(folder, "0000-brownout.results.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"[csv.gz](0000-brownout.results.csv.gz)", "[watch.csv](0000-brownout.results.watch.csv)", "version abc, 2 cores",
		"| refused | 84.0 % | 84.1 % |", "- holds: none", "- **refuted**: p95 stays", "0000-brownout.results.share.svg",
	} {
		if !strings.Contains(string(document), want) {
			t.Errorf("the document lacks %q:\n%s", want, document)
		}
	}
	for name, want := range map[string]string{"csv.gz": "took\n1\n", "watch.csv": "goroutines\n7\n", "share.svg": "Refused"} {
		content, err := os.ReadFile(filepath.Join(folder, "0000-brownout.results."+name))
		if err == nil && strings.HasSuffix(name, ".gz") {
			content, err = unpacked(content)
		}
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: got %q, want %q in it (%v)", name, content, want, err)
		}
	}
}

func unpacked(content []byte) ([]byte, error) {
	packed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(packed)
}

// TestResult_Refuted: a quick run is made on any machine, so its claims about time do not count.
func TestResult_Refuted(t *testing.T) {
	t.Parallel()
	var r Result
	r.Claim(true, "counted")
	r.ClaimTime(false, "timed")
	if _, refuted := r.Refuted(true); refuted {
		t.Error("a claim about time refutes a quick run")
	}
	if c, refuted := r.Refuted(false); !refuted || c.Text != "timed" {
		t.Errorf("got %v, want the claim about time refuted", c)
	}
	r.Claim(false, "miscounted")
	if c, refuted := r.Refuted(true); !refuted || c.Text != "miscounted" {
		t.Errorf("got %v, want the claim about counts refuted", c)
	}
}
