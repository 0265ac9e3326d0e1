package pgclient

import "daesa/ledger"

// CancelOf is the one way in which a cancel of ours is written for the gateway. Under one idempotency key every sending
// must be the same, whoever sends it: the gateway answers with what it did for the first and does not compare.
//
// All that is left is canceled without naming an amount, which every method of payment allows. While a cancel in
// progress reserves a part, what the caller may have is not all that the gateway would give.
func CancelOf(r ledger.CancelRequest) CancelRequest {
	same := CancelRequest{
		PaymentKey: r.PaymentKey, Reason: r.Reason, Refundable: r.Refundable, IdempotencyKey: r.IdempotencyKey(),
	}
	if r.Amount != r.Refundable {
		same.Amount = &r.Amount
	}
	if r.RefundAccount != nil {
		same.RefundAccount = &RefundAccount{
			Bank: r.RefundAccount["bank"], AccountNumber: r.RefundAccount["accountNumber"], HolderName: r.RefundAccount["holderName"],
		}
	}
	return same
}
