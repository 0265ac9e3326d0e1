package web

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
)

// endless is a body that has no end.
type endless struct{}

// Read gives spaces.
func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestReadBody_MemoryFollowsTheLimit: however much is sent, what is held of it is bounded by what may be sent.
func TestReadBody_MemoryFollowsTheLimit(t *testing.T) { //nolint:paralleltest // it watches the memory of the whole process
	const limit = 1 << 20
	for _, length := range []int64{-1, 100 << 20} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.LimitReader(endless{}, 100<<20))
		r.ContentLength = length
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadBody(r, limit)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrBodyTooLarge) {
			t.Errorf("length %d: got %v, want ErrBodyTooLarge", length, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 8*limit { // a buffer that grows is allocated several times
			t.Errorf("length %d: %d bytes allocated for a limit of %d", length, got, limit)
		}
	}
}
