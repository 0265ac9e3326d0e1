package ledger

import "testing"

// BenchmarkDecide decides what each of a notice's stories comes to: a cancel that the books lack, the same seen again,
// the twentieth part of a payment, and an approval.
func BenchmarkDecide(b *testing.B) {
	whole := shown(EvidenceCaptured, part(1, 50_000))
	many := paid(twenty()...)
	all := shown(EvidenceCaptured)
	for n, amount := range append(twenty(), 2_500) {
		c := part(n+1, amount)
		all.Cancels, all.LastTransactionKey = append(all.Cancels, c), c.TransactionKey
		all.Balance.Minor -= amount
	}
	for _, bench := range []struct {
		name    string
		payment Payment
		seen    Observation
		want    int // cancels that are new
	}{
		{"approval", bought(StatusConfirming), shown(EvidenceCaptured), 0},
		{"cancel", paid(), whole, 1},
		{"cancel_again", paid(50_000), whole, 0},
		{"twentieth_cancel", many, all, 1},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := Decide(bench.payment, bench.seen); d.Conflict() || len(d.Cancels) != bench.want {
					b.Fatalf("got %+v, want %d new cancels", d, bench.want)
				}
			}
		})
	}
}

// twenty is nineteen parts of what twenty would make.
func twenty() []int64 {
	parts := make([]int64, 19)
	for n := range parts {
		parts[n] = 2_500
	}
	return parts
}

// BenchmarkWorkOut works out everything that the decision of a cancel writes, and puts it into statements.
func BenchmarkWorkOut(b *testing.B) {
	p, seen := paid(), shown(EvidenceCaptured, part(1, 50_000))
	order := Order{ID: "order_1", Status: OrderPaid, Amount: Won(50_000), CustomerID: "customer", Credits: 100}
	p.CreditsGranted = order.Credits
	d := Decide(p, seen)
	b.ReportAllocs()
	for b.Loop() {
		e := workOut(p, order, "", seen, d, second(100))
		if batch := e.batch(seen, second(100)); batch.Len() == 0 {
			b.Fatal("nothing is written")
		}
	}
}
