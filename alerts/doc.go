// Package alerts ties the Prometheus rules of this folder to the program and to the runbooks: an alert on a metric
// that the program does not have never fires, and one without a runbook wakes somebody who cannot help. There is no
// code here but the tests that keep the three together.
package alerts
