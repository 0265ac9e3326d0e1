package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"daesa/ledger"
)

// Witness is the file outside the database that every head is also written to, one line each. It is only ever added to.
type Witness struct{ path string }

// NewWitness is the witness in a file, which need not exist yet.
func NewWitness(path string) Witness { return Witness{path: path} }

// Witnessed is a head as its line in the file says.
type Witnessed struct {
	Sequence int64
	Day      ledger.Day
	Hash     ledger.Digest
}

// witnessed is a head as its line would say.
func witnessed(h ledger.Head) Witnessed {
	return Witnessed{Sequence: h.Sequence, Day: h.Day, Hash: h.Hash}
}

// Create writes a new file with the heads of a report that found everything whole. An existing file is never added to.
func (w Witness) Create(r *Report) error {
	if !r.Whole() || !r.Signed || r.chain == nil {
		return errors.New("witness: only heads that were verified with a key, and found whole, are written to a new file")
	}
	file, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	return w.Append(r.chain...)
}

// Read reads every line. A line that a crash cut short is left out: the line that follows begins with it, or it is the
// last and without an end. Any other that cannot be read is an error: the file is evidence, and a guess at what it says is
// none.
func (w Witness) Read() ([]Witnessed, error) {
	raw, err := os.ReadFile(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	lines := strings.Split(string(raw), "\n")
	lines = lines[:len(lines)-1]
	var heads []Witnessed
	for i, line := range lines {
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], line) {
			continue
		}
		h, err := parseWitnessed(line)
		if err != nil {
			return nil, fmt.Errorf("witness %s, line %d: %w", w.path, i+1, err)
		}
		heads = append(heads, h)
	}
	return heads, nil
}

func parseWitnessed(line string) (h Witnessed, err error) {
	fields := strings.Split(line, " ")
	if len(fields) != 3 {
		return h, errors.New("a line is sequence, day and hash")
	}
	if h.Sequence, err = strconv.ParseInt(fields[0], 10, 64); err != nil {
		return h, errors.New("a line begins with a sequence number")
	}
	if h.Day, err = ledger.ParseDay(fields[1]); err != nil {
		return h, err
	}
	h.Hash, err = ledger.ParseDigest(fields[2])
	return h, err
}

// Append adds heads, on disk before it returns. It only ever adds, so that the file may carry the file system's own mark
// for such files; what a crash cut short is ended, and its line written again.
func (w Witness) Append(heads ...ledger.Head) (err error) {
	if len(heads) == 0 {
		return nil
	}
	file, err := os.OpenFile(w.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	raw, err := os.ReadFile(w.path)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	var lines bytes.Buffer
	if len(raw) > 0 && raw[len(raw)-1] != '\n' {
		lines.WriteByte('\n')
	}
	for _, h := range heads {
		fmt.Fprintf(&lines, "%d %s %s\n", h.Sequence, h.Day, h.Hash)
	}
	if _, err := file.Write(lines.Bytes()); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	return nil
}
