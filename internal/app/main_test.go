package app_test

import (
	"flag"
	"os"
	"testing"

	_ "pgregory.net/rapid" // registers the flag set below

	"daesa/internal/app"
	"daesa/internal/postgres/postgrestest"
)

// programArgument makes the test binary be the program itself, for tests that send it signals.
const programArgument = "run-as-daesa"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == programArgument {
		os.Exit(app.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	// One history of the whole service costs as much as thousands of calls of a function. -rapid.checks asks for more.
	if err := flag.Set("rapid.checks", "10"); err != nil {
		panic(err)
	}
	postgrestest.Run(m)
}
