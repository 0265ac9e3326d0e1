package seal_test

import (
	"testing"

	"daesa/internal/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }
