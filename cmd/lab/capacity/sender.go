package capacity

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// sender delivers notices in a closed loop: so many at a time, each the moment another is answered. That measures what
// can be done at most, which is the question here, and says nothing of how long somebody waits. It does as little as it
// can itself, because it runs beside what it measures.
type sender struct {
	address  string // host and port of the service
	inFlight int
}

// delivered is what came of a load.
type delivered struct {
	wall     time.Duration
	outcomes map[string]int
}

func (d delivered) rate(n int) float64 { return float64(n) / d.wall.Seconds() }

// answerWait is far above what any notice may take.
const answerWait = 30 * time.Second

// newSender sends to the service at that address.
func newSender(service string, inFlight int) (sender, error) {
	at, err := url.Parse(service)
	if err != nil {
		return sender{}, fmt.Errorf("read the service's address: %w", err)
	}
	return sender{at.Host, inFlight}, nil
}

// deliver sends the body of each of n notices, from the first on, and waits for every answer.
func (s sender) deliver(ctx context.Context, first, n int, body func(n int) []byte) (d delivered, err error) {
	var next atomic.Int64
	var under sync.WaitGroup
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	each := make([]map[string]int, s.inFlight)
	began := time.Now()
	for i := range each {
		each[i] = map[string]int{}
		under.Go(func() {
			if err := s.loop(ctx, each[i], &next, first, n, body); err != nil {
				stop(err)
			}
		})
	}
	under.Wait()
	d = delivered{time.Since(began), map[string]int{}}
	for _, one := range each {
		for outcome, count := range one {
			d.outcomes[outcome] += count
		}
	}
	return d, context.Cause(ctx)
}

// loop is one of those who send, on a connection of its own.
func (s sender) loop(ctx context.Context, outcomes map[string]int, next *atomic.Int64, first, n int, body func(n int) []byte) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("reach the service: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing is under way any more
	in := bufio.NewReader(conn)
	var request bytes.Buffer
	for ctx.Err() == nil {
		i := int(next.Add(1)) - 1
		if i >= n {
			return nil
		}
		s.write(&request, first+i, body(first+i))
		if err := conn.SetDeadline(time.Now().Add(answerWait)); err != nil {
			return fmt.Errorf("deliver notice %d: %w", i, err)
		}
		if _, err := conn.Write(request.Bytes()); err != nil {
			return fmt.Errorf("deliver notice %d: %w", i, err)
		}
		outcome, err := readOutcome(in)
		if err != nil {
			return fmt.Errorf("deliver notice %d: %w", i, err)
		}
		outcomes[outcome]++
	}
	return nil
}

// write makes the request as the gateway's sender does.
func (s sender) write(request *bytes.Buffer, n int, body []byte) {
	request.Reset()
	fmt.Fprintf(request, "POST /webhooks/toss HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
		"Tosspayments-Webhook-Transmission-Id: %s\r\nTosspayments-Webhook-Transmission-Retried-Count: 0\r\n"+
		"Tosspayments-Webhook-Transmission-Time: 2026-03-11T12:05:10+09:00\r\n\r\n", s.address, len(body), transmissionName.of(n))
	request.Write(body)
}

// readOutcome reads an answer: the outcome of a 200, else its status and what it says.
func readOutcome(in *bufio.Reader) (string, error) {
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	var says struct {
		Outcome string `json:"outcome"`
	}
	if json.Unmarshal(content, &says) != nil || response.StatusCode != http.StatusOK {
		return fmt.Sprintf("%d %.200s", response.StatusCode, content), nil
	}
	return says.Outcome, nil
}
