package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"daesa/pgclient/tosssim"
)

const firstOrder = "demo-order-01"

func (s *story) approved(ctx context.Context) error {
	_, err := s.Sell(ctx, sale(firstOrder, 50_000))
	if err == nil {
		s.say("order %s is paid: 50,000 won", firstOrder)
	}
	return err
}

func (s *story) noticeApplied(ctx context.Context) error {
	key := s.keyOf(firstOrder)
	if _, err := s.Sim.CancelInDashboard(key, 0, "고객 변심"); err != nil {
		return err
	}
	if err := s.deliver(key, 200); err != nil {
		return err
	}
	return s.becomes(ctx, firstOrder, "canceled")
}

func (s *story) duplicate(_ context.Context) error {
	key := s.keyOf(firstOrder)
	asked := s.Sim.Count(tosssim.Get)
	if err := s.deliver(key, 200); err != nil {
		return err
	}
	if again := s.Sim.Count(tosssim.Get); again != asked {
		return fmt.Errorf("the gateway was asked %d times more", again-asked)
	}
	s.say("the gateway was not asked")
	return nil
}

func (s *story) lostReply(ctx context.Context) error {
	const order = "demo-order-02"
	key, err := s.Open(ctx, sale(order, 30_000))
	if err != nil {
		return err
	}
	s.Sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LostReply, N: 2})
	reply, err := s.Shop.Confirm(ctx, key, order, 30_000)
	if err != nil {
		return err
	}
	s.say("the gateway took the money, both replies were lost: confirm → %d %s", reply.HTTP, reply.Status)
	if reply.HTTP == 200 {
		s.say("the gateway's list had shown it meanwhile, and it was asked for")
	} else if err := reply.Expect("confirm", 202, "unknown"); err != nil {
		return err
	}
	return s.becomes(ctx, order, "paid")
}

func (s *story) partials(ctx context.Context) error {
	const order = "demo-order-03"
	key, err := s.Sell(ctx, sale(order, 50_000))
	if err != nil {
		return err
	}
	reply, err := s.Shop.Cancel(ctx, key, 12_000)
	if err != nil {
		return err
	}
	s.say("our own cancel of 12,000 → %d", reply.HTTP)
	if reply.HTTP != 200 {
		return fmt.Errorf("got %d %s for our cancel, want 200", reply.HTTP, reply.Code)
	}
	if err := s.becomes(ctx, order, "partially_canceled"); err != nil {
		return err
	}
	if _, err := s.Sim.CancelInDashboard(key, 38_000, "나머지 반품"); err != nil {
		return err
	}
	if err := s.deliver(key, 200); err != nil {
		return err
	}
	return s.becomes(ctx, order, "canceled")
}

func (s *story) silent(ctx context.Context) error {
	const order = "demo-order-04"
	key, err := s.Sell(ctx, sale(order, 20_000))
	if err != nil {
		return err
	}
	if _, err := s.Sim.CancelInDashboard(key, 0, "재고 없음"); err != nil {
		return err
	}
	s.Sim.Fail(tosssim.Fault{Op: tosssim.Get, Kind: tosssim.Hang, N: -1})
	begin := time.Now()
	if err := s.deliver(key, 502); err != nil {
		return err
	}
	if took := time.Since(begin); took < 2*time.Second || took > 5*time.Second {
		return fmt.Errorf("the answer took %s, want about 3 s", took)
	}
	s.Sim.Heal()
	s.say("the gateway is back; Toss delivers again")
	if err := s.deliver(key, 200); err != nil {
		return err
	}
	return s.becomes(ctx, order, "canceled")
}

func (s *story) overtaken(ctx context.Context) error {
	const order = "demo-order-05"
	key, err := s.Open(ctx, sale(order, 40_000))
	if err != nil {
		return err
	}
	s.Sim.Fail(tosssim.Fault{Op: tosssim.Confirm, Kind: tosssim.LateReply, Delay: 1500 * time.Millisecond, PaymentKey: key})
	confirmed := make(chan error, 1)
	go func() {
		reply, err := s.Shop.Confirm(ctx, key, order, 40_000)
		if err == nil {
			s.say("the late reply to the confirm arrives: %d %s", reply.HTTP, reply.Code)
			if reply.HTTP != 409 || reply.Code != "payment_canceled" {
				err = fmt.Errorf("got %d %q for the confirm, want 409 payment_canceled", reply.HTTP, reply.Code)
			}
		}
		confirmed <- err
	}()
	if err := s.untilCanceled(ctx, key); err != nil {
		return err
	}
	s.say("approved and at once canceled at the gateway; our confirm still waits for its reply")
	if err := s.deliver(key, 200); err != nil {
		return err
	}
	if err := <-confirmed; err != nil {
		return err
	}
	return s.becomes(ctx, order, "canceled")
}

