package ledger

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Actor is who did something that a person must answer for: where they were known from, and the name they have there,
// as in "os:kim", "api:back-office" or "person:kim". What the service does by itself is done by [System].
type Actor string

// System is the service itself.
const System Actor = "system"

// The places a person is known from.
const (
	fromOperatingSystem = "os"
	fromAPI             = "api"
	fromPages           = "person"
)

// ErrActor reports a name that cannot stand in a trail.
var ErrActor = errors.New("not a name that can stand in a trail")

var actorForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$`)

// OperatingSystemActor names the user whom the operating system runs a command for.
func OperatingSystemActor(user string) (Actor, error) { return actor(fromOperatingSystem, user) }

// APIActor names the authenticated caller of the API.
func APIActor(name string) (Actor, error) { return actor(fromAPI, name) }

// PersonActor names who is signed in to the pages.
func PersonActor(account string) (Actor, error) { return actor(fromPages, account) }

func actor(from, name string) (Actor, error) {
	if !actorForm.MatchString(name) {
		return "", fmt.Errorf("%q: %w", name, ErrActor)
	}
	return Actor(from + ":" + name), nil
}

// Same reports whether two actors may be one person: nobody becomes a second person by coming in through another door,
// or by another spelling of the same name. Nobody is the same as the service.
func (a Actor) Same(b Actor) bool {
	if a == System || b == System {
		return false
	}
	return strings.EqualFold(a.name(), b.name())
}

// Person reports whether a person stands behind the actor.
func (a Actor) Person() bool { return a != "" && a != System }

func (a Actor) name() string {
	_, name, found := strings.Cut(string(a), ":")
	if !found {
		return string(a)
	}
	return name
}

// ParseActor reads a person's actor as it is written: os:<user>, api:<key> or person:<account>.
func ParseActor(text string) (Actor, error) {
	from, name, _ := strings.Cut(text, ":")
	if from != fromOperatingSystem && from != fromAPI && from != fromPages {
		return "", fmt.Errorf("%q is not os:<user>, api:<key> or person:<account>: %w", text, ErrActor)
	}
	return actor(from, name)
}
