package ledger_test

import (
	"errors"
	"testing"

	"daesa/ledger"
)

func TestActor_Same(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b ledger.Actor
		want bool
	}{
		{"os:kim", "os:kim", true},
		{"os:kim", "api:kim", true},
		{"os:Kim", "api:kIM", true},
		{"os:kim", "os:lee", false},
		{ledger.System, ledger.System, false},
		{"os:system", ledger.System, false},
		{"os:kim", "", false},
	}
	for _, tt := range tests {
		if got := tt.a.Same(tt.b); got != tt.want {
			t.Errorf("%q same as %q: got %t, want %t", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestActor_RefusesNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", " ", "a b", "a\nb", "a:b", "-a", "가", string(make([]byte, 101))} {
		if _, err := ledger.OperatingSystemActor(name); !errors.Is(err, ledger.ErrActor) {
			t.Errorf("%q: got %v, want %v", name, err, ledger.ErrActor)
		}
	}
	got, err := ledger.APIActor("back-office")
	if err != nil || got != "api:back-office" || !got.Person() || ledger.System.Person() {
		t.Errorf("got %q and %v", got, err)
	}
}
