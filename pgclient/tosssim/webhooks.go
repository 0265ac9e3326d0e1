package tosssim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// deliveryTimeout is how long the gateway waits for the 200, in real time.
const deliveryTimeout = 10 * time.Second

var (
	errNoURL  = errors.New("tosssim: no webhook URL")
	errClosed = errors.New("tosssim: the simulator is closed")
)

// Deliver sends this notice now and once, whatever the plan or the clock say: held, waiting for its next turn, or done or
// lost already, as the resend button of the developer centre does. A notice not yet done counts it among its eight.
func (s *Sim) Deliver(id int64) (status int, err error) {
	s.mu.Lock()
	at := slices.IndexFunc(s.notices, func(n *notice) bool { return n.ID == id })
	if at < 0 {
		s.mu.Unlock()
		return 0, fmt.Errorf("%w: notice %d", ErrNotFound, id)
	}
	if s.webhookURL == "" {
		s.mu.Unlock()
		return 0, errNoURL
	}
	n := s.notices[at]
	n.sending++
	s.mu.Unlock()
	d := s.deliver(s.life, n, 0)
	if d.Err != "" {
		return d.Status, errors.New(d.Err)
	}
	return d.Status, nil
}

// Send posts any body, a forgery for instance, with the headers of a first delivery except where headers replaces them.
// An empty value leaves a header out.
func (s *Sim) Send(body []byte, headers map[string]string) (status int, err error) {
	s.mu.Lock()
	url, id, now := s.webhookURL, s.next(), s.clock.Now()
	s.mu.Unlock()
	if url == "" {
		return 0, errNoURL
	}
	header := s.headers(transmissionID("whtrans_a01", id), 0, now)
	for name, value := range headers {
		header.Set(name, value)
		if value == "" {
			header.Del(name)
		}
	}
	return s.post(s.life, url, body, header)
}

// DeliverDue sends all that is due by the clock, and returns how many sends that were, copies included.
func (s *Sim) DeliverDue(ctx context.Context) int {
	ctx, cancel := s.untilClosed(ctx)
	defer cancel()
	due, plan := s.takeDue(1<<30, true)
	slots := make(chan struct{}, max(1, plan.Parallel))
	var sends sync.WaitGroup
	sent := 0
	for _, n := range due {
		slots <- struct{}{}
		if ctx.Err() != nil {
			s.putBack(n)
			<-slots
			continue
		}
		sent += 1 + plan.Duplicate
		sends.Go(func() {
			s.deliver(ctx, n, plan.Duplicate)
			<-slots
		})
	}
	sends.Wait()
	return sent
}

// Run sends notices in the background as they become due, until the context or the simulator ends.
func (s *Sim) Run(ctx context.Context) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.senders.Add(1)
	s.mu.Unlock()
	defer s.senders.Done()
	ctx, cancel := s.untilClosed(ctx)
	defer cancel()
	var sends sync.WaitGroup
	defer sends.Wait()
	for ctx.Err() == nil {
		due, plan := s.takeDue(64, false)
		for _, n := range due {
			sends.Go(func() {
				s.deliver(ctx, n, plan.Duplicate)
				s.nudge()
			})
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-s.nextTurn():
		}
	}
}

// takeDue hands out the notices whose turn has come, so that nobody else sends them. At most limit, or what the plan
// allows, are on their way at once; all lifts that.
func (s *Sim) takeDue(limit int, all bool) ([]*notice, DeliveryPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireDue()
	s.pending = slices.DeleteFunc(s.pending, func(n *notice) bool { return n.Done || n.Lost })
	if s.plan.Hold || s.webhookURL == "" || s.ended {
		return nil, s.plan
	}
	if s.plan.Parallel > 0 && !all {
		limit = s.plan.Parallel
	}
	now := s.clock.Now()
	var due []*notice
	for _, n := range s.pending {
		if n.sending > 0 {
			limit--
		} else if !n.NextAt.After(now) {
			due = append(due, n)
		}
	}
	if s.plan.Shuffle != 0 {
		source := rand.New(rand.NewPCG(s.plan.Shuffle, uint64(len(s.notices))))
		source.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	}
	due = due[:max(0, min(limit, len(due)))]
	for _, n := range due {
		n.sending++
	}
	return due, s.plan
}

// putBack returns a notice that was taken and not sent.
func (s *Sim) putBack(n *notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.sending--
}

