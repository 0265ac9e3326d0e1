package webhook_test

import (
	"encoding/json"
	"maps"
	"testing"
)

// fields are members of a JSON object.
type fields map[string]any

// object is a card payment of 50,000 won as the gateway shows it, with changes.
func object(paymentKey, orderID string, changes fields) fields {
	o := fields{
		"mId": "tsimshop01", "version": "2022-11-16", "paymentKey": paymentKey, "orderId": orderID, "orderName": "시험 상품",
		"currency": "KRW", "method": "카드", "type": "NORMAL", "status": "DONE", "totalAmount": 50000, "balanceAmount": 50000,
		"suppliedAmount": 45455, "vat": 4545, "taxFreeAmount": 0, "taxExemptionAmount": 0,
		"requestedAt": "2026-04-15T10:00:00+09:00", "approvedAt": "2026-04-15T10:00:30+09:00",
		"lastTransactionKey": "tx_pay_" + paymentKey, "cancels": nil, "secret": nil, "virtualAccount": nil,
	}
	maps.Copy(o, changes)
	return o
}

// cancelOf is one element of cancels.
func cancelOf(key string, amount any, changes fields) fields {
	c := fields{
		"transactionKey": key, "cancelReason": "고객 변심", "canceledAt": "2026-04-15T10:30:00+09:00", "cancelAmount": amount,
		"taxFreeAmount": 0, "taxExemptionAmount": 0, "refundableAmount": 0, "cancelStatus": "DONE", "cancelRequestId": nil,
	}
	maps.Copy(c, changes)
	return c
}

// whole is the payment canceled in one piece.
func whole(paymentKey, orderID string, changes fields) fields {
	o := object(paymentKey, orderID, fields{
		"status": "CANCELED", "balanceAmount": 0, "suppliedAmount": 0, "vat": 0,
		"cancels": []fields{cancelOf("tx_c1_"+paymentKey, 50000, nil)}, "lastTransactionKey": "tx_c1_" + paymentKey,
	})
	maps.Copy(o, changes)
	return o
}

// notice wraps a payment object as the gateway does.
func notice(data any, changes fields) fields {
	n := fields{"createdAt": "2026-04-15T10:30:01.65327", "eventType": "PAYMENT_STATUS_CHANGED", "data": data}
	maps.Copy(n, changes)
	return n
}

func encoded(tb testing.TB, v any) []byte {
	tb.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}
