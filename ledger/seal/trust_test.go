package seal_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/seal"
)

// sealWith seals once with a key and a witness.
func (s *shop) sealWith(key *seal.Key, heads string) error {
	s.t.Helper()
	return s.sealerOn(s.db, key, heads).Run(s.t.Context())
}

func (s *shop) otherKey() *seal.Key {
	s.t.Helper()
	key, err := seal.GenerateKey(filepath.Join(s.t.TempDir(), "other.pem"))
	s.must(err)
	return key
}

// TestSealer_AHeadByAnUnknownKey: somebody without the key changes what is not sealed yet and seals it with a key of their
// own. The service neither witnesses that head nor builds on it.
func TestSealer_AHeadByAnUnknownKey(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.sell(50_000, 0)
	s.nextDay()
	s.seal()
	s.sell(70_000, 0)
	s.nextDay()
	copied := filepath.Join(t.TempDir(), "heads")
	s.must(seal.NewWitness(copied).Create(s.verify()))
	thief := s.otherKey()
	s.oldKeys = []ed25519.PublicKey{s.key.Public()}
	s.must(s.sealWith(thief, copied))
	s.oldKeys = nil
	s.nextDay()
	before, err := os.ReadFile(s.heads)
	s.must(err)
	if err := s.sealWith(s.key, s.heads); !errors.Is(err, seal.ErrBroken) || !strings.Contains(err.Error(), thief.ID()) {
		t.Errorf("got %v, want %v that names the key", err, seal.ErrBroken)
	}
	after, err := os.ReadFile(s.heads)
	s.must(err)
	if string(before) != string(after) || len(s.chain()) != 2 {
		t.Errorf("got %v and the witness %s, want nothing built on the stranger's head", s.chain(), after)
	}
}

// TestSealer_ChangeOfKeys: the new key goes on with the witness of the old one and needs no old key; an instance whose
// witness lags behind does.
func TestSealer_ChangeOfKeys(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.sell(50_000, 0)
	s.nextDay()
	s.seal()
	lagging := s.heads + ".lagging"
	s.must(seal.NewWitness(lagging).Create(s.verify()))
	s.nextDay()
	s.seal()
	s.nextDay()
	newKey := s.otherKey()
	s.must(s.sealWith(newKey, s.heads))
	s.nextDay()
	if err := s.sealWith(newKey, lagging); !errors.Is(err, seal.ErrBroken) {
		t.Errorf("a witness that lags, without the old key: got %v, want %v", err, seal.ErrBroken)
	}
	s.oldKeys = []ed25519.PublicKey{s.key.Public()}
	s.must(s.sealWith(newKey, lagging))
	if got := len(s.chain()); got != 4 {
		t.Errorf("got %v, want 4 heads", s.chain())
	}
}

// TestSealer_AWitnessThatKnowsNothing is refused beside a sealed journal until it is made from a verified chain.
func TestSealer_AWitnessThatKnowsNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.sell(50_000, 0)
	s.nextDay()
	s.seal()
	s.must(s.sealWith(s.key, s.heads+".first")) // one head of our own: a crash before its line looks like this
	s.nextDay()
	s.seal()
	fresh := s.heads + ".fresh"
	for name, make := range map[string]func(){
		"no file":       func() {},
		"an empty file": func() { s.must(os.WriteFile(fresh, nil, 0o600)) },
	} {
		make()
		if err := s.sealWith(s.key, fresh); !errors.Is(err, seal.ErrBroken) || !strings.Contains(err.Error(), "--new-heads-file") {
			t.Errorf("%s: got %v, want a refusal that says what to do", name, err)
		}
		if got := s.gauge("daesa_seal_head_broken"); got != 1 {
			t.Errorf("%s: got head broken %d, want 1", name, got)
		}
		s.must(os.RemoveAll(fresh))
	}
	if err := seal.NewWitness(fresh).Create(s.verifyWith(seal.Options{})); err == nil {
		t.Error("got a witness of heads whose signatures nobody checked, want a refusal")
	}
	s.must(seal.NewWitness(fresh).Create(s.verify()))
	if err := seal.NewWitness(fresh).Create(s.verify()); err == nil {
		t.Error("got a witness over another, want a refusal")
	}
	s.nextDay()
	s.must(s.sealWith(s.key, fresh))
}

// TestSealer_ClocksThatLieApart: a day is cut once, so it must have ended by both clocks, and these must agree.
func TestSealer_ClocksThatLieApart(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.seal()
	end := ledger.DayOf(s.now).End()
	for _, c := range []struct {
		name        string
		ours, ahead time.Duration
		want        error
		heads       int
	}{
		{"two hours ahead", 2 * time.Minute, -2 * time.Hour, seal.ErrClocks, 1},
		{"the database ahead", -time.Hour, 2 * time.Hour, seal.ErrClocks, 1},
		{"a little ahead over the end", 20 * time.Second, -30 * time.Second, nil, 1},
		{"a little behind over the end", -10 * time.Second, 30 * time.Second, nil, 1},
		{"both behind the end", 20 * time.Second, -10 * time.Second, nil, 2},
	} {
		s.now, s.databaseAhead = end.Add(c.ours), c.ahead
		if err := s.sealWith(s.key, s.heads); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if got := len(s.chain()); got != c.heads {
			t.Errorf("%s: got %d heads, want %d", c.name, got, c.heads)
		}
	}
}

// TestVerify_ThroughWithHeadsKept: heads kept of later days are no break, and a day that was cut off is one.
func TestVerify_ThroughWithHeadsKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.days()
	witnessed, err := seal.NewWitness(s.heads).Read()
	s.must(err)
	last := witnessed[len(witnessed)-1]
	o := seal.Options{
		Keys: []ed25519.PublicKey{s.key.Public()}, Witnessed: witnessed, Heads: []ledger.Digest{last.Hash}, Through: witnessed[1].Day,
	}
	if report := s.verifyWith(o); !report.Whole() || report.Heads != 2 {
		t.Errorf("got %v of %d heads, want 2 that are whole", report.Breaks, report.Heads)
	}
	s.do(func(tx pgx.Tx) error {
		_, err := tx.Exec(context.WithoutCancel(t.Context()), `SET LOCAL session_replication_role = replica;
			DELETE FROM journal_marks WHERE sequence = 3; DELETE FROM journal_heads WHERE sequence = 3`)
		return err
	})
	o.Through = last.Day
	for name, without := range map[string]seal.Options{
		"witnessed": {Keys: o.Keys, Through: o.Through, Witnessed: o.Witnessed},
		"kept":      {Keys: o.Keys, Through: o.Through, Heads: o.Heads},
	} {
		if report := s.verifyWith(without); report.Whole() {
			t.Errorf("%s: got whole with its head cut off", name)
		}
	}
}
