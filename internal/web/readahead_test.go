package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestReadAhead_LeavesTheBodyAsItWasSent: what comes after answers as it would have without.
func TestReadAhead_LeavesTheBodyAsItWasSent(t *testing.T) {
	t.Parallel()
	a, _ := newAdapter(t)
	work := Timeout(time.Minute)(a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		raw, err := ReadBody(r, 4)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	}))
	addr := serve(t, ServerConfig{Handler: ReadAhead(4)(work)})
	for _, test := range []struct {
		name, rest string
		want       int
	}{
		{"at the limit", "Content-Length: 4\r\n\r\nabcd", 200},
		{"no body", "\r\n", 200},
		{"declared too large", "Content-Length: 5\r\n\r\n", 413},
		{"chunked", "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n", 200},
		{"chunked too large", "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", 413},
		{"chunked without end", "Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n", 413},
		{"broken chunk", "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := exchange(t, addr, "POST / HTTP/1.1\r\nHost: x\r\n"+test.rest); got != test.want {
				t.Errorf("got status %d, want %d", got, test.want)
			}
		})
	}
}

// TestReadAhead_NothingBeginsBeforeTheBodyIsHere, and what does begin has a whole body, or the error that ended it.
func TestReadAhead_NothingBeginsBeforeTheBodyIsHere(t *testing.T) {
	t.Parallel()
	begun := make(chan string, 1)
	body, sender := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ReadAhead(10)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			raw, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			begun <- string(raw)
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
	}()
	for _, part := range []string{"ab", "cd"} {
		if _, err := io.Copy(sender, strings.NewReader(part)); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-begun:
			t.Fatalf("began with %q", got)
		default:
		}
	}
	if err := sender.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-begun; got != "abcd" {
		t.Errorf("got %q, want what was sent", got)
	}
	<-ended
}
