package capacity

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

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
	marks := marksOf(7, []string{"evt_abc"})
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
	l := &line{prepared: map[string]string{}}
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
	say(&pgproto3.Bind{PreparedStatement: "b"}, &pgproto3.Execute{},
		&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("pk_1"), nil, {}}, ParameterFormatCodes: []int16{1}}, &pgproto3.Execute{},
		&pgproto3.Sync{})
	say(&pgproto3.Query{String: "commit"})
	want := []statement{
		{sql: "begin", turn: 1},
		{sql: "SELECT $1", values: [][]byte{[]byte("pk_1"), nil, {}}, binary: []bool{true, true, true}, turn: 1, synced: true},
		{sql: "commit", turn: 2, synced: true},
	}
	if diff := cmp.Diff(want, l.seen, cmp.AllowUnexported(statement{})); diff != "" {
		t.Error(diff)
	}
	all := transactions(append([]statement{{sql: "SELECT 1"}}, l.seen...))
	if len(all) != 2 || all[0].whole || !all[1].whole || all[1].trips() != 2 || !all[1].mentions([]string{"k_1"}) || all[0].mentions([]string{"k_1"}) {
		t.Errorf("got %+v", all)
	}
}

// TestStory_RefusesWhatIsNotOneNotice: a recording with somebody else's work in it is of no use.
func TestStory_RefusesWhatIsNotOneNotice(t *testing.T) {
	t.Parallel()
	about := func(key string) [][]byte { return [][]byte{[]byte(key)} }
	limit := statement{sql: "INSERT INTO rate_limits"}
	store := statement{sql: "INSERT INTO deliveries", values: about("pk_1")}
	begin, write, commit := statement{sql: "begin"}, statement{sql: "UPDATE payments", values: about("pk_1"), turn: 1}, statement{sql: "commit", turn: 2}
	foreign := statement{sql: "SELECT 1", values: about("pk_2")}
	apply := []statement{begin, write, commit}
	s, err := storyOf([][]statement{{limit}, append([]statement{foreign, store}, apply...)}, []string{"pk_1"})
	if err != nil || s.statements() != 5 || s.trips != 5 {
		t.Errorf("got %d statements in %d trips and %v", s.statements(), s.trips, err)
	}
	for name, lines := range map[string][][]statement{
		"no limit":      {append([]statement{store}, apply...)},
		"two limits":    {{limit, limit}, append([]statement{store}, apply...)},
		"not applied":   {{limit}, {store, begin, write}},
		"a job as well": {{limit}, append([]statement{store}, apply...), {store}},
	} {
		if s, err := storyOf(lines, []string{"pk_1"}); err == nil {
			t.Errorf("%s: got %+v, want an error", name, s)
		}
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
