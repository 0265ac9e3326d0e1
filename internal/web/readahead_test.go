package web

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
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
	addr := serve(t, ServerConfig{Handler: ReadAhead(4, BodyMost)(work)})
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
		ReadAhead(10, BodyMost)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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

// TestReadAhead_LargeBodiesTakeTurns: all large bodies that there is memory for arrive slowly. A small one is taken in beside
// them; a further large one is taken no more of than of a small one, waits no longer than a body may take, and gets its
// place when one is free.
func TestReadAhead_LargeBodiesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const within, limit = 4 * time.Second, 256 << 10
		type answer struct {
			size int
			err  error
			took time.Duration
		}
		ahead := ReadAhead(limit, within)
		send := func(body io.Reader, into chan<- answer) {
			began := time.Now()
			go ahead(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				raw, err := ReadBody(r, limit)
				into <- answer{len(raw), err, time.Since(began)}
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
		}
		slow, senders := make(chan answer, largeAtOnce), make([]*io.PipeWriter, largeAtOnce)
		for n := range senders {
			body, sender := io.Pipe()
			senders[n] = sender
			send(body, slow)
			if _, err := io.Copy(sender, strings.NewReader(strings.Repeat("x", smallBody+1))); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		others := make(chan answer, 1)
		send(strings.NewReader("small"), others)
		if got := <-others; got != (answer{size: 5}) {
			t.Errorf("a small body: got %+v, want it at once", got)
		}
		large := strings.NewReader(strings.Repeat("x", limit))
		send(large, others)
		if got := <-others; !errors.Is(got.err, ErrBodyTimeout) || got.took != within || large.Len() != limit-smallBody {
			t.Errorf("one large body too many: got %+v with %d bytes left, want it given up after %s with %d",
				got, large.Len(), within, limit-smallBody)
		}
		send(strings.NewReader(strings.Repeat("x", limit)), others)
		synctest.Wait()
		for _, sender := range senders {
			_ = sender.Close()
		}
		if got := <-others; got != (answer{size: limit}) {
			t.Errorf("a large body when places are free: got %+v, want it whole", got)
		}
		for range senders {
			if got := <-slow; got.err != nil || got.size != smallBody+1 {
				t.Errorf("a slow body: got %+v, want what was sent", got)
			}
		}
	})
}
