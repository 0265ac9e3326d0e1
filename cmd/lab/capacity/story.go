package capacity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// transaction is the statements of one transaction, in the order in which they were run.
type transaction struct {
	statements []statement
	whole      bool // between BEGIN and COMMIT; else a statement by itself
}

// first and last are where the transaction stands among all statements of the service.
func (t transaction) first() int64 { return t.statements[0].order }
func (t transaction) last() int64  { return t.statements[len(t.statements)-1].order }

// mentions reports whether a parameter has one of the texts in it.
func (t transaction) mentions(marks []mark) bool {
	for _, s := range t.statements {
		for _, value := range s.values {
			for _, mark := range marks {
				if strings.Contains(string(value), mark.text) {
					return true
				}
			}
		}
	}
	return false
}

// transactions cuts what a line has carried.
func transactions(seen []statement) (all []transaction) {
	var open *transaction
	for _, s := range seen {
		word := strings.ToLower(strings.TrimSpace(s.sql))
		switch {
		case strings.HasPrefix(word, "begin"):
			open = &transaction{statements: []statement{s}, whole: true}
		case open == nil:
			all = append(all, transaction{statements: []statement{s}})
		default:
			open.statements = append(open.statements, s)
			if word == "commit" || word == "rollback" {
				all, open = append(all, *open), nil
			}
		}
	}
	return all
}

// trips is how often the service waited for PostgreSQL.
func (t transaction) trips() int {
	turns := map[int]bool{}
	for _, s := range t.statements {
		turns[s.turn] = true
	}
	return len(turns)
}

// story is what the service runs for one cancel, as it was recorded.
type story struct {
	limit, store, apply transaction
	trips               int
}

// errMixed means that a recording holds somebody else's work as well, or not all of a notice's.
var errMixed = errors.New("the recording is not one notice's")

// storyOf picks one notice's transactions out of what the lines have carried: what counts the sender, what keeps the
// delivery, what applies the cancel. What names the payment besides is somebody else's work that came in between, and the
// recording is of no use ([errMixed]).
//
// The jobs that deliver the cancel's events are known: they cannot begin before the cancel is committed, and they know of
// it nothing but the ids of these events.
func storyOf(lines [][]statement, own, events []mark) (s story, err error) {
	var limits, alone, whole []transaction
	for _, seen := range lines {
		for _, t := range transactions(seen) {
			switch {
			case !t.whole && strings.Contains(t.statements[0].sql, "INSERT INTO rate_limits"):
				limits = append(limits, t)
			case t.whole && (t.mentions(own) || t.mentions(events)):
				whole = append(whole, t)
			case t.mentions(own) || t.mentions(events):
				alone = append(alone, t)
			}
		}
	}
	applies := slices.DeleteFunc(slices.Clone(whole), func(t transaction) bool { return !t.mentions(own) })
	if len(applies) == 1 {
		committed := applies[0].last()
		job := func(t transaction) bool { return t.first() > committed && !t.mentions(own) }
		alone, whole = slices.DeleteFunc(alone, job), slices.DeleteFunc(whole, job)
	}
	if len(limits) != 1 || len(alone) != 1 || len(whole) != 1 || len(applies) != 1 {
		return s, fmt.Errorf("%w: the line carried %d statements of the rate limit, %d that keep a delivery and %d transactions that apply a cancel",
			errMixed, len(limits), len(alone), len(whole))
	}
	s = story{limit: limits[0], store: alone[0], apply: applies[0]}
	s.trips = s.limit.trips() + s.store.trips() + s.apply.trips()
	return s, nil
}

// statements is how many the story has, BEGIN and COMMIT included.
func (s story) statements() int {
	return len(s.limit.statements) + len(s.store.statements) + len(s.apply.statements)
}
