package app_test

import (
	"daesa/internal/app"
	"daesa/internal/postgres/postgrestest"
)

// breakage is how the line to the database breaks.
type breakage = postgrestest.Breakage

func breakages() []breakage { return postgrestest.Breakages() }

// line is the wire between one instance and the database.
type line struct{ *postgrestest.Line }

func newLine() *line { return &line{postgrestest.NewLine()} }

// under makes an instance use the line. Few connections, so that what was warmed up is what is used.
func (l *line) under(c *app.Config) { c.Dial, c.DatabaseMax = l.Dial, 4 }
