package pgclient

import (
	"net/http"
	"testing"

	"daesa/internal/guard"
)

// BenchmarkReadPayment translates the gateway's answer to a question.
func BenchmarkReadPayment(b *testing.B) {
	c := mustNew(b, testConfig(tripper(nil)))
	for _, file := range []string{"payment_card_done.json", "payment_easypay_partial.json", "payment_partial_to_zero.json"} {
		body := fixture(b, file)
		b.Run(file, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := c.readPayment(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReadNotice reads a notice for its shape, which every delivery costs, whoever sends it.
func BenchmarkReadNotice(b *testing.B) {
	c := mustNew(b, testConfig(tripper(nil)))
	header := http.Header{}
	header.Set("tosspayments-webhook-transmission-id", "whtrans_1")
	header.Set("tosspayments-webhook-transmission-time", "2026-03-11T12:05:10+09:00")
	for _, file := range []string{"notice_partial_canceled.json", "notice_done.json", "notice_billing_deleted.json"} {
		body := fixture(b, file)
		b.Run(file, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := c.ReadNotice(header, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMask makes a notice fit to be kept.
func BenchmarkMask(b *testing.B) {
	body := fixture(b, "notice_partial_canceled.json")
	n, err := mustNew(b, testConfig(tripper(nil))).ReadNotice(http.Header{}, body)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		n.Masked()
	}
}

// BenchmarkReserve is all that the guard around a call costs: the slot, the breaker's permission, its result, and what
// is counted meanwhile.
func BenchmarkReserve(b *testing.B) {
	c := mustNew(b, testConfig(tripper(nil)))
	reserve := func(b *testing.B) {
		b.Helper()
		permit, unsent := c.query.reserve(b.Context(), nil)
		if unsent != nil {
			b.Fatal(unsent)
		}
		permission, err := permit.permission()
		if err != nil {
			b.Fatal(err)
		}
		permission.Done(guard.Succeeded)
		permit.Release()
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			reserve(b)
		}
	})
	b.Run("at_once", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				reserve(b)
			}
		})
	})
}
