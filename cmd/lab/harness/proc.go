package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of processor times in /proc: USER_HZ, which is 100 on every platform that Go runs on.
const ticksPerSecond = 100

// usage is what a process holds and has used, as the system counts it.
type usage struct {
	processor time.Duration
	resident  int64 // bytes
	sockets   int
}

// usageOf looks at a process.
func usageOf(pid int) (u usage, err error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat")) //nolint:gosec // of a child of ours
	if err != nil {
		return u, fmt.Errorf("look at process %d: %w", pid, err)
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the name before may hold anything
	fields := strings.Fields(after)
	if len(fields) < 22 {
		return u, fmt.Errorf("look at process %d: %q is not what was expected", pid, stat)
	}
	u.processor = ticks(fields[11]) + ticks(fields[12])
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	u.resident = pages * int64(os.Getpagesize())
	files, err := os.ReadDir(filepath.Join(folder, "fd"))
	if err != nil {
		return u, fmt.Errorf("look at process %d: %w", pid, err)
	}
	for _, file := range files {
		if to, err := os.Readlink(filepath.Join(folder, "fd", file.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			u.sockets++
		}
	}
	return u, nil
}

func ticks(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * time.Second / ticksPerSecond
}

// machine is what all processors have done since the start: everything, and nothing.
type machine struct{ all, idle time.Duration }

func machineNow() (m machine, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m, fmt.Errorf("look at the machine: %w", err)
	}
	first, _, _ := strings.Cut(string(stat), "\n")
	for n, field := range strings.Fields(first) {
		if n == 0 || n > 8 { // the name; guests are part of user
			continue
		}
		m.all += ticks(field)
		if n == 4 || n == 5 { // idle, and waiting for a disk
			m.idle += ticks(field)
		}
	}
	return m, nil
}

// busy is the share of all processors that somebody used since an earlier look.
func (m machine) busy(earlier machine) float64 {
	all := m.all - earlier.all
	if all <= 0 {
		return 0
	}
	return 1 - float64(m.idle-earlier.idle)/float64(all)
}
