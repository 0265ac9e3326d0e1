package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	bodyMax   = 16 << 10
	reasonMax = 200 // characters
	// idleMax is below the five seconds after which common servers close a connection that nothing comes through: a question
	// sent into one that is being closed is lost, and is not sent again.
	idleMax = 4 * time.Second
)

// newHTTPClient makes the connections to the store. Redirects are not followed: the order is not for others.
func newHTTPClient(cfg Config, connections int) *http.Client {
	transport := cfg.Transport
	if transport == nil {
		transport = &http.Transport{
			DialContext:            (&net.Dialer{Timeout: cfg.Limits.Total}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			MaxConnsPerHost:        connections,
			MaxIdleConnsPerHost:    connections,
			IdleConnTimeout:        idleMax,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true,
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// message is one call: what is sent, under which id, and what a 2xx means.
type message struct {
	id, url string
	body    any
	read    func(body []byte) reply
}

type questionBody struct {
	AcceptanceID string `json:"acceptance_id"`
	OrderID      string `json:"order_id"`
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
}

type releaseBody struct {
	AcceptanceID string `json:"acceptance_id"`
	OrderID      string `json:"order_id"`
}

func (c *Client) question(a Acceptance) message {
	return message{
		id: a.ID, url: c.cfg.URL, read: readAnswer,
		body: questionBody{
			AcceptanceID: a.ID, OrderID: a.OrderID, Amount: a.Amount.Decimal(), Currency: string(a.Amount.Currency),
		},
	}
}

func (c *Client) release(a Acceptance) message {
	return message{
		id: "release-" + a.ID, url: c.cfg.URL + "/" + url.PathEscape(a.ID) + "/release",
		body: releaseBody{AcceptanceID: a.ID, OrderID: a.OrderID},
		read: func([]byte) reply { return reply{result: resultReleased} },
	}
}

// reply is what came of one call.
type reply struct {
	result result
	reason string
	sent   bool
}

// readAnswer reads {"accepted": true} or {"accepted": false, "reason": "…"}. What does not say is no answer.
func readAnswer(body []byte) reply {
	var answer struct {
		Accepted *bool  `json:"accepted"`
		Reason   string `json:"reason"`
	}
	switch err := json.Unmarshal(body, &answer); {
	case err != nil || answer.Accepted == nil:
		return reply{result: resultUnreadable}
	case *answer.Accepted:
		return reply{result: resultAccepted}
	}
	return reply{result: resultDeclined, reason: forPeople(answer.Reason)}
}

// forPeople keeps what can be shown: no control characters, no marks that turn text around, and not too much of it.
func forPeople(text string) string {
	shown := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text))
	return strings.TrimSpace(string(shown[:min(len(shown), reasonMax)]))
}

// exchange sends once and reads the answer.
func (c *Client) exchange(ctx context.Context, m message) reply {
	request, err := c.request(ctx, m)
	if err != nil {
		return reply{result: resultRefused}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return failure(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyMax+1))
	var came reply
	switch status := response.StatusCode; {
	case err != nil:
		came = failure(ctx, err)
	case len(body) > bodyMax:
		came.result = resultUnreadable
	case status >= 200 && status <= 299:
		came = m.read(body)
	case status == http.StatusNotFound || status == http.StatusGone:
		came.result = m.unknown()
	case status == http.StatusTooManyRequests:
		came.result = resultRateLimited
	case status >= 500:
		came.result = resultServerError
	default:
		came.result = resultRefused
	}
	came.sent = true
	return came
}

// unknown is what it means that the store knows nothing at the address: an acceptance that is not there need not be
// released.
func (m message) unknown() result {
	if _, released := m.body.(releaseBody); released {
		return resultReleased
	}
	return resultRefused
}

// once is a request body that cannot be read again, so that net/http does not send a question twice by itself when a
// connection turns out dead.
type once struct{ io.Reader }

// Close does nothing: the bytes are in memory.
func (once) Close() error { return nil }

// request builds and signs a call.
func (c *Client) request(ctx context.Context, m message) (*http.Request, error) {
	body, err := json.Marshal(m.body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, once{bytes.NewReader(body)})
	if err != nil {
		return nil, err
	}
	at := c.cfg.Now()
	signature, err := c.signer.Sign(m.id, at, body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(len(body))
	request.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"daesa"},
		"Idempotency-Key": {m.id},
	}
	request.Header.Set(standardwebhooks.HeaderWebhookID, m.id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return request, nil
}

// failure translates a call without an answer. One whose connection was never made did not reach the store.
func failure(ctx context.Context, err error) reply {
	var network net.Error
	if ctx.Err() != nil || (errors.As(err, &network) && network.Timeout()) {
		return reply{result: resultTimeout, sent: true}
	}
	dialing, ok := errors.AsType[*net.OpError](err)
	return reply{result: resultConnection, sent: !ok || dialing.Op != "dial"}
}
