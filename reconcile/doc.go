// Package reconcile makes certain that the gateway's books and ours agree, whatever was lost on the way. It promises
// three things, each in its own part:
//
//   - The sweeper (sweep.go) asks the gateway about everything that is still owed an answer until there is evidence.
//     Due times and deadlines live in the rows of the table work; whoever wakes the sweeper, and how often, decides
//     nothing.
//   - The mirror (mirror.go) keeps a copy of the gateway's own list of transactions. It is written from the list and
//     from nothing else, so that it can contradict the books; what it knows and they lack becomes work in the same
//     database transaction.
//   - The audit (audit.go) compares the two in one snapshot, by transaction key, in count and in money, and says
//     which it was: reconciled, reconciled with pending, breaks, or not able to tell. Each minute it goes by what
//     changed (increment.go), which full runs hold against everything (full.go).
//
// Nothing here changes a payment but ledger.Record. Start with sweep.go, then mirror.go, then identity.go, which is the
// identity itself. How a cancel of our own ends whose answer was lost is in cancelrequest.go and cancelsight.go.
package reconcile
