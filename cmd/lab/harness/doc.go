// Package harness puts the real programs under load: `daesa serve` and the simulated gateway, each a process of its own
// on the loopback interface, over a database that is made for the run.
//
// Load is an open loop at a constant rate. A request has a planned instant, whether or not earlier ones have been
// answered, and its time is counted from that instant, so that a generator that falls behind cannot hide what it is
// there to measure; how late requests were really sent is a figure of its own. Everything is bounded in time and number.
//
// Every figure has two witnesses that do not know each other: the generator's answers, the service's metrics, its
// tables, the gateway's own count. Where they disagree, [Observed.Doubts] says so, and the run is worth nothing.
//
// Start reading at [Lab.Open] and [Bench.Run].
package harness
