package webhook_test

import (
	"errors"
	"slices"
	"testing"

	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/webhook"
)

// lastDelivery is the id of the delivery that came last.
func (s *shop) lastDelivery(tb testing.TB) (id int64) {
	tb.Helper()
	if err := s.db.QueryRow(tb.Context(), `SELECT max(delivery_id) FROM deliveries`).Scan(&id); err != nil {
		tb.Fatal(err)
	}
	return id
}

// rows counts what there is in the books, deliveries and jobs.
func (s *shop) rows(tb testing.TB) (text string) {
	tb.Helper()
	if err := s.db.QueryRow(tb.Context(), `
		SELECT string_agg(t, E'\n' ORDER BY t)
		FROM (SELECT 'p ' || p::text FROM payments p UNION ALL SELECT 'o ' || o::text FROM orders o UNION ALL SELECT 'c ' || c::text FROM cancels c
			UNION ALL SELECT 'j ' || j::text FROM journal_entries j UNION ALL SELECT 'w ' || w::text FROM work w
			UNION ALL SELECT 'm ' || m::text FROM mismatches m UNION ALL SELECT 'e ' || e::text FROM events e
			UNION ALL SELECT 'd ' || d::text FROM deliveries d UNION ALL SELECT 'r ' || r.id FROM river.river_job r) AS every (t)`).Scan(&text); err != nil {
		tb.Fatal(err)
	}
	return text
}

func tables(changes []ledger.RowChange) (all []string) {
	for _, c := range changes {
		all = append(all, c.Table)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestReplay_AFailedCancel: a notice whose question failed is seen first and then applied, from what is kept of it. Replayed
// once more it says that the books have it.
func TestReplay_AFailedCancel(t *testing.T) {
	t.Parallel()
	s := open(t, options{paths: quick()})
	key := s.paid(t, "order-0001", 50_000)
	_, notice := s.cancel(t, key, 20_000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Reset, N: -1})
	if got := s.send(t, notice); got.status != 502 {
		t.Fatalf("got %+v, want 502", got)
	}
	id := s.lastDelivery(t)
	if _, err := s.handler.Replay(t.Context(), id, true); !errors.Is(err, webhook.ErrUnasked) {
		t.Fatalf("got %v from a silent gateway, want ErrUnasked", err)
	}
	s.sim.Heal()
	before := s.rows(t)
	seen, err := s.handler.Replay(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	if seen.Was != webhook.OutcomeQueryFailed || seen.Outcome != webhook.OutcomeAppliedPartial || seen.Applied || seen.Recorded != ledger.OutcomeApplied {
		t.Errorf("got %+v", seen)
	}
	if got := tables(seen.Changes); !slices.Contains(got, "cancels") || !slices.Contains(got, "journal_entries") || !slices.Contains(got, "work") {
		t.Errorf("shows rows of %v", got)
	}
	if after := s.rows(t); after != before {
		t.Errorf("a rehearsal left\n%s\nof\n%s", after, before)
	}
	done, err := s.handler.Replay(t.Context(), id, true)
	if err != nil || !done.Applied || done.Outcome != seen.Outcome || !slices.Equal(tables(done.Changes), tables(seen.Changes)) {
		t.Fatalf("got %+v, %v, want what was shown: %+v", done, err, seen)
	}
	s.wantBooks(t, key, ledger.StatusPartiallyCanceled, 20_000, 1)
	again, err := s.handler.Replay(t.Context(), id, true)
	if err != nil || again.Outcome != webhook.OutcomeDuplicateSkipped || len(again.Changes) != 0 {
		t.Errorf("got %+v, %v, want a duplicate that changes nothing", again, err)
	}
	var channel string
	if err := s.db.QueryRow(t.Context(), `SELECT channel FROM cancels`).Scan(&channel); err != nil || channel != string(ledger.ChannelManual) {
		t.Errorf("the cancel came by %q, %v, want a person's question", channel, err)
	}
	if s.lastDelivery(t) != id {
		t.Error("a replay is a delivery of its own")
	}
}

// TestReplay_OfEachOutcome: what a delivery came to is what it comes to again while nothing has changed, and what cannot
// be taken up says so.
func TestReplay_OfEachOutcome(t *testing.T) {
	t.Parallel()
	s := open(t, options{paths: quick()})
	key := s.paid(t, "order-0001", 50_000)
	paid := s.lastNotice(t)
	forged := encoded(t, notice(whole(key, "order-0001", fields{
		"status": "CANCELED", "balanceAmount": 0, "cancels": []fields{cancelOf("tx_forged", 50000, nil)},
	}), nil))
	for _, test := range []struct {
		name string
		body []byte
		was  webhook.Outcome
		want webhook.Outcome
		err  error
	}{
		{"a status that is no cancel", paid, webhook.OutcomeStatusIgnored, webhook.OutcomeStatusIgnored, nil},
		{"a cancel that there is not", forged, webhook.OutcomeStateMismatch, webhook.OutcomeStateMismatch, nil},
		{"a payment never seen", encoded(t, notice(whole("pk_never", "order-9999", fields{"status": "CANCELED"}), nil)), webhook.OutcomePaymentNotFound, "", webhook.ErrNothingKept},
		{"not a notice", []byte("{"), webhook.OutcomeBodyUnparsable, "", webhook.ErrNothingKept},
	} {
		s.send(t, test.body)
		id := s.lastDelivery(t)
		var was webhook.Outcome
		if err := s.db.QueryRow(t.Context(), `SELECT outcome FROM deliveries WHERE delivery_id = $1`, id).Scan(&was); err != nil || was != test.was {
			t.Fatalf("%s: got %s, %v, want %s", test.name, was, err, test.was)
		}
		before := s.rows(t)
		for _, keep := range []bool{false, true} {
			done, err := s.handler.Replay(t.Context(), id, keep)
			if !errors.Is(err, test.err) || done.Outcome != test.want || len(done.Changes) != 0 {
				t.Errorf("%s: got %+v, %v, want %s, %v and no row changed", test.name, done, err, test.want, test.err)
			}
		}
		if after := s.rows(t); after != before {
			t.Errorf("%s: the replay left\n%s\nof\n%s", test.name, after, before)
		}
	}
	if _, err := s.handler.Replay(t.Context(), 1<<40, false); !errors.Is(err, webhook.ErrNoDelivery) {
		t.Errorf("got %v, want ErrNoDelivery", err)
	}
	s.wantBooks(t, key, ledger.StatusDone, 0, 0)
}

// TestReplay_BesideTheSameNotice: replays and redeliveries of one notice at once apply its cancel once.
func TestReplay_BesideTheSameNotice(t *testing.T) {
	t.Parallel()
	s := open(t, options{paths: quick()})
	key := s.paid(t, "order-0001", 50_000)
	_, notice := s.cancel(t, key, 20_000)
	s.sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Reset, N: 1})
	s.send(t, notice)
	id := s.lastDelivery(t)
	results := make(chan error, 12)
	for i := range cap(results) {
		go func() {
			if i%3 == 0 {
				s.send(t, notice)
				results <- nil
				return
			}
			_, err := s.handler.Replay(t.Context(), id, i%3 == 1)
			results <- err
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	s.wantBooks(t, key, ledger.StatusPartiallyCanceled, 20_000, 1)
}
