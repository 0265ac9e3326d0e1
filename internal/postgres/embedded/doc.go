// Package embedded runs a private PostgreSQL server from the programs installed on this machine, for a demonstration,
// for tests, and for a service that fits on one machine.
//
// The server listens on a Unix socket inside its own folder, where the file system decides who may connect, and on a
// loopback port with a random password. It works for an ordinary user and for root, who must not run PostgreSQL and
// hands it to an unprivileged account.
//
// A server outlives a program that was killed, and is adopted by the next one that starts in the same folder. Several
// programs may share a folder: the first starts the server, the last to stop ends it.
//
// Start reading at [Start].
package embedded
