// Package stage sets up, on one machine, everything a story about payments needs: a database, a simulated gateway that
// answers over HTTP, the service itself and a shop that uses it. The demo, the lab and tests of the whole service play
// on it.
//
// Everything listens on the loopback interface only. Start reading at Set.
package stage
