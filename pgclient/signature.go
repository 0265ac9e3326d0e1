package pgclient

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// SignatureState is what a notice's signature is worth.
type SignatureState string

// The states of a signature.
const (
	SignatureValid         SignatureState = "valid"
	SignatureInvalid       SignatureState = "invalid"
	SignatureAbsent        SignatureState = "absent"
	SignatureNotConfigured SignatureState = "not_configured"
)

// SignatureStates lists every state.
func SignatureStates() []SignatureState {
	return []SignatureState{SignatureValid, SignatureInvalid, SignatureAbsent, SignatureNotConfigured}
}

// signaturesMax is well above the two that a change of keys sends.
const signaturesMax = 8

// VerifySignature checks the signature over the raw bytes and the time of transmission. Only notices of payouts
// and sellers carry one. While a key is being changed the header holds two, and either will do.
//
// The gateway does not say whether its 64 hexadecimal digits are the key or spell it, so both readings are
// accepted: whoever can sign with either knows the key.
func (c *Client) VerifySignature(header http.Header, body []byte) SignatureState {
	if len(c.securityKey) == 0 {
		return SignatureNotConfigured
	}
	signatures := header.Get("Tosspayments-Webhook-Signature")
	if signatures == "" {
		return SignatureAbsent
	}
	sentAt := header.Get("Tosspayments-Webhook-Transmission-Time")
	expected := [][]byte{sign(c.securityKey, body, sentAt), sign([]byte(c.cfg.SecurityKey), body, sentAt)}
	for i, part := range strings.Split(signatures, ",") {
		encoded, ok := strings.CutPrefix(strings.TrimSpace(part), "v1:")
		given, err := base64.StdEncoding.DecodeString(encoded)
		if i >= signaturesMax || !ok || err != nil {
			continue
		}
		if hmac.Equal(given, expected[0]) || hmac.Equal(given, expected[1]) {
			return SignatureValid
		}
	}
	return SignatureInvalid
}

func sign(key, body []byte, sentAt string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	mac.Write([]byte(":" + sentAt))
	return mac.Sum(nil)
}
