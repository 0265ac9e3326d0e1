package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// DefaultDir is a good folder for the server of that name. For root it lies outside /root, where the account that runs
// PostgreSQL could not come; for anyone else it is the user's state folder, or, for a user without a home, a folder
// of their own among the temporary files.
//
// stateHome is the value of XDG_STATE_HOME, which may be empty.
func DefaultDir(stateHome, name string) (string, error) {
	if name == "" || name != filepath.Base(name) {
		return "", fmt.Errorf("embedded: %q is not a name for a folder", name)
	}
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib/daesa", name), nil
	}
	if filepath.IsAbs(stateHome) {
		return filepath.Join(stateHome, "daesa", name), nil
	}
	if home, err := os.UserHomeDir(); err == nil && writable(home) {
		return filepath.Join(home, ".local", "state", "daesa", name), nil
	}
	own, err := ownTemporary()
	if err != nil {
		return "", err
	}
	return filepath.Join(own, name), nil
}

// writable reports whether we may make a folder there; accounts of services often have a home that is not theirs.
func writable(dir string) bool {
	const writeAndEnter = 0o3
	return syscall.Access(dir, writeAndEnter) == nil
}

// ownTemporary is a private folder among the temporary files. Anyone could have made one of that name before us, so
// one that is not ours is refused.
func ownTemporary() (string, error) {
	dir := filepath.Join(os.TempDir(), "daesa-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("embedded: make a folder for data: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("embedded: look at %s: %w", dir, err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("embedded: %s exists and is not a private folder of ours; remove it or name another folder", dir)
	}
	return dir, nil
}
