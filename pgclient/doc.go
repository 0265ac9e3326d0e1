// Package pgclient is the gateway: the only place that knows the words of Toss Payments ("pg" = payment gateway).
//
// It promises four things. What the gateway says about a payment comes back as a [ledger.Observation] that does
// not contradict itself, or as an [Error] and never as a guess. An approval or a cancel ends in one of five
// verdicts, and "we do not know" is one of them: the verdict is that of the worst-known attempt, so a timeout
// followed by an open breaker is unknown, never "not sent". Nothing is sent without a slot and the breaker's
// permission, which the caller claims before it commits its intent ([Client.ReserveConfirm]). And every call ends
// within the budget of its path (paths.go), however slow, silent or hostile the other side is.
//
// Start reading at client.go; guard.go is the order of the layers, codes.go the gateway's error codes,
// payment.go the translation of a payment object, notice.go that of a webhook body.
package pgclient
