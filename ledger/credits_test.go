package ledger_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/ledger/ledgertest"
)

func (b *books) spend(id, customer string, amount int64) (a ledger.CreditAccount, err error) {
	err = b.try(func(tx pgx.Tx) (err error) {
		a, err = b.ledger.Spend(b.t.Context(), tx, id, customer, amount)
		return err
	})
	return a, err
}

func (b *books) credits() ledger.CreditAccount {
	b.t.Helper()
	a, err := ledger.LoadCredits(b.t.Context(), b.pool, "cus_1")
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func TestSpend(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	for _, c := range []struct {
		name, id, customer string
		amount             int64
		want               error
		balance            int64
	}{
		{"a part", "s1", "cus_1", 3, nil, 4},
		{"the same again", "s1", "cus_1", 3, nil, 4},
		{"the id for another amount", "s1", "cus_1", 4, ledger.ErrSpendDiffers, 4},
		{"too much", "s2", "cus_1", 5, ledger.ErrCreditsShort, 4},
		{"nothing", "s2", "cus_1", 0, ledger.ErrCreditsShort, 4},
		{"below nothing", "s2", "cus_1", -1, ledger.ErrCreditsShort, 4},
		{"a customer never seen", "s2", "cus_2", 1, ledger.ErrNotFound, 4},
		{"all of it, with an id that failed before", "s2", "cus_1", 4, nil, 0},
		{"from nothing", "s3", "cus_1", 1, ledger.ErrCreditsShort, 0},
	} {
		if _, err := b.spend(c.id, c.customer, c.amount); !errors.Is(err, c.want) || b.credits().Balance != c.balance {
			t.Errorf("%s: got %v and a balance of %d, want %v and %d", c.name, err, b.credits().Balance, c.want, c.balance)
		}
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestInvariantI8_SpendsAtOnce: of many spends as many succeed as the balance covers, also when each is sent twice.
func TestInvariantI8_SpendsAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	var short atomic.Int32
	together(t, 20, func(i int) error {
		_, err := b.spend(fmt.Sprintf("s%d", i/2), "cus_1", 2)
		if errors.Is(err, ledger.ErrCreditsShort) {
			short.Add(1)
			return nil
		}
		return err
	})
	if got := b.credits(); got.Spent != 6 || got.Balance != 1 || short.Load() != 14 {
		t.Errorf("got %+v and %d refused, want 3 spends of 2 and 14 refused", got, short.Load())
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_RevokesWhatWasSpent: a cancel is never lost because its credits are gone.
func TestRecord_RevokesWhatWasSpent(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	if _, err := b.spend("s1", "cus_1", 5); err != nil {
		t.Fatal(err)
	}
	if r := b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 10_000))); r.Applied[0].CreditsRevoked != 1 || len(b.mismatches()) != 0 {
		t.Errorf("got %+v and mismatches %v, want one credit revoked and none", r.Applied, b.mismatches())
	}
	r := b.record(b.captured("pk_1", "order_1", 50_000, done("c1", 10_000), done("c2", 40_000)))
	if r.Outcome != ledger.OutcomeApplied || b.credits().Balance != -5 {
		t.Errorf("got %s and a balance of %d, want applied and -5", r.Outcome, b.credits().Balance)
	}
	if diff := cmp.Diff([]string{"credits_already_spent 1"}, b.mismatches()); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
	ledgertest.RequireSound(t, b.pool)
}

// TestRecord_RevokeRacesSpend: whichever comes first, all is counted.
func TestRecord_RevokeRacesSpend(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.sold("pk_1", "order_1", 50_000, 7)
	together(t, 2, func(i int) error {
		if i == 0 {
			return b.try(func(tx pgx.Tx) error {
				_, err := b.ledger.Record(t.Context(), tx, b.captured("pk_1", "order_1", 50_000, done("c1", 50_000)))
				return err
			})
		}
		if _, err := b.spend("s1", "cus_1", 7); err != nil && !errors.Is(err, ledger.ErrCreditsShort) {
			return err
		}
		return nil
	})
	switch got := b.credits(); {
	case got.Spent == 0 && got.Balance == 0 && len(b.mismatches()) == 0:
	case got.Spent == 7 && got.Balance == -7 && len(b.mismatches()) == 1:
	default:
		t.Errorf("got %+v and mismatches %v", got, b.mismatches())
	}
	ledgertest.RequireSound(t, b.pool)
}
