package pgclient

import (
	"cmp"
	"fmt"
	"time"

	"daesa/internal/guard"
)

// Verdict is what came of an approval or a cancel that was sent.
type Verdict string

// The verdicts. Only VerdictDone carries an observation.
const (
	// VerdictDone: the gateway answered with the payment; the observation says what is true of it.
	VerdictDone Verdict = "done"
	// VerdictRefused: a definite refusal by code, with no earlier attempt in doubt. Nothing moved.
	VerdictRefused Verdict = "refused"
	// VerdictUnprocessed: turned away before it was processed (key, configuration, our request, rate). Nothing moved.
	VerdictUnprocessed Verdict = "unprocessed"
	// VerdictAsk: the answer does not say what is true, but the gateway can be asked at once, and must be.
	VerdictAsk Verdict = "ask"
	// VerdictUnknown: sent, and nobody can tell what came of it.
	VerdictUnknown Verdict = "unknown"
)

// Verdicts lists every verdict.
func Verdicts() []Verdict {
	return []Verdict{VerdictDone, VerdictRefused, VerdictUnprocessed, VerdictAsk, VerdictUnknown}
}

// Reason says, in one word for metrics and stored rows, why a call gave no observation.
type Reason string

// The reasons.
const (
	ReasonTimeout       Reason = "timeout"
	ReasonConnection    Reason = "connection"
	ReasonServerError   Reason = "server_error"
	ReasonRateLimited   Reason = "rate_limited"
	ReasonKeyRefused    Reason = "key_refused"
	ReasonNotFound      Reason = "not_found"
	ReasonBreakerOpen   Reason = "breaker_open"
	ReasonCap           Reason = "cap"
	ReasonCanceled      Reason = "canceled"       // the caller went away
	ReasonUnreadable    Reason = "unreadable"     // not the answer of the gateway's API
	ReasonInconsistent  Reason = "inconsistent"   // readable, and it contradicts itself or the question
	ReasonCursorRefused Reason = "cursor_refused" // the list does not know the row to continue after
	ReasonInFlight      Reason = "in_flight"      // the same request is still being worked on there
	ReasonAmbiguous     Reason = "ambiguous"      // a code that does not say whether money moved
	ReasonRefused       Reason = "refused"
)

// Reasons lists every reason.
func Reasons() []Reason {
	return []Reason{
		ReasonTimeout, ReasonConnection, ReasonServerError, ReasonRateLimited, ReasonKeyRefused, ReasonNotFound,
		ReasonBreakerOpen, ReasonCap, ReasonCanceled, ReasonUnreadable, ReasonInconsistent, ReasonCursorRefused,
		ReasonInFlight, ReasonAmbiguous, ReasonRefused,
	}
}

// Error is a call that gave no observation. Code and Message are the gateway's own, bounded and free of control
// characters; no key, body or address is ever part of it.
type Error struct {
	Code       string // the gateway's error code, "" when it gave none
	Message    string // the gateway's words for the customer, Korean
	Status     int    // HTTP status, 0 when no answer came
	Group      Group
	Reason     Reason
	RetryAfter time.Duration // how long the gateway or our own guard asks us to wait, 0 when unsaid
	TraceID    string        // the gateway's own id of the call, for its support desk
	Detail     string        // what was inconsistent or unreadable, in our words
}

// Error says what happened in one line that is safe to log.
func (e *Error) Error() string {
	text := "gateway: " + string(e.Reason)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d", e.Status)
		if e.Code != "" {
			text += " " + e.Code
		}
		text += ")"
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// retryable reports whether sending the very same request again can help and cannot harm. A 4xx with a code is
// bound to the idempotency key and replayed for 15 days, so only "still running" and "too many" are worth it.
func (e *Error) retryable() bool {
	switch e.Reason {
	case ReasonTimeout, ReasonConnection, ReasonServerError, ReasonRateLimited, ReasonInFlight:
		return true
	case ReasonUnreadable:
		return e.Status < 400 || e.Status >= 500
	case ReasonKeyRefused, ReasonNotFound, ReasonBreakerOpen, ReasonCap, ReasonCanceled, ReasonInconsistent,
		ReasonCursorRefused, ReasonAmbiguous, ReasonRefused:
		return false
	}
	return false
}

// inDoubt reports whether the attempt may have moved money.
func (e *Error) inDoubt() bool {
	switch e.Reason {
	case ReasonTimeout, ReasonConnection, ReasonServerError, ReasonCanceled, ReasonUnreadable, ReasonInconsistent,
		ReasonInFlight, ReasonAmbiguous:
		return true
	case ReasonRateLimited, ReasonKeyRefused, ReasonNotFound, ReasonBreakerOpen, ReasonCap, ReasonCursorRefused,
		ReasonRefused:
		return false
	}
	return true
}

// breakerOutcome says what the attempt tells about the gateway's health. Refusing a card is healthy, but proves
// nothing about the rest, so it is neither success nor failure.
func (e *Error) breakerOutcome() guard.Outcome {
	if e == nil {
		return guard.Succeeded
	}
	switch e.Reason {
	case ReasonTimeout, ReasonConnection, ReasonServerError, ReasonRateLimited, ReasonUnreadable:
		return guard.Failed
	case ReasonInconsistent:
		return guard.Succeeded
	case ReasonKeyRefused, ReasonNotFound, ReasonBreakerOpen, ReasonCap, ReasonCanceled, ReasonCursorRefused,
		ReasonInFlight, ReasonAmbiguous, ReasonRefused:
		return guard.Ignored
	}
	return guard.Ignored
}

// Refusal is why a call was turned away by our own guard before anything was sent.
type Refusal = guard.Refusal

// The refusals.
const (
	RefusalCap      = guard.RefusalCap
	RefusalBreaker  = guard.RefusalBreaker
	RefusalDeadline = guard.RefusalDeadline
)

// Refusals lists every refusal.
func Refusals() []Refusal { return guard.Refusals() }

// Unsent says that our own guard refused the call: nothing was sent, nothing can have moved.
type Unsent struct {
	Reason     Refusal
	RetryAfter time.Duration
}

// Error says which layer refused.
func (u *Unsent) Error() string { return "gateway call not sent: " + string(u.Reason) }

// lookupError translates a refusal for the calls that only ask.
func (u *Unsent) lookupError() *Error {
	reason := ReasonCap
	if u.Reason == RefusalBreaker {
		reason = ReasonBreakerOpen
	}
	return &Error{Reason: reason, RetryAfter: cmp.Or(u.RetryAfter, time.Second)}
}
