package reconcile_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daesa/ledger"
	"daesa/ledger/seal"
	"daesa/reconcile"
)

// sealer cuts the journal of the days that have ended, and seals it where there is a key.
func (s *shop) sealer(withKey bool) func() {
	s.t.Helper()
	cfg := seal.Config{
		DB: s.db, Metrics: seal.NewMetrics(prometheus.NewPedanticRegistry()), Log: slog.New(slog.DiscardHandler), Now: s.clock.Now,
		DatabaseNow: func(context.Context) (time.Time, error) { return s.clock.Now(), nil },
	}
	if withKey {
		path := filepath.Join(s.t.TempDir(), "seal.pem")
		key, err := seal.GenerateKey(path)
		s.must(err)
		cfg.Key, cfg.Witness = key, seal.NewWitness(path+".heads")
	}
	sealer, err := seal.New(cfg)
	s.must(err)
	return func() {
		s.t.Helper()
		s.must(sealer.Run(s.t.Context()))
	}
}

// newestHead is the hash of the newest head.
func (s *shop) newestHead() string {
	s.t.Helper()
	head, err := ledger.LastHead(s.t.Context(), s.db)
	s.must(err)
	return head.Hash.String()
}

// requireSealed holds what is told of a signature against how its bookings are sealed: the head that it names and the
// head that is over them, empty for none.
func (s *shop) requireSealed(got reconcile.Signature, how reconcile.Sealed, names, by string) {
	s.t.Helper()
	text := func(hash *string) string {
		if hash == nil {
			return ""
		}
		return *hash
	}
	if got.Sealed != how || text(got.JournalHead) != names || text(got.SealedBy) != by {
		s.t.Errorf("got %s, names %.12s, sealed by %.12s; want %s, %.12s, %.12s", got.Sealed, text(got.JournalHead), text(got.SealedBy), how, names, by)
	}
}

// TestSign_BookedAfterTheCut: a signature names the newest head there is. A cancel of the day that was booked after the cut
// is in what is signed and not under that head; the signature says so until a head is over it, and names that head from
// then on. What was signed is not touched.
func TestSign_BookedAfterTheCut(t *testing.T) {
	t.Parallel()
	s, pending, _ := closed(t)
	sealNow := s.sealer(true)
	sealNow()
	first := s.newestHead()
	s.requireSealed(s.signed(kim, ""), reconcile.SealedAtSigning, first, first)

	s.record(s.ask(ledger.ChannelSweep, pending))
	s.clock.Advance(2 * time.Hour)
	s.close()
	late := s.signed(kim, "")
	s.requireSealed(late, reconcile.SealedNotYet, first, "")
	if newest := s.number(`SELECT max(transaction_id) FROM journal_transactions`); late.BookedUpTo == nil || *late.BookedUpTo != int64(newest) {
		t.Errorf("got bookings up to %v, want %d", late.BookedUpTo, newest)
	}
	kept := s.text(`SELECT string_agg(x::text, ' ' ORDER BY signoff_id) FROM day_signoffs x`)

	s.overnight("2026-12-01")
	sealNow()
	second := s.newestHead()
	s.overnight("2026-12-02")
	sealNow()
	third := s.newestHead()
	d := s.detail()
	s.requireSealed(d.Signatures[0], reconcile.SealedAtSigning, first, first)
	s.requireSealed(d.Signatures[1], reconcile.SealedSince, first, second)
	s.requireSealed(s.signed(lee, ""), reconcile.SealedAtSigning, third, second)
	days, err := s.Auditor.Days(t.Context(), monday, monday)
	s.must(err)
	s.requireSealed(*days[0].Signature, reconcile.SealedAtSigning, third, second)
	if now := s.text(`SELECT string_agg(x::text, ' ' ORDER BY signoff_id) FROM day_signoffs x WHERE signed_by = 'os:kim'`); now != kept {
		t.Errorf("what was signed changed:\n%s\n%s", kept, now)
	}
}

// TestSign_BeforeTheFirstSeal: without a key nothing is sealed, and a signature names no head. The first head that a key
// makes later is over what was signed.
func TestSign_BeforeTheFirstSeal(t *testing.T) {
	t.Parallel()
	s, _, _ := closed(t)
	s.requireSealed(s.signed(kim, ""), reconcile.SealedNotYet, "", "")
	s.sealer(false)()
	s.requireSealed(s.detail().Signatures[0], reconcile.SealedNotYet, "", "")
	s.sealer(true)()
	s.requireSealed(s.detail().Signatures[0], reconcile.SealedSince, "", s.newestHead())

	s.exec(`INSERT INTO day_signoffs (day, signed_by, signed_at, run_id, digest, facts)
		SELECT day, 'os:park', signed_at, run_id, digest, facts FROM day_signoffs`)
	s.requireSealed(s.detail().Signatures[1], reconcile.SealedUnrecorded, "", "")
}
