// Package app is the program: New wires the features over one database and one gateway, Run serves until its
// context ends, Stop ends what is in flight within bounds. cmd/daesa, the demo, the lab and the end-to-end tests
// all run the same App.
//
// Three files are the indexes of the service: routes.go (everything it answers), jobs.go (everything it does by
// itself), problems.go (every error answer). Only this package reads the environment.
package app
