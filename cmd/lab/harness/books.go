package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"daesa/ledger"
	"daesa/reconcile"
)

// Books is what both books say at one moment, by the program's own commands: the gateway's list is read, then everything
// is audited.
type Books struct {
	Verdict    reconcile.Verdict
	Reasons    []string
	Orders     reconcile.OrderRoll // the identity, in orders
	Sum        reconcile.Sum       // and in cancels
	Violations []ledger.Violation  // of the invariants
}

// Identity writes the identity in orders.
func (b Books) Identity() string {
	return fmt.Sprintf("%d = %d canceled + %d pending", b.Orders.Gateway, b.Orders.Canceled, b.Orders.Pending)
}

// Sound reports whether the identity holds, nothing is unexplained and every invariant stands.
func (b Books) Sound() bool {
	return b.Sum.Holds() && b.Sum.Unexplained.Count == 0 && b.Orders.Gateway == b.Orders.Canceled+b.Orders.Pending &&
		len(b.Violations) == 0 && (b.Verdict == reconcile.VerdictReconciled || b.Verdict == reconcile.VerdictPending)
}

// Books reads the gateway's list and audits everything.
func (b *Bench) Books(ctx context.Context) (found Books, err error) {
	from := time.Now().In(time.FixedZone("KST", 9*60*60)).Add(-24 * time.Hour).Format(time.DateOnly)
	if _, err := b.command(ctx, "reconcile", "--again", "--from", from); err != nil {
		return found, err
	}
	printed, err := b.command(ctx, "audit", "--json")
	if err != nil {
		return found, err
	}
	var statement reconcile.Statement
	if err := json.Unmarshal(printed, &statement); err != nil {
		return found, fmt.Errorf("read the statement: %w", err)
	}
	found.Verdict, found.Reasons = statement.Verdict, statement.Reasons
	for _, sum := range statement.Sums {
		if sum.Currency == ledger.KRW {
			found.Sum = sum
		}
	}
	for _, roll := range statement.Orders {
		if roll.Currency == ledger.KRW {
			found.Orders = roll
		}
	}
	found.Violations, err = ledger.Check(ctx, b.DB)
	return found, err
}

// command runs a command of the program over the bench's database. That the books do not agree is what it is asked for,
// and no failure.
func (b *Bench) command(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, b.lab.Programs.daesa, args...) //nolint:gosec // our own program
	command.Env = environment("DAESA_DATABASE_URL="+b.address, "TOSS_BASE_URL="+b.Gateway.URL, "TOSS_SECRET_KEY="+secretKey)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	err := command.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && (!ended || out.Len() == 0) {
		return nil, fmt.Errorf("daesa %s: %w: %s", strings.Join(args, " "), err, lastOf(said.Bytes()))
	}
	return out.Bytes(), nil
}
