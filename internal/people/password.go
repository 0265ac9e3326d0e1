package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// ErrPassword reports a password that is too easily guessed, or cannot be one.
var ErrPassword = errors.New("a password has 12 to 200 characters and is not the account's name")

const (
	passwordLeast = 12
	passwordMost  = 200
	saltLength    = 16
	hashLength    = 32
)

// Cost is what one look at a password costs. The zero value is that of RFC 9106, section 4, second choice: 64 MiB, three
// passes, four lanes. A hash carries its own, so that a later version may ask for more; whoever signs in then is hashed anew.
type Cost struct {
	Memory uint32 // KiB
	Passes uint32
	Lanes  uint8
}

func (c Cost) withDefaults() Cost {
	if c == (Cost{}) {
		return Cost{Memory: 64 << 10, Passes: 3, Lanes: 4}
	}
	return c
}

// checkPassword says whether the password may be somebody's. Composition rules make passwords worse; length does not.
func checkPassword(name, password string) error {
	length := utf8.RuneCountInString(password)
	if length < passwordLeast || length > passwordMost || !utf8.ValidString(password) || strings.Contains(password, "\x00") ||
		strings.EqualFold(strings.TrimSpace(password), name) {
		return ErrPassword
	}
	return nil
}

// OneTimePassword is one that somebody is given and must change at once: 26 letters and digits, 130 bits.
func OneTimePassword() string { return rand.Text() }

// hasher hashes passwords, few at a time: each takes the memory of its cost, and strangers choose how many there are.
type hasher struct {
	cost  Cost
	slots chan struct{}
}

// hashingAtOnce bounds the memory of all hashes together.
const hashingAtOnce = 2

func newHasher(cost Cost) hasher {
	return hasher{cost: cost.withDefaults(), slots: make(chan struct{}, hashingAtOnce)}
}

// hash makes the hash to keep of a password, in the PHC string format.
func (h hasher) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // it never fails
	sum, err := h.sum(ctx, password, salt, h.cost, hashLength)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.cost.Memory, h.cost.Passes, h.cost.Lanes,
		encode(salt), encode(sum)), nil
}

// matches reports whether the password is the one that was hashed, and whether its hash is of another cost than ours.
func (h hasher) matches(ctx context.Context, password, kept string) (same, stale bool, err error) {
	cost, salt, want, err := parseHash(kept)
	if err != nil {
		return false, false, err
	}
	sum, err := h.sum(ctx, password, salt, cost, uint32(len(want))) //nolint:gosec // parseHash bounds it
	if err != nil {
		return false, false, err
	}
	return subtle.ConstantTimeCompare(sum, want) == 1, cost != h.cost, nil
}

// waste does the work of a comparison for nobody, so that the time of an answer does not tell who has an account.
func (h hasher) waste(ctx context.Context, password string) error {
	_, err := h.sum(ctx, password, make([]byte, saltLength), h.cost, hashLength)
	return err
}

func (h hasher) sum(ctx context.Context, password string, salt []byte, c Cost, length uint32) ([]byte, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to hash a password: %w", ctx.Err())
	}
	return argon2.IDKey([]byte(password), salt, c.Passes, c.Memory, c.Lanes, length), nil
}

// parseHash reads a hash that was kept.
func parseHash(kept string) (c Cost, salt, sum []byte, err error) {
	bad := func() (Cost, []byte, []byte, error) {
		return Cost{}, nil, nil, errors.New("people: a password's hash is not one that this version reads")
	}
	parts := strings.Split(kept, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return bad()
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.Memory, &c.Passes, &c.Lanes); err != nil || c.Passes == 0 || c.Lanes == 0 {
		return bad()
	}
	salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return bad()
	}
	sum, err = base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(sum) != hashLength {
		return bad()
	}
	return c, salt, sum, nil
}
