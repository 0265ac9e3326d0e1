package capacity

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"
)

func TestPattern_PutsEveryNameIn(t *testing.T) {
	t.Parallel()
	m := model{names: map[name]string{
		orderName: "order-1", keyName: "tkey_1", captureName: "txrd_1", cancelName: "txrd_2", customerName: "buyer", transmissionName: "",
	}}
	got := m.patternOf([]byte(`{"orderId":"order-1","cancels":[{"transactionKey":"txrd_2"}],"last":"txrd_2","key":"tkey_1"}`)).of(7)
	want := `{"orderId":"100000000000000007","cancels":[{"transactionKey":"400000000000000007"}],"last":"400000000000000007","key":"200000000000000007"}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPlace: what stands for a parameter is the same text for the recorded payment, and leaves pgbench no colon to take
// for a variable.
func TestPlace(t *testing.T) {
	t.Parallel()
	marks := slices.Concat(marksOf(7), marksOfEvents([]string{"evt_abc"}))
	for _, test := range []struct{ name, text, kind, want, given string }{
		{"the same for all", "it's :so", "text", `(:v::text)`, "it's :so"},
		{"nothing", "", "text", `(''::text)`, ""},
		{"a name", keyName.of(7), "text", `((:name_2::text)::text)`, ""},
		{"in a list", "{" + cancelName.of(7) + "}", "text[]", `((E'{' || :name_4::text || E'}')::text[])`, ""},
		{"in JSON", `{"a":true,"b":"\\x` + keyName.of(7) + `"}`, "jsonb", `((E'{"a"\072true,"b"\072"\\\\x' || :name_2::text || E'"}')::jsonb)`, ""},
		{"an event", `{"evt_abc"}`, "text[]", `((E'{"evt_00000001' || :name_1::text || E'"}')::text[])`, ""},
	} {
		w := &writer{marks: marks, defines: map[string]string{}}
		if got := w.place("v", test.text, test.kind); got != test.want || w.defines["v"] != test.given {
			t.Errorf("%s: got %s and %q, want %s and %q", test.name, got, w.defines["v"], test.want, test.given)
		}
	}
}

// TestRecorder_Notes reads a transaction off the line: what travelled together is one turn.
func TestRecorder_Notes(t *testing.T) {
	t.Parallel()
	l := &line{order: new(atomic.Int64), prepared: map[string]string{}}
	say := func(messages ...pgproto3.FrontendMessage) {
		t.Helper()
		var sent []byte
		for _, m := range messages {
			encoded, err := m.Encode(nil)
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, encoded...)
		}
		for in := bufio.NewReader(bytes.NewReader(sent)); ; {
			kind, message, err := readMessage(in, true)
			if err != nil {
				break
			}
			l.note(kind, message[5:])
		}
		l.asking = false // it was answered
	}
	say(&pgproto3.Parse{Name: "b", Query: "begin"}, &pgproto3.Parse{Name: "s", Query: "SELECT $1"}, &pgproto3.Sync{})
	l.seen, l.turn = nil, 0
	l.order.Store(0)
	say(&pgproto3.Bind{PreparedStatement: "b"}, &pgproto3.Execute{},
		&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("pk_1"), nil, {}}, ParameterFormatCodes: []int16{1}}, &pgproto3.Execute{},
		&pgproto3.Sync{})
	say(&pgproto3.Query{String: "commit"})
	want := []statement{
		{sql: "begin", turn: 1, order: 1},
		{sql: "SELECT $1", values: [][]byte{[]byte("pk_1"), nil, {}}, binary: []bool{true, true, true}, turn: 1, synced: true, order: 2},
		{sql: "commit", turn: 2, synced: true, order: 3},
	}
	if diff := cmp.Diff(want, l.seen, cmp.AllowUnexported(statement{})); diff != "" {
		t.Error(diff)
	}
	all := transactions(append([]statement{{sql: "SELECT 1"}}, l.seen...))
	if len(all) != 2 || all[0].whole || !all[1].whole || all[1].trips() != 2 || !all[1].mentions([]mark{{text: "k_1"}}) || all[0].mentions([]mark{{text: "k_1"}}) {
		t.Errorf("got %+v", all)
	}
}

// TestStory_IsOneNotice: jobs that deliver its events are left out, and a recording with anything else in it is of no use.
func TestStory_IsOneNotice(t *testing.T) {
	t.Parallel()
	own, events := []mark{{text: "pk_1"}}, []mark{{text: "evt_1"}}
	at := func(order int64, sql string, values ...string) statement {
		s := statement{sql: sql, order: order, turn: int(order)}
		for _, v := range values {
			s.values = append(s.values, []byte(v))
		}
		return s
	}
	limit, store := at(1, "INSERT INTO rate_limits"), at(2, "INSERT INTO deliveries", "pk_1")
	apply := []statement{at(3, "begin"), at(4, "UPDATE payments", "pk_1"), at(5, "INSERT INTO events", "evt_1"), at(6, "commit")}
	notice := func(more ...statement) []statement { return slices.Concat([]statement{store}, apply, more) }
	for name, lines := range map[string][][]statement{
		"nothing else":                {{limit}, notice()},
		"somebody else's payment":     {{limit}, append([]statement{at(1, "SELECT 1", "pk_2")}, notice()...)},
		"a job of its event":          {{limit}, notice(), {at(7, "SELECT facts FROM events", "evt_1"), at(8, "UPDATE events", "evt_1")}},
		"the same on the same line":   {{limit}, notice(at(7, "SELECT facts FROM events", "evt_1"))},
		"a job within a transaction":  {{limit}, notice(), {at(7, "begin"), at(8, "UPDATE events", "evt_1"), at(9, "commit")}},
		"a job that has not finished": {{limit}, notice(), {at(7, "begin"), at(8, "UPDATE events", "evt_1")}},
	} {
		s, err := storyOf(lines, own, events)
		if err != nil || s.statements() != 6 || s.trips != 6 {
			t.Errorf("%s: got %d statements in %d trips and %v", name, s.statements(), s.trips, err)
		}
	}
	for name, lines := range map[string][][]statement{
		"no limit":                        {notice()},
		"two limits":                      {{limit, limit}, notice()},
		"not applied":                     {{limit}, {store, apply[0], apply[1]}},
		"kept twice":                      {{limit}, notice(at(7, "INSERT INTO deliveries", "pk_1"))},
		"read after the commit":           {{limit}, notice(at(7, "SELECT 1 FROM payments", "pk_1"))},
		"an event before the commit":      {{limit}, notice(), {at(5, "SELECT facts FROM events", "evt_1")}},
		"an event and the payment":        {{limit}, notice(), {at(7, "UPDATE events", "evt_1", "pk_1")}},
		"applied twice":                   {{limit}, notice(apply...)},
		"a transaction before the commit": {{limit}, notice(), {at(4, "begin"), at(5, "UPDATE events", "evt_1"), at(7, "commit")}},
	} {
		if s, err := storyOf(lines, own, events); !errors.Is(err, errMixed) {
			t.Errorf("%s: got %+v and %v, want %v", name, s, err, errMixed)
		}
	}
}

// TestCosts_Busy: no more of processors can have been used than there were, and each process is read to two ticks.
func TestCosts_Busy(t *testing.T) {
	t.Parallel()
	began := time.Now()
	all := time.Duration(cores()) * time.Second
	for _, test := range []struct {
		load time.Duration
		fits bool
	}{{all, true}, {all + 4*statTick, true}, {all + 4*statTick + 1, false}} {
		c := costs{began: began, ended: began.Add(time.Second), processes: 2, service: all / 2, load: test.load - all/2, wall: time.Millisecond}
		if used, most := c.busy(); (used <= most) != test.fits {
			t.Errorf("got %s of %s used, want it to fit: %v", used, most, test.fits)
		}
	}
}

// TestServer_Processor: what a process has used counts once, also when it has ended.
func TestServer_Processor(t *testing.T) {
	t.Parallel()
	own := server{postmaster: os.Getppid()} // whose child we are
	before, processes, err := own.processor()
	if err != nil || processes < 2 {
		t.Fatalf("got %d processes and %v, want the first and ourselves", processes, err)
	}
	after, _, err := own.processor()
	if err != nil || after < before {
		t.Errorf("got %s after %s and %v", after, before, err)
	}
}

func TestReadMessage_Bounds(t *testing.T) {
	t.Parallel()
	huge := binary.BigEndian.AppendUint32([]byte("Q"), 1<<31)
	if _, _, err := readMessage(bufio.NewReader(bytes.NewReader(huge)), true); err == nil || errors.Is(err, bufio.ErrBufferFull) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestReadOutcome(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n{\"outcome\":\"applied_full\"}":       "applied_full",
		"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}":                     "429 {}",
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 15\r\n\r\n{\"outcome\":\"x\"}": `503 {"outcome":"x"}`,
	} {
		got, err := readOutcome(bufio.NewReader(strings.NewReader(answer)))
		if err != nil || got != want {
			t.Errorf("got %q and %v, want %q", got, err, want)
		}
	}
}
