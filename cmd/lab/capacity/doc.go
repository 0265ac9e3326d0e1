// Package capacity has the experiment that asks how many cancels the service can apply in a second, and what each of
// them costs.
//
// The measure is pgbench, which runs the very statements that the service runs for one cancel, on the same server: read
// off the line between the two (recorder.go), not written by hand, and with the names of each payment put in (script.go).
// Payments are copies of one that the service itself has sold (copies.go). Start reading at limit.go.
package capacity
