package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimeout_EndsTheContextWithItsCause(t *testing.T) {
	t.Parallel()
	Timeout(time.Millisecond)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		if got := context.Cause(r.Context()); !errors.Is(got, ErrRequestTimeout) {
			t.Errorf("got cause %v, want %v", got, ErrRequestTimeout)
		}
		if got := r.Context().Err(); !errors.Is(got, context.DeadlineExceeded) {
			t.Errorf("got error %v, want %v", got, context.DeadlineExceeded)
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader("x")))
}

// serve runs handler on a real connection and returns its address; the server stops with the test.
func serve(t *testing.T, cfg ServerConfig) string {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	server, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// exchange sends text as it is and returns the status of the answer.
func exchange(t *testing.T, addr, text string) int {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	return reply.StatusCode
}

func TestReadBody_SlowBodyEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	a, _ := newAdapter(t)
	addr := serve(t, ServerConfig{Handler: Timeout(30 * time.Millisecond)(a.Handle(
		func(_ http.ResponseWriter, r *http.Request) error {
			_, err := ReadBody(r, 100)
			return err
		},
	))})
	if got := exchange(t, addr, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"); got != 408 {
		t.Errorf("got status %d, want 408", got)
	}
}

// readDeadlines notes the deadlines that a connection is given to read.
type readDeadlines struct {
	http.ResponseWriter

	set []time.Time
}

// SetReadDeadline notes one.
func (d *readDeadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// TestTimeout_ASlowBodyIsNotWaitedForAsLongAsTheWork: whoever sends slowly holds a place for five seconds, also where the
// handler may work for more than a minute.
func TestTimeout_ASlowBodyIsNotWaitedForAsLongAsTheWork(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ limit, want time.Duration }{{time.Second, time.Second}, {75 * time.Second, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			began, conn := time.Now(), &readDeadlines{ResponseWriter: httptest.NewRecorder()}
			Timeout(test.limit)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if _, err := ReadBody(r, 100); err != nil {
					t.Error(err)
				}
			})).ServeHTTP(conn, httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader("x")))
			if wanted := []time.Time{began.Add(test.want), {}}; !slices.EqualFunc(conn.set, wanted, time.Time.Equal) {
				t.Errorf("%s: got the deadlines %v, want %v", test.limit, conn.set, wanted)
			}
		})
	}
}

func TestTimeout_ReadDeadlineDoesNotOutliveTheBody(t *testing.T) {
	t.Parallel()
	const readTimeout = 30 * time.Millisecond
	a, _ := newAdapter(t)
	addr := serve(t, ServerConfig{ReadTimeout: readTimeout, Handler: Timeout(time.Minute)(a.Handle(
		func(w http.ResponseWriter, r *http.Request) error {
			if _, err := ReadBody(r, 100); err != nil {
				return err
			}
			select {
			case <-r.Context().Done():
				return r.Context().Err()
			case <-time.After(3 * readTimeout): // The work of the handler, longer than the server waits for a request.
				return WriteJSON(w, http.StatusOK, "done")
			}
		},
	))})
	for _, text := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if got := exchange(t, addr, text); got != 200 {
			t.Errorf("got status %d for %.4s, want 200", got, text)
		}
	}
}

func TestReadBody(t *testing.T) {
	t.Parallel()
	a, _ := newAdapter(t)
	addr := serve(t, ServerConfig{Handler: a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		raw, err := ReadBody(r, 4)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	})})
	tests := []struct {
		name, rest string
		want       int
	}{
		{"at the limit", "Content-Length: 4\r\n\r\nabcd", 200},
		{"no body", "\r\n", 200},
		{"declared too large", "Content-Length: 5\r\n\r\n", 413},
		{"chunked too large", "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", 413},
		{"broken chunk", "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := exchange(t, addr, "POST / HTTP/1.1\r\nHost: x\r\n"+tt.rest); got != tt.want {
				t.Errorf("got status %d, want %d", got, tt.want)
			}
		})
	}
}
