package app

import (
	"fmt"
	"os/user"

	"daesa/ledger"
)

// operator is who runs a command: the user whom the operating system says, never what the environment claims.
func operator() (ledger.Actor, error) {
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("find out who runs this command: %w", err)
	}
	return ledger.OperatingSystemActor(u.Username)
}
