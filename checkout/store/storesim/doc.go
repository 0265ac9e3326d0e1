// Package storesim is a merchant's store that a test can own: it takes orders on, takes that back, and slows down when
// more is asked of it at once than it bears. It imports nothing of this module, so that a mistake in our client cannot hide
// behind the same mistake here.
//
// # What it is faithful to
//
// A store was measured that serves 25 orders at once in some 50 ms each and whose round trip rises from there. Here a
// question takes [Config.Base] while at most [Config.Knee] are under way when it arrives, and Base × under way ÷ Knee when
// more are: the store does no more work in a second than at its knee, however many ask.
//
// An acceptance is known by its id: asked again it is answered as before, and released before it was asked about it is
// declined. A request is served to its end although its caller has gone, as servers do.
//
// # Faults
//
// Each hits the next N calls, or all of them: see [Kind].
package storesim
