// Package store is the client of the merchant's store: the system that says whether it takes an order on, asked before the
// buyer's money moves.
//
// It promises three things. Nobody waits longer than the stated time for an answer, the wait for a slot included, and no
// more requests are at the store at once than it bears. An answer is one of four words: it accepted, it declined, it was
// late, or it could not be reached; what follows from the last two is not decided here. And the store is asked once: what
// was sent and not answered may have been accepted, and has to be released.
//
// # What the store serves
//
// Both calls are signed as Standard Webhooks are, and carry an Idempotency-Key.
//
//	POST {address}                          {"acceptance_id","order_id","amount","currency"}
//	POST {address}/{acceptance_id}/release  {"acceptance_id","order_id"}
//
// The first is answered by any 2xx with {"accepted": true}, or with {"accepted": false, "reason": "…"}, whose reason the
// buyer is shown. One order may be asked about several times, each time under an id of its own, and never while another id
// of it is held. The second is answered by any 2xx; 404 and 410 count as well. A release may come twice, and it may
// overtake its own question: a store that gets one for an id that it does not know must decline that id later.
//
// Start reading at client.go; limits.go has the figures with their evidence, wire.go what is sent and read.
package store
