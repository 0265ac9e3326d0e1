package app_test

import (
	"flag"
	"testing"

	_ "pgregory.net/rapid" // registers the flag set below

	"daesa/internal/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	// One history of the whole service costs as much as thousands of calls of a function. -rapid.checks asks for more.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	postgrestest.Run(m)
}
