package checkout

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
)

// statusURL is where a buyer without an API key may ask about one payment.
func (h *Handler) statusURL(paymentKey string) string {
	return "/v1/payments/" + url.PathEscape(paymentKey) + "?token=" + h.token(paymentKey)
}

// token signs a payment key. It opens the status of that payment and nothing else.
func (h *Handler) token(paymentKey string) string {
	mac := hmac.New(sha256.New, h.cfg.TokenKey)
	mac.Write([]byte("payment-status\x00" + paymentKey))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// holdsToken reports whether the request carries the payment's token, in a time that tells nothing about it.
func (h *Handler) holdsToken(r *http.Request, paymentKey string) bool {
	return hmac.Equal([]byte(r.URL.Query().Get("token")), []byte(h.token(paymentKey)))
}
