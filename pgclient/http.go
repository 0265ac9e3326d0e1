package pgclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is one request and how its answer is read. It is sent once or twice, the same each time.
type call struct {
	method, url    string
	body           []byte // nil for a question
	idempotencyKey string
	read           func(answer []byte) *Error
}

// newHTTPClient makes the connections of one path: nobody else's slow calls can hold them.
//
// Redirects are not followed (an API that moves money does not redirect; the request would carry our key along).
// Compression is not offered and so never undone: the limit on the answer is a limit on bytes in memory.
func newHTTPClient(transport http.RoundTripper, limits Path, slots int) *http.Client {
	if transport == nil {
		transport = &http.Transport{
			DialContext:            (&net.Dialer{Timeout: limits.Connect}).DialContext,
			TLSHandshakeTimeout:    limits.Connect,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
			MaxConnsPerHost:        slots,
			MaxIdleConnsPerHost:    slots,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true,
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// commonHeaders are sent with every call. The language is pinned because it changes what words mean: in English
// the method of a payment reads CARD instead of 카드.
func commonHeaders(secretKey string) http.Header {
	return http.Header{
		"Authorization":   {"Basic " + base64.StdEncoding.EncodeToString([]byte(secretKey+":"))},
		"Accept":          {"application/json"},
		"Accept-Language": {"ko-KR"},
		"User-Agent":      {"daesa"},
	}
}

// once is a request body that cannot be read again. net/http re-sends a POST by itself when an idle connection
// turns out dead, if it carries an Idempotency-Key and its body can be rewound. A second sending is ours to
// decide, count and pass through the breaker, so the body must not be one that net/http knows how to rewind.
type once struct{ io.Reader }

// Close does nothing: the bytes are in memory.
func (once) Close() error { return nil }

// request builds a fresh request for one attempt.
func (l *lane) request(ctx context.Context, c call) (*http.Request, error) {
	var body io.Reader
	if c.body != nil {
		body = once{bytes.NewReader(c.body)}
	}
	request, err := http.NewRequestWithContext(ctx, c.method, c.url, body)
	if err != nil {
		return nil, err
	}
	request.Header = l.headers.Clone()
	if c.body != nil {
		request.ContentLength = int64(len(c.body))
		request.Header.Set("Content-Type", "application/json")
	}
	if c.idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", c.idempotencyKey)
	}
	return request, nil
}

// exchange sends once and reads the answer.
func (l *lane) exchange(ctx context.Context, c call) *Error {
	request, err := l.request(ctx, c)
	if err != nil {
		return &Error{Group: GroupOurs, Reason: ReasonRefused, Detail: "the request could not be built"}
	}
	response, err := l.http.Do(request)
	if err != nil {
		return transportError(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, l.limits.BodyMax+1))
	switch {
	case err != nil:
		failure := transportError(ctx, err)
		failure.TraceID = traceID(response.Header)
		return failure
	case int64(len(body)) > l.limits.BodyMax:
		return unreadable(response, "the answer is too large")
	case response.StatusCode == http.StatusOK:
		return l.readAnswer(response, body, c.read)
	}
	return l.readRefusal(response, body)
}

// readAnswer lets the caller read a 200 and adds what only the response knows.
func (l *lane) readAnswer(response *http.Response, body []byte, read func([]byte) *Error) *Error {
	if response.Header.Get("Content-Encoding") != "" {
		return unreadable(response, "the answer is compressed although we did not offer it")
	}
	failure := read(body)
	if failure != nil {
		failure.Status = response.StatusCode
		failure.TraceID = traceID(response.Header)
		failure.Group = GroupAmbiguous
	}
	return failure
}

// readRefusal reads an answer that is not 200: {"code","message"}, or the same inside "error".
func (l *lane) readRefusal(response *http.Response, body []byte) *Error {
	code, message := "", ""
	if refusal, ok := decodeObject(body); ok {
		if inner, ok := refusal.object("error"); ok {
			refusal = inner
		}
		code, message = refusal.code("code"), refusal.text("message", 510)
	}
	group, reason := classify(response.StatusCode, code)
	if reason == ReasonUnreadable {
		return unreadable(response, "not an answer of the gateway's API")
	}
	if _, known := groupOf(code); !known && code != "" {
		l.metrics.unknown(unknownCode)
	}
	return &Error{
		Code: code, Message: message, Status: response.StatusCode, Group: group, Reason: reason,
		RetryAfter: retryAfter(response.Header, time.Now()), TraceID: traceID(response.Header),
	}
}

// unreadable names status and content type, never the page.
func unreadable(response *http.Response, detail string) *Error {
	contentType := bounded(sanitized(response.Header.Get("Content-Type")), 60)
	return &Error{
		Status: response.StatusCode, Group: GroupAmbiguous, Reason: ReasonUnreadable, TraceID: traceID(response.Header),
		Detail: detail + ", content type " + strconv.Quote(contentType),
	}
}

// transportError translates a failure without an answer. The text of net/http names the address, and with it the
// payment key, so none of it is kept.
func transportError(ctx context.Context, err error) *Error {
	var network net.Error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || (errors.As(err, &network) && network.Timeout()) {
		return &Error{Group: GroupAmbiguous, Reason: ReasonTimeout}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return &Error{Group: GroupAmbiguous, Reason: ReasonCanceled}
	}
	return &Error{Group: GroupAmbiguous, Reason: ReasonConnection}
}

// retryAfterMax bounds what a header can make us wait.
const retryAfterMax = time.Hour

// retryAfter reads seconds or a date; anything else is 0.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, retryAfterMax)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), retryAfterMax)
	}
	return 0
}

func traceID(header http.Header) string {
	return bounded(sanitized(header.Get("X-Tosspayments-Trace-Id")), 100)
}
