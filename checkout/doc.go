// Package checkout is what the merchant's server and the buyer's browser call: orders, approvals, cancels, credits,
// and the events that tell both what became of them.
//
// It promises three things. A payment is sent to the gateway only under a slot claimed beforehand and after an intent
// that was committed, so whatever crashes later, somebody asks what became of it. Once something was sent, a caller
// who hangs up changes nothing: the call has its own deadline and its outcome is recorded. And every reply is made
// from our books as they stand after the outcome was recorded, never from the gateway's answer; "we do not know yet"
// is a reply of its own, 202 with an address to ask at.
//
// Where a store has to take orders on, it is asked before the intent: what it said is committed with the intent, and what
// it may hold is released when nothing comes of the payment.
//
// Nothing here holds a database connection while the gateway or the store is asked.
//
// Start reading at confirm.go; conclude.go is what each verdict of the gateway means, cancel.go the way back,
// once.go the idempotency of our own callers, notices.go and deliver.go the events; storeask.go, acceptance.go, fate.go and
// settle.go are the store's part.
package checkout
