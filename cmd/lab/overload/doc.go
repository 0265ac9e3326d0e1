// Package overload has the experiments with load: what becomes of payments, notices and look-ups when the gateway is
// slow, silent or flooded, or we are.
//
// Each runs the same binary in several arms. An arm called *before* is our stand-in for the servers that others
// measured: no cap, a hundred requests in one line, no breaker. What is compared is the shape; absolute times are of the
// machine.
package overload
