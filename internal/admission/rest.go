package admission

import (
	"sync"
	"time"
)

// A database that has failed failuresMost times, one after the other, is left alone for restFor. Each failure has cost a
// request up to SharedTimeout; three are few enough to be no burden, and too many to be one slow statement. A second of
// local counting gives a source at most its share of a sixtieth of its rule.
//
// What fails beside another has not failed after it: one moment in which the database stands still, for a disk or for a
// neighbor, fails all that is asked in it.
const (
	failuresMost = 3
	restFor      = time.Second
)

// rest keeps an instance from asking a database that does not answer. When it is over, one request asks, and the others
// ask again once that one was answered.
type rest struct {
	mu       sync.Mutex
	failures int
	failedAt time.Time // when the last of them was known
	until    time.Time
	trying   bool
}

// ask reports whether the database may be asked. Whoever may has to call answered.
func (r *rest) ask(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures < failuresMost {
		return true
	}
	if r.trying || now.Before(r.until) {
		return false
	}
	r.trying = true
	return true
}

// answered notes what came of a question asked at began.
func (r *rest) answered(began, now time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trying = false
	switch {
	case ok:
		r.failures = 0
		return
	case began.Before(r.failedAt):
		return
	}
	r.failedAt = now
	if r.failures++; r.failures >= failuresMost {
		r.until = now.Add(restFor)
	}
}
