package alerts

import (
	"testing"

	"daesa/internal/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Run(m) }
