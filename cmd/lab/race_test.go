//go:build race

package main

// raceFlags are for building programs the way this test is built.
func raceFlags() []string { return []string{"-race"} }
