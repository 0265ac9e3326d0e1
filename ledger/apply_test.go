package ledger

import (
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// order1 is the order that the payments of the tests are for; it grants 7 credits.
func order1(s OrderStatus) Order {
	return Order{ID: "order_1", Status: s, Amount: Won(50_000), CustomerID: "cus_1", Credits: 7, ExpiresAt: second(1800)}
}

// applied decides and works out, as Record does.
func applied(p Payment, o Order, holder string, seen Observation) effects {
	return workOut(p, o, holder, seen, Decide(p, seen), second(200))
}

// posted writes the journal facts as one line each.
func posted(facts []journalFact) []string {
	var lines []string
	for _, f := range facts {
		lines = append(lines, string(f.Kind)+" "+f.Reference+": "+string(f.Debit)+" from "+string(f.Credit)+" "+f.Amount.String())
	}
	return lines
}

func TestWorkOut_Journal(t *testing.T) {
	t.Parallel()
	granted := with(deposited(), func(p *Payment) { p.CreditsGranted = 7 })
	for _, c := range []struct {
		name   string
		before Payment
		holder string
		seen   Observation
		want   []string
		order  OrderStatus
	}{
		{"a capture earns and grants", bought(StatusConfirming), "", shown(EvidenceCaptured), []string{
			"capture pk_1#1: gateway_receivable from sales 50000 KRW", "credit_grant pk_1#1: credits_issued from customer_credits 7 CREDIT",
		}, OrderPaid},
		{"a part gives back its share", granted, "", shown(EvidenceCaptured, part(1, 25_000)), []string{
			"cancel c1: refunds from gateway_receivable 25000 KRW", "credit_revoke c1: customer_credits from credits_issued 3 CREDIT",
		}, OrderPartiallyCanceled},
		{"a small part revokes nothing", granted, "", shown(EvidenceCaptured, part(1, 7_000)), []string{
			"cancel c1: refunds from gateway_receivable 7000 KRW",
		}, OrderPartiallyCanceled},
		{"a void moves nothing", bought(StatusWaitingForDeposit), "", shown(EvidenceVoided), nil, OrderCanceled},
		{
			"a fallen deposit takes everything back", with(granted, func(p *Payment) { p.WaitingSeenAt, p.FallShownAt = second(20), second(19) }), "",
			with(shown(EvidenceWaiting), func(o *Observation) { o.VirtualAccount = true }),
			[]string{
				"deposit_reversal pk_1#1: sales from gateway_receivable 50000 KRW", "credit_revoke reversal:pk_1#1: customer_credits from credits_issued 7 CREDIT",
			},
			OrderPending,
		},
		{"money for an order that another payment holds", bought(StatusFailed), "pk_0", shown(EvidenceCaptured), []string{
			"capture pk_1#1: gateway_receivable from suspense 50000 KRW",
		}, OrderPaid},
		{"a surplus given back", with(paid(), func(p *Payment) { p.Surplus = true }), "pk_0", shown(EvidenceCaptured, part(1, 50_000)), []string{
			"cancel c1: suspense from gateway_receivable 50000 KRW",
		}, OrderPaid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			order := order1(OrderPending)
			if c.holder != "" || c.before.Status.HoldsMoney() {
				order.Status = OrderPaid
			}
			e := applied(c.before, order, c.holder, c.seen)
			if diff := cmp.Diff(c.want, posted(e.journal)); diff != "" {
				t.Errorf("journal differs (-want +got):\n%s", diff)
			}
			if e.order.Status != c.order {
				t.Errorf("got order %s, want %s", e.order.Status, c.order)
			}
			if e.after.Surplus != (c.holder != "") {
				t.Errorf("got surplus %t", e.after.Surplus)
			}
		})
	}
}

