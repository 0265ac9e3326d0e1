package seal_test

import (
	"context"
	"crypto/ed25519"
	"strings"
	"testing"

	"daesa/ledger/seal"
)

// conflicting makes the first reading of the captures end as a standby ends it whose recovery was in its way. The lock
// outlives the transaction and says that it was done once.
const conflicting = `
	CREATE FUNCTION conflict() RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		IF EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
			RETURN true;
		END IF;
		PERFORM pg_advisory_lock(4711);
		RAISE EXCEPTION 'canceling statement due to conflict with recovery' USING ERRCODE = '40001';
	END $$;
	ALTER TABLE captures RENAME TO captures_kept;
	CREATE VIEW captures AS SELECT payment_key, number, currency, amount, captured_at, recorded_at, reversed_at FROM captures_kept WHERE conflict();`

// TestVerify_ConflictWithRecovery: books that could not be read to the end are neither whole nor broken.
func TestVerify_ConflictWithRecovery(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.days()
	s.superuser(conflicting)
	options := seal.Options{Keys: []ed25519.PublicKey{s.key.Public()}, Now: s.now}
	report, err := seal.Verify(context.WithoutCancel(t.Context()), s.db, options)
	if err == nil {
		t.Fatalf("got %v from half a reading, want an error", report.Breaks)
	}
	if !strings.Contains(err.Error(), "conflict with recovery") {
		t.Errorf("got %v, want what the server said", err)
	}
	if report := s.verify(); !report.Whole() {
		t.Errorf("got %v afterwards, want sound books whole", report.Breaks)
	}
}
