package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
	"daesa/reconcile"
)

// books is what both books say at one moment: the identity, the invariants, the sums, the testers' credits.
type books struct {
	sum        reconcile.Sum
	orders     reconcile.OrderRoll
	verdict    reconcile.Verdict
	reasons    []string
	violations []ledger.Violation
	booked     booked
	gateway    booked // the same by the gateway's own count
	astray     int    // testers whose balance is not what it must be
	start      int64  // all testers together, before anything was sold
	balance    int64
}

// booked is the money that moved, in number and in won.
type booked struct {
	Captures int   `db:"captures"`
	Captured int64 `db:"captured"`
	Cancels  int   `db:"cancels"`
	Canceled int64 `db:"canceled"`
}

// String writes numbers and won.
func (b booked) String() string {
	return fmt.Sprintf("%d captures of %d won and %d cancels of %d won", b.Captures, b.Captured, b.Cancels, b.Canceled)
}

// books reads the gateway's list, audits everything and asks every witness of the money.
func (b *bench) books(ctx context.Context) (books, error) {
	var found books
	if err := b.App.ReadList(ctx); err != nil {
		return found, fmt.Errorf("read the gateway's list: %w", err)
	}
	statement, err := b.App.AuditAll(ctx)
	if err != nil {
		return found, err
	}
	found.verdict, found.reasons = statement.Verdict, statement.Reasons
	for _, sum := range statement.Sums {
		if sum.Currency == ledger.KRW {
			found.sum = sum
		}
	}
	for _, roll := range statement.Orders {
		if roll.Currency == ledger.KRW {
			found.orders = roll
		}
	}
	if found.violations, err = ledger.Check(ctx, b.App.DB()); err != nil {
		return found, err
	}
	if found.booked, err = b.sums(ctx); err != nil {
		return found, err
	}
	t := b.Sim.Totals()
	found.gateway = booked{t.Captures, t.Captured["KRW"], t.Cancels, t.Canceled["KRW"]}
	return found, b.credits(ctx, &found)
}

func (b *bench) sums(ctx context.Context) (booked, error) {
	rows, err := b.meter.Query(ctx, `
		SELECT (SELECT count(*)::int FROM captures) AS captures,
			(SELECT COALESCE(sum(amount), 0)::bigint FROM captures) AS captured,
			(SELECT count(*)::int FROM cancels) AS cancels,
			(SELECT COALESCE(sum(amount), 0)::bigint FROM cancels) AS canceled`)
	if err != nil {
		return booked{}, fmt.Errorf("sum up the books: %w", err)
	}
	sums, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[booked])
	if err != nil {
		return booked{}, fmt.Errorf("sum up the books: %w", err)
	}
	return sums, nil
}

// credits asks for every tester's balance, as a customer would. It must be what it was before the sale, and above
// that what was granted with payments whose cancel is not applied yet.
func (b *bench) credits(ctx context.Context, found *books) error {
	applied, err := b.applied(ctx)
	if err != nil {
		return err
	}
	want := map[string]int64{}
	for tester, start := range b.testers {
		want[tester] = start
		found.start += start
	}
	for i, p := range b.payments {
		if !applied[p.key] {
			want[b.tester(i)] += soldCredits
		}
	}
	for tester, expected := range want {
		balance, err := b.Shop.Credits(ctx, tester)
		if err != nil {
			return err
		}
		found.balance += balance
		if balance != expected {
			found.astray++
		}
	}
	return nil
}

// applied lists the payments whose cancel is in our books.
func (b *bench) applied(ctx context.Context) (map[string]bool, error) {
	rows, err := b.meter.Query(ctx, `SELECT DISTINCT payment_key FROM cancels`)
	if err != nil {
		return nil, fmt.Errorf("read the canceled payments: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the canceled payments: %w", err)
	}
	found := make(map[string]bool, len(keys))
	for _, key := range keys {
		found[key] = true
	}
	return found, nil
}

// identity writes the identity in orders.
func (b books) identity() string {
	return fmt.Sprintf("%d = %d canceled + %d pending", b.orders.Gateway, b.orders.Canceled, b.orders.Pending)
}

// creditsText writes what the testers hold.
func (b books) creditsText() string {
	if b.balance == b.start {
		return fmt.Sprintf("%d, as before the sale", b.balance)
	}
	return fmt.Sprintf("%d, of which %d are owed back", b.balance, b.balance-b.start)
}

// claimBooks claims that both books agree, with so many cancels pending.
func claimBooks(r *result, when string, b books, pending int) {
	r.Claim(b.sum.Holds() && b.sum.Unexplained.Count == 0 && b.sum.Pending.Count == pending &&
		b.orders.Gateway == b.orders.Canceled+b.orders.Pending,
		"%s: gateway's cancels %d = canceled %d + pending %d, none unexplained, and %d are pending",
		when, b.sum.Gateway.Count, b.sum.Canceled.Count, b.sum.Pending.Count, pending)
	want := reconcile.VerdictReconciled
	if pending > 0 {
		want = reconcile.VerdictPending
	}
	r.Claim(b.verdict == want, "%s: the audit's verdict is %s (it says %s %v)", when, want, b.verdict, b.reasons)
	r.Claim(len(b.violations) == 0, "%s: every invariant holds (%d violations %v)", when, len(b.violations), b.violations)
	r.Claim(b.booked.Captures == b.gateway.Captures && b.booked.Captured == b.gateway.Captured &&
		b.booked.Cancels+pending == b.gateway.Cancels && (pending > 0 || b.booked.Canceled == b.gateway.Canceled),
		"%s: the books hold %s, and %d pending; the gateway counts %s", when, b.booked, pending, b.gateway)
	r.Claim(b.astray == 0 && (pending > 0 || b.balance == b.start),
		"%s: every tester's credits are right (%d in all, %d before the sale)", when, b.balance, b.start)
}
