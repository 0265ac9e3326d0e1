// Package tosssim is a Toss Payments that a test can own: its payment API with state, its webhook sender, and scripted
// faults. Its JSON is written by hand from what the vendor documents and from what has been measured of the real service,
// and it imports nothing of this module, so that a mistake in our client cannot hide behind the same mistake here.
//
// # Reading order
//
// sim.go (configuration and state), payments.go (the payment object), sessions.go, confirm.go, cancel.go,
// virtualaccount.go (what happens to it), transactions.go (the list), gateway.go and idempotency.go (the way of a request),
// faults.go, notices.go and webhooks.go (the sender), control.go (the same by HTTP), page.go (the same for people).
//
// # What it is faithful to
//
// Basic authentication: 401 UNAUTHORIZED_KEY for a wrong key, 403 INCORRECT_BASIC_AUTH_FORMAT for credentials that are not
// base64 or lack the colon. Idempotency keys: bound to API key, method and address but not to the body; the first reply is
// replayed byte for byte for fifteen days, refusals included; 409 while the first request runs; 400 above 300 characters.
// The header TossPayments-Test-Code answers the wanted error, for test keys only. Windows expire after 30 minutes, and 10
// after authentication. A payment without cancels has null, not an empty array. A payment fully canceled in parts stays
// PARTIAL_CANCELED with balance 0, and refuses with 403 NOT_CANCELABLE_AMOUNT instead of 400 ALREADY_CANCELED_PAYMENT.
// Times have +09:00 and whole seconds; a notice's createdAt has neither offset nor trailing zeros. Two notices for each
// change of a virtual account. Success of a delivery is exactly 200 within ten seconds, else it is repeated after 1, 4, 16,
// 64, 256, 1,024 and 4,096 minutes.
//
// # What it assumes
//
// Nobody documents the following, so a client should not depend on it. The list is ordered by time and includes both ends
// of its window; the amount of cancel rows is positive unless [Config.CancelRowSign] says otherwise; the reverted deposit
// (unless [Config.FallenRow] says otherwise) and the cancel of an unpaid virtual account make rows of amount 0. A wrong
// amount or order id in a confirm is
// INVALID_REQUEST; a window that is expired, aborted or not authenticated is NOT_FOUND_PAYMENT_SESSION. A cancel while
// another is in progress is FORBIDDEN_CONSECUTIVE_REQUEST, and the one in progress changes no balance yet. Server errors
// are not bound to idempotency keys. The transmission id stays the same over retries unless [DeliveryPlan.FreshIDs]. Of
// the two values of a signature the second is by another key, as during a rotation.
//
// # Time
//
// Sessions, idempotency keys, the list's lag and redelivery go by [Config.Clock]. Delays of faults and the ten seconds of a
// delivery pass in real time, because the time-outs of whoever is being tested do too.
//
// # Control by HTTP
//
// GET /__sim/ is a page on which a person plays the gateway: cancels, and has it be silent, late, or lose replies and
// notices. The calls below do the same and more for programs. All of it is for this machine only, and no page of another
// site may use it: whoever reaches the control moves the simulator's money.
//
// Every call takes and answers JSON. 400 means the request makes no sense, 404 that there is no such payment, 409 that it
// is not in a state for that. Bodies of calls and notices are base64.
//
//	POST /__sim/open          {orderId, orderName, customerKey, amount, currency, method} -> {paymentKey}
//	POST /__sim/authenticate  the same -> {paymentKey}
//	POST /__sim/approve       {paymentKey}; likewise deposit, revert, expire
//	POST /__sim/abort         {paymentKey, code}
//	POST /__sim/cancel        {paymentKey, amount, reason} -> {transactionKey}
//	POST /__sim/finish-cancel {transactionKey, done}
//	POST /__sim/payment       a payment object, kept byte for byte
//	POST /__sim/transaction   a row of the list
//	GET  /__sim/payments      -> [paymentKey, …]
//	GET  /__sim/totals        -> {captures, cancels, captured, canceled}
//	POST /__sim/fault         {op, kind, n, delayMs, code, body, contentType, headers, payment, paymentKey}
//	POST /__sim/heal
//	GET  /__sim/held          -> {held}
//	GET  /__sim/calls         -> [Call, …]
//	GET  /__sim/counts        -> {confirm, cancel, get, list}, and "" for what is none of these
//	GET  /__sim/notices       -> [Notice, …]
//	POST /__sim/webhook-url   {url}
//	POST /__sim/delivery      {hold, holdTimeMs, lose, duplicate, shuffle, freshIds, parallel}
//	POST /__sim/deliver       {id} -> {status, error}
//	POST /__sim/deliver-due   -> {sent}
//	POST /__sim/send          {body, headers} -> {status, error}
//	POST /__sim/reset
package tosssim
