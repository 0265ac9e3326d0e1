// Package webhook answers the gateway's notices. A notice is a hint and nothing more: anybody can post one, so its
// body decides at most whether the gateway is asked. What the gateway then says is recorded, and only a cancel that is
// committed, now or before, is acknowledged with the 200 that ends its redelivery.
//
// The redelivery is the retry queue. There is no second one: a notice whose question fails is refused, comes again,
// and leaves work behind so that the cancel is found even if the redelivery ends first.
//
// Start reading at receive.go (the whole story), then verdict.go (what is acknowledged) and store.go (the one statement
// that keeps a delivery and decides what needs no question). The decisions, first match:
//
//	body too large, too slow, not a JSON object, not a payment key  body_unparsable     413 408 400
//	wrong signature, wrong secret of a deposit callback             signature_rejected  401
//	an event we do not need; an order of somebody else              event_ignored       200
//	a known status that is no cancel                                status_ignored      200
//	a cancel of a payment never seen                                payment_not_found   404
//	nothing left to cancel, or every named cancel is in the books   duplicate_skipped   200
//	the question to the gateway fails                               query_failed        502
//	the gateway does not say canceled, or not what is in our books  state_mismatch      409
//	our books still lack what the notice is about                   state_mismatch      409
//	somebody recorded it meanwhile                                  duplicate_skipped   200
//	recorded: nothing left, something left                          applied_full/_partial 200
//	the books refuse, the database fails                            apply_failed, db_failed 500 503
package webhook
