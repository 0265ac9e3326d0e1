// Command daesa runs the service and its commands; see daesa -help.
package main

import (
	"os"

	"daesa/internal/app"
)

func main() { os.Exit(app.Main(os.Args[1:], os.Stdout, os.Stderr)) }
