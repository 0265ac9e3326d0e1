// Package opening takes payments over from the system before this one, so that their later cancels work like any other.
//
// Whatever names the payments, a file (csv.go) or the mirror of the gateway's list (mirror.go), only claims something.
// The evidence is the gateway's own answer, asked for each payment (import.go); what differs from the claim is rejected
// with the reason, and nothing of it is written. A payment and the note of what became of its row are written in one
// transaction (rows.go), so an import that died is simply run again. Start with import.go.
package opening
