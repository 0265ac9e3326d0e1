package admission

import "net/http"

// line lets so many requests in at once, whatever they are for, and makes the others wait in the order in which they
// came. It is what a server with a pool of threads does, and what [Gate] is measured against: it refuses nobody, so
// everybody is late.
type line struct{ slots chan struct{} }

func newLine(slots int) *line { return &line{slots: make(chan struct{}, slots)} }

// enter waits for a slot, unless the client hangs up first.
func (l *line) enter(r *http.Request) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// leave gives the slot to the next one.
func (l *line) leave() { <-l.slots }
