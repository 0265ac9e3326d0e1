// Package postgres is all this program knows about its database as a technology, and nothing about what is kept in it.
//
// It promises four things. [Open] gives a pool in which nothing waits for ever. [InTx] is the only way to open a
// transaction: it costs no round trip of its own to begin, is tried again after a serialization failure or a deadlock,
// and says honestly when the outcome of a commit is not known. [Violates] tells constraints apart by name. And
// [IsUnavailable] tells "the database cannot answer now" from "the statement is wrong".
//
// Start reading at [InTxWith].
package postgres
