package webhook

import (
	"errors"
	"net/http"
)

// Outcome is what became of one delivery.
type Outcome string

// The outcomes. The same words are a constraint of the table and a label of the metrics.
const (
	OutcomeAppliedFull       Outcome = "applied_full"       // a cancel was recorded and nothing is left
	OutcomeAppliedPartial    Outcome = "applied_partial"    // a cancel was recorded and something is left
	OutcomeDuplicateSkipped  Outcome = "duplicate_skipped"  // the books already say so
	OutcomePaymentNotFound   Outcome = "payment_not_found"  // refused on purpose: the notice may have overtaken its payment
	OutcomeQueryFailed       Outcome = "query_failed"       // the gateway did not answer
	OutcomeStateMismatch     Outcome = "state_mismatch"     // the gateway does not say what the notice says
	OutcomeApplyFailed       Outcome = "apply_failed"       // the books refused
	OutcomeDBFailed          Outcome = "db_failed"          // the database failed, or nobody knows
	OutcomeEventIgnored      Outcome = "event_ignored"      // not an event of ours
	OutcomeStatusIgnored     Outcome = "status_ignored"     // a status that is no cancel
	OutcomeSignatureRejected Outcome = "signature_rejected" // not from the gateway
	OutcomeBodyUnparsable    Outcome = "body_unparsable"    // nothing to read
)

// received is what a stored delivery is until it has an outcome.
const received = "received"

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeAppliedFull, OutcomeAppliedPartial, OutcomeDuplicateSkipped, OutcomePaymentNotFound, OutcomeQueryFailed,
		OutcomeStateMismatch, OutcomeApplyFailed, OutcomeDBFailed, OutcomeEventIgnored, OutcomeStatusIgnored,
		OutcomeSignatureRejected, OutcomeBodyUnparsable,
	}
}

// What a notice is refused with. The sender reads only the status; each of these makes it come again.
var (
	// ErrBodyUnparsable means that the body is not a notice.
	ErrBodyUnparsable = errors.New("the body is not a notice")
	// ErrSignatureRejected means that the notice is not from the gateway.
	ErrSignatureRejected = errors.New("the notice is not from the gateway")
	// ErrPaymentNotFound means that the notice names a payment never seen here.
	ErrPaymentNotFound = errors.New("the payment has never been seen here")
	// ErrQueryFailed means that the gateway could not be asked.
	ErrQueryFailed = errors.New("the gateway could not be asked")
	// ErrStateMismatch means that the gateway does not say what the notice says.
	ErrStateMismatch = errors.New("the gateway does not confirm the notice")
	// ErrApplyFailed means that the books refused what the gateway said.
	ErrApplyFailed = errors.New("the books refused the cancel")
	// ErrDBFailed means that the database failed, or that nobody knows whether it committed.
	ErrDBFailed = errors.New("the database could not record the notice")
)

// status is the HTTP status of an outcome; 200 ends the redelivery.
func (o Outcome) status() int {
	switch o {
	case OutcomeAppliedFull, OutcomeAppliedPartial, OutcomeDuplicateSkipped, OutcomeEventIgnored, OutcomeStatusIgnored:
		return http.StatusOK
	case OutcomeBodyUnparsable:
		return http.StatusBadRequest
	case OutcomeSignatureRejected:
		return http.StatusUnauthorized
	case OutcomePaymentNotFound:
		return http.StatusNotFound
	case OutcomeStateMismatch:
		return http.StatusConflict
	case OutcomeApplyFailed:
		return http.StatusInternalServerError
	case OutcomeQueryFailed:
		return http.StatusBadGateway
	case OutcomeDBFailed:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// refusal is the error that an outcome is answered with; nil when it is acknowledged.
func (o Outcome) refusal() error {
	switch o {
	case OutcomeAppliedFull, OutcomeAppliedPartial, OutcomeDuplicateSkipped, OutcomeEventIgnored, OutcomeStatusIgnored:
		return nil
	case OutcomeBodyUnparsable:
		return ErrBodyUnparsable
	case OutcomeSignatureRejected:
		return ErrSignatureRejected
	case OutcomePaymentNotFound:
		return ErrPaymentNotFound
	case OutcomeStateMismatch:
		return ErrStateMismatch
	case OutcomeApplyFailed:
		return ErrApplyFailed
	case OutcomeQueryFailed:
		return ErrQueryFailed
	case OutcomeDBFailed:
		return ErrDBFailed
	}
	return ErrApplyFailed
}

// reasonGivenUp is the reason of a refused notice about cancels that the gateway has given up: they are owed nothing, and
// leave no claim.
const reasonGivenUp = "given_up"

// verdict is an outcome with its reason and the status it is answered with.
type verdict struct {
	outcome Outcome
	reason  string // one word, stored
	status  int    // 0: the outcome's own
	cause   error  // for the log; nil when there is none

	fruitless bool // the gateway was asked, and its answer proved nothing
}

func (v verdict) httpStatus() int {
	if v.status != 0 {
		return v.status
	}
	return v.outcome.status()
}

// Refusal is a verdict that makes the sender come again, as an error of the handler. It is ErrBodyUnparsable and so
// on for errors.Is, and carries the outcome into the answer.
type Refusal struct {
	Outcome Outcome
	Reason  string

	status int
	cause  error
}

// Error says what was decided and why.
func (r *Refusal) Error() string {
	text := "notice refused: " + string(r.Outcome)
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	if r.cause != nil {
		text += ": " + r.cause.Error()
	}
	return text
}

// Unwrap gives the sentinel and the cause.
func (r *Refusal) Unwrap() []error {
	if r.cause == nil {
		return []error{r.Outcome.refusal()}
	}
	return []error{r.Outcome.refusal(), r.cause}
}

// ProblemStatus is the status to answer with.
func (r *Refusal) ProblemStatus() int { return r.status }

// ProblemCode is the outcome.
func (r *Refusal) ProblemCode() string { return string(r.Outcome) }

// ProblemDetail keeps what went wrong inside to ourselves.
func (r *Refusal) ProblemDetail() string { return "" }

// ProblemExtra shows the outcome in the same member as an answer of 200 does.
func (r *Refusal) ProblemExtra() map[string]any { return map[string]any{"outcome": r.Outcome} }
