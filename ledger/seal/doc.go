// Package seal makes the journal evidence. It promises three things:
//
//   - At the end of each business day the journal is cut into a section that nothing can be added to afterwards
//     (section.go), and the section is sealed by a head: hashed, chained to the head before, signed with a key that the
//     database never sees (sealer.go). Whoever keeps one head outside can prove every entry up to it.
//   - Each head is also written to a file beside the key (witness.go). A service that finds its newest witnessed head
//     gone from the database refuses to seal: it would put its name under a shortened history.
//   - Verify (verify.go) recomputes the journal, the heads, the states and the credits from the entries, in one pass
//     with little memory, and names the first wrong entry.
//
// docs/journal.md says which bytes are hashed, how to verify them with nothing but the public key, and what tampering
// no signature can show.
package seal
