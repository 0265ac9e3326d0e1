package pgclient_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"daesa/ledger"
	"daesa/pgclient"
)

func TestCancelOf_NamesNoAmountOnlyForAllThatIsLeft(t *testing.T) {
	t.Parallel()
	part := ledger.Won(12_000)
	for _, c := range []struct {
		name         string
		asked, left  ledger.Money
		amount       *ledger.Money
		account      map[string]string
		wantsAccount *pgclient.RefundAccount
	}{
		{"all that is left", part, part, nil, nil, nil},
		{"a part", part, ledger.Won(50_000), &part, nil, nil},
		{"an unpaid virtual account", ledger.Won(0), ledger.Won(0), nil, nil, nil},
		{
			"a paid virtual account", part, part, nil,
			map[string]string{"bank": "88", "accountNumber": "123", "holderName": "홍길동"},
			&pgclient.RefundAccount{Bank: "88", AccountNumber: "123", HolderName: "홍길동"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := pgclient.CancelOf(ledger.CancelRequest{
				ID: "can_1", PaymentKey: "pk_1", Amount: c.asked, Refundable: c.left, Reason: "고객 변심", Generation: 1, RefundAccount: c.account,
			})
			want := pgclient.CancelRequest{
				PaymentKey: "pk_1", Reason: "고객 변심", Amount: c.amount, Refundable: c.left, RefundAccount: c.wantsAccount,
				IdempotencyKey: "cancel-can_1-1",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
