package admission

import (
	"container/list"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// sourcesMax bounds the memory that strangers can make us use, at some 300 bytes each.
const sourcesMax = 100_000

// sweepMax bounds the work that one request does for the sources that have gone.
const sweepMax = 8

// sources is what one instance knows of those who send under one rule.
type sources struct {
	whole, share pace
	most         int
	tracked      prometheus.Gauge

	mu     sync.Mutex
	known  map[string]*list.Element
	recent *list.List // Of *source, the one heard from last in front.
}

// source is one sender.
type source struct {
	key   string
	heard time.Time
	// whole and share are when the allowance of the whole rule, and of this instance's share, are full again, by what
	// passed here.
	whole, share time.Time
	// refused is until when the database has refused it, so that it need not be asked.
	refused time.Time
}

func newSources(rule Rule, replicas, most int, tracked prometheus.Gauge) *sources {
	return &sources{
		whole: rule.pace(), share: rule.share(replicas), most: most, tracked: tracked,
		known: make(map[string]*list.Element), recent: list.New(),
	}
}

// refuses reports how long the source has to wait as far as is known here: by what the database has said, or because
// more has passed here alone than the rule allows everywhere. Zero means that the database has to be asked.
func (s *sources) refuses(key string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of(key, now)
	if wait := one.refused.Sub(now); wait > 0 && wait <= s.whole.window+clockTolerance {
		return wait
	}
	_, wait := s.whole.take(one.whole, now)
	return wait
}

// passed notes a request that the database let pass.
func (s *sources) passed(key string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of(key, now)
	one.whole, one.share = s.whole.charge(one.whole, now), s.share.charge(one.share, now)
}

// refused notes that the database refuses the source for that long.
func (s *sources) refused(key string, now time.Time, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(key, now).refused = now.Add(wait)
}

// takeShare spends one request of this instance's share, or reports how long until there is one.
func (s *sources) takeShare(key string, now time.Time) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of(key, now)
	if one.share, wait = s.share.take(one.share, now); wait == 0 {
		one.whole = s.whole.charge(one.whole, now)
	}
	return wait
}

// of returns the source, a new one if it was not known. When no further one fits, the one that has been quiet for longest
// is forgotten: its allowance is the fullest of those that were spent alike. The lock is held.
func (s *sources) of(key string, now time.Time) *source {
	s.sweep(now)
	if element, known := s.known[key]; known {
		s.recent.MoveToFront(element)
		one := element.Value.(*source)
		one.heard = now
		return one
	}
	if len(s.known) >= s.most {
		s.forget(s.recent.Back())
	}
	one := &source{key: key, heard: now}
	s.known[key] = s.recent.PushFront(one)
	s.tracked.Set(float64(len(s.known)))
	return one
}

// sweep forgets some of the sources whose allowances are whole again, and so worth nothing. It runs with each request
// instead of in a goroutine of its own: while nobody sends, what is remembered does not grow. The lock is held.
func (s *sources) sweep(now time.Time) {
	for range sweepMax {
		oldest := s.recent.Back()
		if oldest == nil || now.Sub(oldest.Value.(*source).heard) < max(s.whole.window, s.share.window) {
			return
		}
		s.forget(oldest)
	}
}

func (s *sources) forget(element *list.Element) {
	delete(s.known, element.Value.(*source).key)
	s.recent.Remove(element)
	s.tracked.Set(float64(len(s.known)))
}