// untilCanceled cancels a payment in the dashboard as soon as the gateway has approved it.
func (s *story) untilCanceled(ctx context.Context, key string) error {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := s.Sim.CancelInDashboard(key, 0, "즉시 취소"); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the approval: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func (s *story) adopted(ctx context.Context) error {
	const order = "demo-order-06"
	key, err := s.Open(ctx, sale(order, 60_000))
	if err != nil {
		return err
	}
	if err := s.Sim.Approve(key); err != nil {
		return err
	}
	if _, err := s.Sim.CancelInDashboard(key, 10_000, "부분 취소"); err != nil {
		return err
	}
	s.say("approved and partly canceled at the gateway; our confirm has not come yet")
	if err := s.deliver(key, 404); err != nil {
		return err
	}
	reply, err := s.Shop.Confirm(ctx, key, order, 60_000)
	if err != nil {
		return err
	}
	s.say("the buyer's confirm comes: %d %s, capture and cancel recorded together", reply.HTTP, reply.Status)
	if err := reply.Expect("confirm", 200, "partially_canceled"); err != nil {
		return err
	}
	return s.deliver(key, 200)
}

func (s *story) forged(ctx context.Context) error {
	const order = "demo-order-07"
	key, err := s.Sell(ctx, sale(order, 90_000))
	if err != nil {
		return err
	}
	body := strings.NewReplacer("KEY", key, "ORDER", order).Replace(`{"eventType":"PAYMENT_STATUS_CHANGED",
		"createdAt":"2026-05-01T10:00:00.5","data":{"paymentKey":"KEY","orderId":"ORDER","status":"CANCELED",
		"totalAmount":90000,"balanceAmount":0,"cancels":[{"transactionKey":"forged","cancelAmount":90000,"cancelStatus":"DONE"}]}}`)
	status, err := s.Sim.Send([]byte(body), map[string]string{"tosspayments-webhook-signature": "v1:Zm9yZ2Vk"})
	if err != nil {
		return err
	}
	s.say("the gateway says otherwise: %d", status)
	if status != 409 {
		return fmt.Errorf("got %d for the forgery, want 409", status)
	}
	return s.becomes(ctx, order, "paid")
}

func (s *story) neverComes(ctx context.Context) error {
	const order = "demo-order-08"
	key, err := s.Sell(ctx, sale(order, 70_000))
	if err != nil {
		return err
	}
	if _, err := s.Sim.CancelInDashboard(key, 0, "알림 유실"); err != nil {
		return err
	}
	s.say("canceled at the gateway; no notice is sent")
	if _, err := s.audit(ctx); err != nil {
		return err
	}
	return s.becomes(ctx, order, "canceled")
}

// keyOf is the payment key that the simulator gave an order.
func (s *story) keyOf(order string) string {
	for _, key := range s.Sim.Keys() {
		if raw, ok := s.Sim.Payment(key); ok && strings.Contains(string(raw), `"`+order+`"`) {
			return key
		}
	}
	return ""
}

// spent leaves a mismatch behind, on purpose: the pages have something to show that people must judge.
func (s *story) spent(ctx context.Context) error {
	const order, customer = "demo-order-09", "demo-spender"
	of := sale(order, 80_000)
	of.Customer = customer
	key, err := s.Sell(ctx, of)
	if err != nil {
		return err
	}
	reply, err := s.Shop.Spend(ctx, customer, "demo-spend-01", 60)
	if err != nil {
		return err
	}
	if reply.HTTP != 200 && reply.HTTP != 201 {
		return fmt.Errorf("got %d %s for the spend, want 200", reply.HTTP, reply.Code)
	}
	if _, err := s.Sim.CancelInDashboard(key, 0, "고객 변심"); err != nil {
		return err
	}
	if err := s.deliver(key, 200); err != nil {
		return err
	}
	left, err := s.Shop.Credits(ctx, customer)
	if err != nil {
		return err
	}
	s.say("80 credits are revoked, 60 of them were spent: the customer's balance is %d, and the pages have a mismatch", left)
	if left != -60 {
		return fmt.Errorf("got a balance of %d credits, want -60", left)
	}
	return s.becomes(ctx, order, "canceled")
}

// leave leaves paid orders behind, for whoever wants to play the gateway.
func (s *story) leave(ctx context.Context) ([]string, error) {
	orders := []string{"demo-order-10", "demo-order-11", "demo-order-12"}
	for i, order := range orders {
		if _, err := s.Sell(ctx, sale(order, int64(i+1)*45_000)); err != nil {
			return nil, err
		}
	}
	return orders, nil
}
