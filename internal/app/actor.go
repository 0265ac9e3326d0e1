package app

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"daesa/ledger"
)

// usersFile is where the machine keeps the names of its users.
const usersFile = "/etc/passwd"

// operator is who runs a command: the name of the number that the system runs the process under, never what the
// environment claims. Somebody whom the machine has no name for goes by the number. The standard library is not asked:
// built without cgo it takes the name from the environment where the machine knows none, and with cgo it knows names that
// it does not know without, so that one person would be two.
func operator() (ledger.Actor, error) {
	number := strconv.Itoa(os.Getuid())
	file, err := os.Open(usersFile)
	if errors.Is(err, fs.ErrNotExist) {
		return ledger.OperatingSystemActor("uid-" + number)
	}
	if err != nil {
		return "", fmt.Errorf("find out who runs this command: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// name, password, number, …
		if fields := strings.SplitN(lines.Text(), ":", 4); len(fields) == 4 && fields[2] == number {
			return ledger.OperatingSystemActor(fields[0])
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("find out who runs this command: %w", err)
	}
	return ledger.OperatingSystemActor("uid-" + number)
}
