package postgres_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"daesa/internal/postgres"
)

// TestLocks: no two locks share a number, and none is declared anywhere else.
func TestLocks(t *testing.T) {
	t.Parallel()
	locks := postgres.Locks()
	if distinct := slices.Compact(slices.Sorted(slices.Values(locks))); len(distinct) != len(locks) {
		t.Errorf("%d locks have %d numbers", len(locks), len(distinct))
	}
	file, err := parser.ParseFile(token.NewFileSet(), "locks.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			declared += len(v.Names)
		}
		return true
	})
	if declared != len(locks) {
		t.Errorf("%d locks are declared and %d listed", declared, len(locks))
	}
	number := regexp.MustCompile(`(?i)0x64_?61_?65_?73_?61|advisory_(xact_)?lock(_shared)?\(\d`)
	err = filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			if path == "../.." {
				return nil
			}
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "internal/postgres/locks.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if number.Match(source) {
			t.Errorf("%s has the number of a lock of its own", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
