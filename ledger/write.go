package ledger

import (
	"time"

	"github.com/jackc/pgx/v5"

	"daesa/internal/postgres"
)

// batch is everything a decision means, as statements.
func (e *effects) batch(o Observation, now time.Time) *pgx.Batch {
	b := &pgx.Batch{}
	e.queuePayment(b, now)
	e.queueCaptures(b, o, now)
	for _, c := range e.cancels {
		queueCancel(b, c, e.after)
	}
	for _, f := range e.journal {
		queueJournal(b, f, now)
	}
	e.queueCredits(b, now)
	for _, f := range e.findings {
		QueueMismatch(b, f, now)
	}
	e.queueCancelRequests(b, now)
	e.queueAccountWork(b, o, now)
	e.queueWork(b, o, now)
	for _, a := range e.announcements {
		QueueAnnouncement(b, a, now)
	}
	return b
}

// queuePayment writes the payment and, when it moved, its order. An observation that changes nothing writes
// nothing.
func (e *effects) queuePayment(b *pgx.Batch, now time.Time) {
	p := e.after
	if e.remembers() {
		b.Queue(`
			UPDATE payments
			SET status = @status, captured = @captured, canceled = @canceled, surplus = @surplus, attempt = @attempt,
				generation = @generation, undecided_since = @undecided_since, waiting_seen_at = @waiting_seen_at,
				money_seen_at = @money_seen_at, virtual_account = @virtual_account, secret_digest = @secret_digest, reason = left(@reason, 200),
				method = left(@method, 100), credits_granted = @credits_granted, credits_revoked = @credits_revoked,
				supplied = @supplied, vat = @vat, tax_free = @tax_free, tax_exempt = @tax_exempt, updated_at = @now
			WHERE payment_key = @payment_key`,
			postgres.Args{
				"payment_key": p.Key, "status": p.Status, "captured": p.Captured().Minor, "canceled": p.Canceled().Minor,
				"surplus": p.Surplus, "attempt": p.Attempt, "generation": p.Generation,
				"undecided_since": postgres.NullTime(p.UndecidedSince), "waiting_seen_at": postgres.NullTime(p.WaitingSeenAt),
				"money_seen_at": postgres.NullTime(p.MoneySeenAt), "virtual_account": p.VirtualAccount, "secret_digest": p.SecretDigest, "reason": p.Reason, "method": p.Method,
				"credits_granted": p.CreditsGranted, "credits_revoked": p.CreditsRevoked,
				"supplied": nullableMinor(p.Tax.Supplied), "vat": nullableMinor(p.Tax.VAT),
				"tax_free": nullableMinor(p.Tax.Free), "tax_exempt": nullableMinor(p.Tax.Exempt), "now": now,
			})
	}
	if e.order.Status != e.orderBefore {
		b.Queue(`UPDATE orders SET status = @status WHERE order_id = @order_id`,
			postgres.Args{"status": e.order.Status, "order_id": e.order.ID})
	}
}

// remembers reports whether the payment's row changes at all.
func (e *effects) remembers() bool {
	b, a := e.before, e.after
	return e.decision.Changed() || b.Method != a.Method || b.VirtualAccount != a.VirtualAccount || b.Tax != a.Tax ||
		!b.WaitingSeenAt.Equal(a.WaitingSeenAt) || !b.MoneySeenAt.Equal(a.MoneySeenAt) || string(b.SecretDigest) != string(a.SecretDigest)
}

func (e *effects) queueCaptures(b *pgx.Batch, o Observation, now time.Time) {
	if r := e.decision.Reversed; r != nil {
		b.Queue(`UPDATE captures SET reversed_at = @at WHERE payment_key = @payment_key AND number = @number`,
			postgres.Args{"at": r.ReversedAt, "payment_key": e.after.Key, "number": r.Number})
	}
	if e.decision.LearnedKey != "" {
		b.Queue(`
			UPDATE captures SET transaction_key = @transaction_key
			WHERE payment_key = @payment_key AND reversed_at IS NULL AND transaction_key IS NULL`,
			postgres.Args{"transaction_key": e.decision.LearnedKey, "payment_key": e.after.Key})
	}
	if c := e.decision.Capture; c != nil {
		b.Queue(`
			INSERT INTO captures (payment_key, number, transaction_key, currency, amount, captured_at, channel, recorded_at)
			VALUES (@payment_key, @number, NULLIF(@transaction_key, ''), @currency, @amount, @captured_at, @channel, @now)`,
			postgres.Args{
				"payment_key": e.after.Key, "number": c.Number, "transaction_key": c.TransactionKey,
				"currency": c.Amount.Currency, "amount": c.Amount.Minor, "captured_at": c.CapturedAt,
				"channel": o.Channel, "now": now,
			})
	}
}

func queueCancel(b *pgx.Batch, c Cancel, p Payment) {
	b.Queue(`
		INSERT INTO cancels (transaction_key, payment_key, order_id, currency, amount, tax_free, tax_exempt, reason,
			canceled_at, channel, recorded_at, credits_revoked)
		VALUES (@transaction_key, @payment_key, @order_id, @currency, @amount, @tax_free, @tax_exempt, left(@reason, 200),
			@canceled_at, @channel, @recorded_at, @credits_revoked)`,
		postgres.Args{
			"transaction_key": c.TransactionKey, "payment_key": p.Key, "order_id": p.OrderID, "currency": c.Amount.Currency,
			"amount": c.Amount.Minor, "tax_free": nullableMinor(c.TaxFree), "tax_exempt": nullableMinor(c.TaxExempt),
			"reason": c.Reason, "canceled_at": c.CanceledAt, "channel": c.Channel, "recorded_at": c.RecordedAt,
			"credits_revoked": c.CreditsRevoked,
		})
}

// QueueAnnouncement keeps an announcement. A payment can fail twice, revived in between: the second time is the
// same event, and must not keep the books from being written.
func QueueAnnouncement(b *pgx.Batch, a Announcement, now time.Time) {
	b.Queue(`
		INSERT INTO events (event_id, kind, audience, order_id, payment_key, facts, created_at)
		VALUES (@event_id, @kind, @audience, @order_id, @payment_key, @facts, @now)
		ON CONFLICT (event_id) DO NOTHING`,
		postgres.Args{
			"event_id": a.ID, "kind": a.Kind, "audience": a.Audience, "order_id": a.OrderID,
			"payment_key": a.PaymentKey, "facts": a.Facts, "now": now,
		})
}
