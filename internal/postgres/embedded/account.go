package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the unprivileged user that runs the server on behalf of root. A nil account means: run as who we are.
type account struct {
	name     string
	uid, gid uint32
}

// unprivileged finds the account for root, which PostgreSQL refuses to run as; for anyone else it returns nil.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nobody else is needed
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("look up account %s: %w", name, err)
		}
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("embedded: PostgreSQL does not run as root, and there is no account postgres or nobody to run it")
}

// attributes put a program into its own process group, so that Ctrl-C reaches only us, and drop every right of root,
// supplementary groups included.
func (a *account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attributes.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: []uint32{a.gid}}
	}
	return attributes
}

// own gives a file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// canReach reports, as an error, the first parent folder of path that the account may not pass through. Home folders
// are often closed to others.
func (a *account) canReach(path string) error {
	if a == nil {
		return nil
	}
	for parent := filepath.Dir(path); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err == nil && !a.mayEnter(info) {
			return fmt.Errorf("embedded: PostgreSQL will run as %s, which cannot enter %s; choose a folder outside it, for example /var/lib/daesa/data",
				a.name, parent)
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}

func (a *account) mayEnter(info os.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	mode := info.Mode().Perm()
	switch {
	case owner.Uid == a.uid:
		return mode&0o100 != 0
	case owner.Gid == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
