package storesim

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Kind is how a fault misbehaves.
type Kind string

// The kinds of faults.
const (
	Hang       Kind = "hang"         // does nothing and never answers
	DoThenHang Kind = "do_then_hang" // does it, then never answers
	Delay      Kind = "delay"        // waits out Delay, then does it and answers, although its caller may have gone
	Status     Kind = "status"       // does nothing and answers Code
	LostReply  Kind = "lost_reply"   // does it, then breaks the connection
	Reset      Kind = "reset"        // does nothing and breaks the connection
	Garbage    Kind = "garbage"      // does it, then answers 200 with a page
)

func kinds() []Kind { return []Kind{Hang, DoThenHang, Delay, Status, LostReply, Reset, Garbage} }

// Fault is one scripted misbehaviour of the next N calls of Op, and of OrderID when that is set.
type Fault struct {
	Op      Op
	Kind    Kind
	N       int // 0 means one, -1 all until Heal
	Delay   time.Duration
	Code    int
	OrderID string
}

// Fail scripts a fault. It panics when there is no such kind.
func (s *Sim) Fail(f Fault) {
	if !slices.Contains(kinds(), f.Kind) || (f.Op != Ask && f.Op != Release) {
		panic(fmt.Sprintf("storesim: no fault %q of %q", f.Kind, f.Op))
	}
	if f.N == 0 {
		f.N = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Heal removes all faults, and lets go what hangs or is delayed.
func (s *Sim) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	close(s.healed)
	s.healed = make(chan struct{})
}

// pick returns the fault that hits this call, and uses it up by one. The lock is held.
func (s *Sim) pick(op Op, in request) *Fault {
	for _, f := range s.faults {
		if f.Op != op || f.N == 0 || (f.OrderID != "" && f.OrderID != in.OrderID) {
			continue
		}
		if f.N > 0 {
			f.N--
		}
		return f
	}
	return nil
}

// misbehave does what the fault wants, and reports whether nothing is left to be done.
func (s *Sim) misbehave(w http.ResponseWriter, r *http.Request, f Fault, op Op, in request, healed <-chan struct{}) bool {
	switch f.Kind {
	case DoThenHang, LostReply, Garbage:
		s.decide(op, in)
	case Hang, Delay, Status, Reset:
	}
	switch f.Kind {
	case Delay:
		pass(f.Delay, healed)
		return false
	case Status:
		w.WriteHeader(f.Code)
	case Garbage:
		_, _ = w.Write([]byte("<html>"))
	case Hang, DoThenHang:
		select {
		case <-healed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case LostReply, Reset:
		panic(http.ErrAbortHandler)
	}
	return true
}