func TestWorkOut_Findings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before Payment
		order  OrderStatus
		holder string
		seen   Observation
		want   []Kind
	}{
		{"paid in time", bought(StatusConfirming), OrderPending, "", shown(EvidenceCaptured), nil},
		{"paid after expiry", bought(StatusFailed), OrderExpired, "", shown(EvidenceCaptured), []Kind{KindPaidAfterExpiry}},
		{"paid twice", bought(StatusReady), OrderPaid, "pk_0", shown(EvidenceCaptured), []Kind{KindPaidTwice}},
		{"paid after expiry of an order that another payment holds", bought(StatusReady), OrderExpired, "pk_0", shown(EvidenceCaptured), []Kind{KindPaidTwice}},
		{"dead there, paid here", paid(), OrderPaid, "", shown(EvidenceDead), []Kind{KindHistoryChanged}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := applied(c.before, order1(c.order), c.holder, c.seen)
			var got []Kind
			for _, f := range e.findings {
				got = append(got, f.Kind)
				if f.PaymentKey != "pk_1" || f.OrderID != "order_1" || f.Books == nil || f.Gateway == nil || f.AtRisk != Won(50_000) {
					t.Errorf("got an incomplete finding: %+v", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorkOut_TaxIsThatOfTheLatestLook(t *testing.T) {
	t.Parallel()
	first := with(shown(EvidenceCaptured, part(1, 12_000)), func(o *Observation) { o.Tax.VAT = Won(3_455) })
	older := with(shown(EvidenceCaptured), func(o *Observation) { o.Tax.VAT = Won(4_545) })
	p := applied(paid(), order1(OrderPaid), "", first).after
	if got := applied(p, order1(OrderPartiallyCanceled), "", older).after.Tax.VAT; got != Won(3_455) {
		t.Errorf("got a VAT of %s after an older look, want 3455 KRW", got)
	}
}

func TestWorkOut_PaymentAfterKnowsWhatEachCancelRevoked(t *testing.T) {
	t.Parallel()
	e := applied(with(paid(), func(p *Payment) { p.CreditsGranted = 7 }), order1(OrderPaid), "", shown(EvidenceCaptured, part(1, 50_000)))
	if diff := cmp.Diff(e.cancels, e.after.Cancels); diff != "" || e.cancels[0].CreditsRevoked != 7 {
		t.Errorf("got another cancel after than was written (-written +after):\n%s", diff)
	}
}

func TestWorkOut_Announcements(t *testing.T) {
	t.Parallel()
	again := with(shown(EvidenceCaptured), func(o *Observation) { o.LastTransactionKey, o.CapturedAt = "tx_2", second(90) })
	surplus := with(paid(), func(p *Payment) { p.Surplus = true })
	for _, c := range []struct {
		name   string
		before Payment
		holder string
		seen   Observation
		want   []string
	}{
		{"paid", bought(StatusConfirming), "", shown(EvidenceCaptured), []string{"order.paid to merchant"}},
		{"a part", paid(), "", shown(EvidenceCaptured, part(1, 1)), []string{"order.partially_canceled to merchant", "order.partially_canceled to customer"}},
		{"two parts to zero", paid(), "", shown(EvidenceCaptured, part(1, 1), part(2, 49_999)), []string{
			"order.partially_canceled to merchant", "order.partially_canceled to customer", "order.canceled to merchant", "order.canceled to customer",
		}},
		{"a void", bought(StatusWaitingForDeposit), "", shown(EvidenceVoided), []string{"order.canceled to merchant"}},
		{"a deposit that fell and came again", deposited(), "", again, []string{"order.reopened to merchant", "order.paid to merchant"}},
		{"failed", bought(StatusUnknown), "", shown(EvidenceDead), []string{"payment.failed to merchant"}},
		{"money for an order already paid", bought(StatusUnknown), "pk_0", shown(EvidenceCaptured), []string{"payment.surplus to merchant"}},
		{"that money given back is no cancel of the order", surplus, "pk_0", shown(EvidenceCaptured, part(1, 50_000)), nil},
		{"nothing new", paid(), "", shown(EvidenceCaptured), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			ids := map[string]bool{}
			for _, a := range applied(c.before, order1(OrderPaid), c.holder, c.seen).announcements {
				got = append(got, string(a.Kind)+" to "+string(a.Audience))
				ids[a.ID] = true
				if _, shows := a.Facts["payment_key"]; shows == (a.Audience == AudienceCustomer) {
					t.Errorf("got facts %v for the %s", a.Facts, a.Audience)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(ids) != len(got) {
				t.Errorf("announcements differ, or share ids (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWorkOut_CreditsAreRevokedToTheFloor checks the sum of the shares over random parts, seen in any grouping.
func TestWorkOut_CreditsAreRevokedToTheFloor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		order := order1(OrderPending)
		order.Amount = Won(rapid.Int64Range(1, 1<<40).Draw(r, "amount"))
		order.Credits = rapid.Int64Range(0, 1<<40).Draw(r, "credits")
		p := with(bought(StatusConfirming), func(p *Payment) { p.Amount = order.Amount })
		seen := shown(EvidenceCaptured)
		seen.Total, seen.Balance = order.Amount, order.Amount
		for step := range rapid.IntRange(1, 6).Draw(r, "looks") {
			for range rapid.IntRange(0, 2).Draw(r, "new parts") {
				if seen.Balance.IsZero() {
					break
				}
				c := part(len(seen.Cancels), rapid.Int64Range(1, seen.Balance.Minor).Draw(r, "part"))
				seen.Cancels = append(seen.Cancels, c)
				seen.Balance.Minor -= c.Amount.Minor
			}
			e := applied(p, order, "", seen)
			p, order = e.after, e.order
			want := new(big.Int).Mul(big.NewInt(order.Credits), big.NewInt(p.Canceled().Minor))
			want.Quo(want, big.NewInt(order.Amount.Minor))
			var each int64
			for _, c := range p.Cancels {
				each += c.CreditsRevoked
			}
			if p.CreditsRevoked != want.Int64() || each != p.CreditsRevoked {
				r.Fatalf("look %d: got %d credits revoked, %d over the cancels, want %s", step, p.CreditsRevoked, each, want)
			}
		}
	})
}