// nextTurn is the channel on which the clock says that a notice or a window is due; nil when nothing is.
func (s *Sim) nextTurn() <-chan time.Time {
	s.mu.Lock()
	next, any := s.nextExpiry()
	for _, n := range s.pending {
		if s.plan.Hold || s.webhookURL == "" || n.sending > 0 {
			continue
		}
		if !any || n.NextAt.Before(next) {
			next, any = n.NextAt, true
		}
	}
	now := s.clock.Now()
	s.mu.Unlock()
	if !any || (!next.After(now) && s.busy()) {
		return nil
	}
	return s.clock.After(next.Sub(now))
}

// busy reports whether sends are under way; the end of each wakes the sender.
func (s *Sim) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pending, func(n *notice) bool { return n.sending > 0 })
}

// deliver sends one notice, which its caller has marked as being sent, with its copies; it notes how it went, and decides what is next for it.
func (s *Sim) deliver(ctx context.Context, n *notice, copies int) Delivery {
	s.mu.Lock()
	url, now := s.webhookURL, s.clock.Now()
	retried := n.attempts
	n.attempts++
	if s.plan.FreshIDs && retried > 0 {
		n.TransmissionID = transmissionID("whtrans_a01", s.next())
	}
	header := s.headers(n.TransmissionID, retried, now)
	if n.signed {
		header.Set("tosspayments-webhook-signature", s.signature(n.Body, header.Get(headerTime)))
	}
	s.mu.Unlock()

	var first Delivery
	for i := range 1 + copies {
		began := time.Now()
		status, err := s.post(ctx, url, n.Body, header)
		d := Delivery{At: now, RetriedCount: retried, Status: status, Took: time.Since(began)}
		if err != nil {
			d.Err = err.Error()
		}
		s.noteDelivery(n, d, i == copies)
		if i == 0 {
			first = d
		}
	}
	return first
}

// noteDelivery records a send. Success is exactly 200 in time, of any copy; after the last one a failure waits for its next
// turn, or is lost when there is none.
func (s *Sim) noteDelivery(n *notice, d Delivery, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.Deliveries = append(n.Deliveries, d)
	n.Done = n.Done || (d.Status == http.StatusOK && d.Err == "")
	if !last {
		return
	}
	n.sending--
	schedule := RedeliverySchedule()
	switch {
	case n.Done || n.Lost:
	case d.RetriedCount >= len(schedule):
		n.Lost = true
	default:
		n.NextAt = s.clock.Now().Add(schedule[d.RetriedCount])
	}
	s.cfg.Log.Debug("notice sent",
		slog.Int64("id", n.ID), slog.Int("retried_count", d.RetriedCount), slog.Int("status", d.Status))
}

const (
	headerTime    = "tosspayments-webhook-transmission-time"
	headerRetried = "tosspayments-webhook-transmission-retried-count"
	headerID      = "tosspayments-webhook-transmission-id"
)

// headers are those of one send; the time is of the send, not of the event.
func (s *Sim) headers(id string, retried int, now time.Time) http.Header {
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set(headerTime, s.stamp(now))
	header.Set(headerRetried, strconv.Itoa(retried))
	header.Set(headerID, id)
	return header
}

// post sends one body. An answer that does not come within ten seconds is no answer.
func (s *Sim) post(ctx context.Context, url string, body []byte, header http.Header) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("make webhook request: %w", err)
	}
	request.Header = header.Clone()
	response, err := s.client.Do(request)
	if err != nil {
		if s.life.Err() != nil {
			err = errors.Join(errClosed, err)
		}
		return 0, fmt.Errorf("send webhook: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)); err != nil {
		return response.StatusCode, fmt.Errorf("read webhook reply: %w", err)
	}
	return response.StatusCode, nil
}

// signature is what signed events carry: two values, of which one is by the key in force and one by the key it replaced.
func (s *Sim) signature(body []byte, at string) string {
	key, _ := hex.DecodeString(s.cfg.SecurityKey) // Checked by New.
	old := sha256.Sum256(key)
	return strings.Join([]string{signWith(key, body, at), signWith(old[:], body, at)}, ",")
}

func signWith(key, body []byte, at string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	mac.Write([]byte(":" + at))
	return "v1:" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// transmissionID numbers an event or a transmission in the gateway's style.
func transmissionID(prefix string, number int64) string {
	return fmt.Sprintf("%s%018d", prefix, number)
}
