package embedded

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// NotInstalledError says that PostgreSQL's server programs are missing, where they were looked for, and how to get
// them.
type NotInstalledError struct {
	Looked []string
}

// Error is written for the person at the terminal.
func (e *NotInstalledError) Error() string {
	install := "install the server package of PostgreSQL"
	switch runtime.GOOS {
	case "linux":
		install = "install them with `apt-get install -y postgresql` (Debian, Ubuntu), `dnf install -y postgresql-server` (Fedora) or `apk add postgresql` (Alpine)"
	case "darwin":
		install = "install them with `brew install postgresql@17`"
	}
	return fmt.Sprintf("embedded: PostgreSQL's server programs initdb and postgres were not found in %s; %s",
		strings.Join(e.Looked, ", "), install)
}

// findPrograms returns the folder of initdb and postgres, the newest version first. Links are resolved before the two
// are looked for side by side, and a folder that the account cannot enter is passed over.
func findPrograms(dir string, who *account) (string, error) {
	places := []string{dir}
	if dir == "" {
		places = usualPlaces()
	}
	for _, place := range places {
		initdb, err := filepath.EvalSymlinks(filepath.Join(place, "initdb"))
		if err != nil {
			continue
		}
		bin, err := filepath.Abs(filepath.Dir(initdb))
		if err != nil {
			continue
		}
		if executable(initdb) && executable(filepath.Join(bin, "postgres")) && who.canReach(initdb) == nil {
			return bin, nil
		}
	}
	return "", &NotInstalledError{Looked: places}
}

func usualPlaces() []string {
	var places []string
	if postgres, err := exec.LookPath("postgres"); err == nil {
		places = append(places, filepath.Dir(postgres))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			places = append(places, pattern) // named in the error
			continue
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		places = append(places, found...)
	}
	return places
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// version is the first number in a text: 15 in /usr/lib/postgresql/15/bin, 0 when there is none.
func version(text string) int {
	number, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(text))
	if err != nil {
		return 0
	}
	return number
}
