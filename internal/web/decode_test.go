package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type order struct {
	ID     string      `json:"id"`
	Amount json.Number `json:"amount"`
	Lines  []struct {
		Name string `json:"name"`
	} `json:"lines"`
}

func post(t *testing.T, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const limit = 200
	deep := strings.Repeat(`{"lines":`, depthMax+1) + "1" + strings.Repeat("}", depthMax+1)
	tests := []struct {
		name   string
		body   string
		want   error
		detail string // Part of what the caller is told.
	}{
		{"object", `{"id":"a","amount":1000}`, nil, ""},
		{"spaces around", " {\"id\":\"a\"}\r\n\t", nil, ""},
		{"escaped emoji", `{"id":"\ud83d\ude00"}`, nil, ""},
		{"replacement character meant", `{"id":"\ufffd�"}`, nil, ""},
		{"escaped backslash before u", `{"id":"\\ud800"}`, nil, ""},
		{"same name in two objects", `{"lines":[{"name":"x"},{"name":"x"}]}`, nil, ""},
		{"empty", ``, ErrBodyMalformed, "byte 0"},
		{"null", `null`, ErrBodyMalformed, "JSON object"},
		{"array", `[]`, ErrBodyMalformed, "JSON object"},
		{"text", `"x"`, ErrBodyMalformed, "JSON object"},
		{"byte order mark", "\ufeff{}", ErrBodyMalformed, "byte 1"},
		{"two objects", `{}{}`, ErrBodyMalformed, "byte 3"},
		{"trailing comma", `{"id":"a",}`, ErrBodyMalformed, "byte 11"},
		{"half an object", `{"id":"a`, ErrBodyMalformed, "byte 8"},
		{"unknown field", `{"idd":"a"}`, ErrBodyMalformed, `unknown field "idd"`},
		{"unknown field below", `{"lines":[{"nom":"a"}]}`, ErrBodyMalformed, `unknown field "nom"`},
		{"field twice", `{"id":"a","id":"b"}`, ErrBodyMalformed, `"id" appears twice`},
		{"field twice in another case", `{"amount":1,"aMount":2}`, ErrBodyMalformed, `"aMount" appears twice`},
		{"field twice with an escape", `{"id":"a","\u0069d":"b"}`, ErrBodyMalformed, `"id" appears twice`},
		{"field twice below", `{"lines":[{"name":"x","name":"y"}]}`, ErrBodyMalformed, `"name" appears twice`},
		{"wrong type", `{"id":1}`, ErrBodyMalformed, `field "id" cannot be a JSON number`},
		{"wrong type below", `{"lines":[{"name":{}}]}`, ErrBodyMalformed, `field "lines.name" cannot be a JSON object`},
		{"too deep", deep, ErrBodyMalformed, "deeper than 32"},
		{"bad UTF-8", "{\"id\":\"\xff\"}", ErrBodyMalformed, "UTF-8"},
		{"NUL", `{"id":"a\u0000b"}`, ErrBodyMalformed, "NUL"},
		{"NUL in a name", `{"a\u0000b":1}`, ErrBodyMalformed, "NUL"},
		{"high surrogate alone", `{"id":"\ud800"}`, ErrBodyMalformed, "surrogate"},
		{"low surrogate alone", `{"id":"\uDE00"}`, ErrBodyMalformed, "surrogate"},
		{"surrogates in the wrong order", `{"id":"\ude00\ud83d"}`, ErrBodyMalformed, "surrogate"},
		{"too large", `{"id":"` + strings.Repeat("a", limit) + `"}`, ErrBodyTooLarge, "200 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			limit := int64(limit)
			if tt.name == "too deep" {
				limit *= 10
			}
			_, err := Decode[order](post(t, tt.body), limit)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got error %v, want %v", err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), tt.detail) {
				t.Errorf("got detail %q, want it to contain %q", err, tt.detail)
			}
		})
	}
}

func TestDecode_Value(t *testing.T) {
	t.Parallel()
	got, err := Decode[order](post(t, `{"id":"주문","amount":50000}`), 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order{ID: "주문", Amount: "50000"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDecode_Headers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, contentType, encoding string
		want                        error
	}{
		{"plain", "application/json", "", nil},
		{"charset", `Application/JSON; charset="UTF-8"`, "", nil},
		{"none", "", "", nil},
		{"identity", "application/json", "identity", nil},
		{"form", "application/x-www-form-urlencoded", "", ErrUnsupportedMedia},
		{"other charset", "application/json; charset=euc-kr", "", ErrUnsupportedMedia},
		{"nonsense", ";;", "", ErrUnsupportedMedia},
		{"compressed", "application/json", "gzip", ErrUnsupportedMedia},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := post(t, `{"id":"a"}`)
			r.Header.Set("Content-Type", tt.contentType)
			r.Header.Set("Content-Encoding", tt.encoding)
			if _, err := Decode[order](r, 100); !errors.Is(err, tt.want) {
				t.Errorf("got error %v, want %v", err, tt.want)
			}
		})
	}
}

func TestCheckObject_Lenient(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		body string
		opts ScanOptions
		want bool
	}{
		{"duplicates allowed", `{"a":1,"a":2}`, ScanOptions{MaxDepth: 4, AllowDuplicateKeys: true}, true},
		{"bad UTF-8 allowed", "{\"a\":\"\xff\"}", ScanOptions{MaxDepth: 4, AllowInvalidUTF8: true}, true},
		{"NUL allowed", `{"a":"\u0000\ud800"}`, ScanOptions{MaxDepth: 4, AllowUnstorable: true}, true},
		{"depth counts arrays", `{"a":[[[1]]]}`, ScanOptions{MaxDepth: 4}, true},
		{"too deep", `{"a":[[[[1]]]]}`, ScanOptions{MaxDepth: 4}, false},
		{"closed ones do not count", `{"a":[{},{},{},[],[]],"b":{"c":1},"d":null}`, ScanOptions{MaxDepth: 3}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := CheckObject([]byte(tt.body), tt.opts); (err == nil) != tt.want {
				t.Errorf("got error %v, want accepted: %v", err, tt.want)
			}
		})
	}
}

// FuzzDecode checks that no body panics, that what is accepted means the same to the standard decoder, and that it
// says the same again when it is encoded and decoded once more.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","amount":1,"lines":[{"name":"x"}]}`, `{"id":"\ud83d\ude00"}`, `{"id":"\ud800"}`, `{"ID":"a","id":"b"}`,
		`null`, `[]`, `{}{}`, ``, `{"amount":1e400}`, "{\"id\":\"\xff\"}", `{"lines":[{},null]}`, `{"K":1,"K":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := Decode[order](post(t, string(body)), 1<<12)
		if err != nil {
			if !errors.Is(err, ErrBodyMalformed) && !errors.Is(err, ErrBodyTooLarge) {
				t.Fatalf("got error %v, want one of the sentinels", err)
			}
			return
		}
		var plain order
		if err := json.Unmarshal(body, &plain); err != nil {
			t.Fatalf("accepted %q, the decoder does not: %v", body, err)
		}
		if diff := cmp.Diff(plain, got); diff != "" {
			t.Fatalf("-plain +got:\n%s", diff)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsRune([]byte(got.ID), 0) {
			t.Fatalf("got a NUL in %q", got.ID)
		}
		if err := CheckObject(again, ScanOptions{MaxDepth: depthMax}); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
