package seal

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"daesa/ledger"
)

// Key signs heads. It lives in a file that the database's server never sees.
type Key struct {
	private ed25519.PrivateKey
	id      string
}

// The kinds of PEM blocks.
const (
	pemPrivate = "PRIVATE KEY"
	pemPublic  = "PUBLIC KEY"
)

// ReadKey reads the private key of a file: PEM, PKCS #8, Ed25519. A file that others than its owner may read or change
// is refused.
func ReadKey(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("seal key: %w", err)
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return nil, fmt.Errorf("seal key %s: others may use it (mode %04o); run chmod 600 on it", path, info.Mode().Perm())
	}
	block, err := readPEM(path, pemPrivate)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("seal key %s: %w", path, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("seal key %s: it is no Ed25519 key; daesa seal-key makes one", path)
	}
	return newKey(private)
}

func newKey(private ed25519.PrivateKey) (*Key, error) {
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("seal key: no public half")
	}
	return &Key{private: private, id: KeyID(public)}, nil
}

// ReadPublicKey reads the public key of a file: PEM, PKIX, Ed25519.
func ReadPublicKey(path string) (ed25519.PublicKey, error) {
	block, err := readPEM(path, pemPublic)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(block)
	if err != nil {
		return nil, fmt.Errorf("public key %s: %w", path, err)
	}
	public, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("public key %s: it is no Ed25519 key", path)
	}
	return public, nil
}

func readPEM(path, kind string) ([]byte, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the file that the operator names
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("key file %s: it holds no PEM block %q", path, kind)
	}
	return block.Bytes, nil
}

// GenerateKey makes a key and writes it to a new file that only its owner may read. An existing file is never replaced.
func GenerateKey(path string) (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a seal key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("make a seal key: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the file that the operator names
	if err != nil {
		return nil, fmt.Errorf("make a seal key: %w", err)
	}
	err = errors.Join(pem.Encode(file, &pem.Block{Type: pemPrivate, Bytes: der}), file.Sync(), file.Close())
	if err != nil {
		return nil, fmt.Errorf("make a seal key: %w", err)
	}
	return newKey(private)
}

// ID names the key: the first 16 hexadecimal digits of the SHA-256 of its public half.
func (k *Key) ID() string { return k.id }

// Public is the half that everybody may have.
func (k *Key) Public() ed25519.PublicKey {
	return ed25519.PublicKey(k.private[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
}

// PublicPEM is the public half as a file holds it.
func (k *Key) PublicPEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		return nil, fmt.Errorf("write the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: der}), nil
}

// KeyID names a public key.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// sign completes a head: hash, key and signature.
func (k *Key) sign(h *ledger.Head) {
	h.KeyID = k.id
	h.Hash = h.Digest()
	h.Signature = ed25519.Sign(k.private, h.Canonical())
}

// checkSignature says what is wrong with a head's own hash and signature; "" when nothing is. Without any key only the
// hash is checked.
func checkSignature(h ledger.Head, keys map[string]ed25519.PublicKey) string {
	if h.Digest() != h.Hash {
		return "its hash is not that of what it says"
	}
	if len(keys) == 0 {
		return ""
	}
	public, known := keys[h.KeyID]
	if !known {
		return fmt.Sprintf("it is signed with the key %.16q, which is none of those to verify with", h.KeyID)
	}
	if !ed25519.Verify(public, h.Canonical(), h.Signature) {
		return "its signature is wrong"
	}
	return ""
}
