// Package ledger is the domain: orders, payments, captures, cancels, credits, the journal that proves them,
// and everything that is still owed an answer. It knows neither HTTP nor the gateway. Start reading here, then
// state.go (the whole state machine), decide.go (facts in, decision out, pure) and record.go (the only way a
// payment changes).
//
// # Glossary
//
//   - order: what a buyer owes; its amount comes from the merchant's server alone.
//   - payment: one payment key at the gateway, tried for one order.
//   - capture: money taken (or a deposit received), keyed by its transaction key.
//   - cancel: money given back, keyed by its transaction key; a void cancels an unpaid virtual account at nothing.
//   - observation: what the gateway said about a payment, when, through which channel.
//   - intent: our committed wish to call the gateway; nothing is sent without one.
//   - work: an answer still owed, with a due time and a deadline.
//   - mismatch: a contradiction between the gateway's books and ours, with the money at risk.
//   - journal transaction, entry: double-entry bookkeeping of the above; debits positive.
//   - surplus payment: one that does not hold its order, because another does or because it is in doubt and the
//     gateway has never known it. Money that arrives for a held order waits in suspense.
//   - business day: a calendar day in Seoul.
//
// # Invariants
//
// This code keeps them all. The database keeps I1, I3 and I11 by constraints and triggers, and of I2, I4 and I8 what one
// row can show. No constraint can keep I6, I9 and I10, which are about what must still come and what was answered: they
// rest on the code, on one transaction for a fact and its answer, and on being checked. I5 is held against the
// gateway's own log, I7 by the audit; package ledgertest asserts all others at the end of every integration test.
//
//   - I1: a gateway cancel is applied at most once.
//   - I2: cancels that are done + balance = captured, never more.
//   - I3: each journal transaction sums to zero per currency; entries are never changed or deleted.
//   - I4: payment and order status agree with the journal.
//   - I5: a payment reached the gateway only in an attempt whose intent was committed first.
//   - I6: confirming and unknown end only by gateway evidence; asking goes on, past an age it is also a mismatch.
//   - I7: the identity: gateway cancels = canceled orders + pending.
//   - I8: credits granted − revoked − spent = balances.
//   - I9: a 200 to a cancel notice of ours means: committed, now or before.
//   - I10: every admitted delivery has one row and ends with one outcome.
//   - I11: one live payment per order; a surplus payment does not hold its order.
package ledger
