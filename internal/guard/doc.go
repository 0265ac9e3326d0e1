// Package guard has the parts that stand around every outbound call: a bulkhead that bounds the calls under way, and a
// breaker that stops asking a service that does not answer.
//
// Each client of such a service declares its own limits, with their evidence beside them, and puts the parts in order:
// deadline, slot, breaker, limit of the attempt, HTTP. Nobody waits here beyond a stated time, and no goroutine is made for
// a call that waits: how many there are follows from the callers alone.
package guard
