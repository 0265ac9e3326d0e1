package app_test

import (
	"strings"
	"testing"

	"daesa/internal/app"
	"daesa/internal/postgres/postgrestest"
)

// TestRetention: a number of days that would take away what is still needed stops the start with a sentence.
func TestRetention(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewURL(t)
	for says, keep := range map[string]app.RetentionDays{
		"7 days":  {KeepBodies: 6},
		"40 days": {KeepWork: 39},
		"a day":   {KeepEvents: 6},
		"36,500":  {KeepRuns: -1},
	} {
		a, err := app.New(t.Context(), app.Config{
			DatabaseURL: url, TossSecretKey: secretKey, Listen: "127.0.0.1:0", PrivateListen: "127.0.0.1:0", Retention: keep,
		})
		if err == nil {
			_ = a.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got %v, want %q", keep, err, says)
		}
	}
}
