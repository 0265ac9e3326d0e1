package app_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/app"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestRoutes holds the URL surfaces, the public one and that of the pages, against the tables in testdata: method, path, the class that a request counts
// in, and the middlewares in their order.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, build := range map[string]func(*app.App, *prometheus.Registry) (chi.Router, error){
		"routes.txt": app.PublicRoutes, "page_routes.txt": app.PageRoutes,
	} {
		registry := prometheus.NewPedanticRegistry()
		router, err := build(w.app.App, registry)
		w.must(err)
		w.routesAre(name, registry, router)
	}
}

// routesAre holds the routes of a router against a table in testdata.
func (w *world) routesAre(table string, registry *prometheus.Registry, router chi.Router) {
	w.Helper()
	var rows []string
	w.must(chi.Walk(router, func(method, path string, _ http.Handler, around ...func(http.Handler) http.Handler) error {
		names := make([]string, len(around))
		for i, m := range around {
			names[i] = nameOf(m)
		}
		rows = append(rows, fmt.Sprintf("%-7s %-44s %-12s %s", method, path, classOf(w.Context(), registry, around), strings.Join(names, " → ")))
		return nil
	}))
	slices.Sort(rows)
	got := strings.Join(rows, "\n") + "\n"
	golden := filepath.Join("testdata", table)
	if *update {
		w.must(os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	w.must(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		w.Errorf("the routes differ from %s; -update writes it (-want +got):\n%s", golden, diff)
	}
}

// nameOf is a middleware by the function that made it. The compiler may have moved that function into its caller; its name
// is then somewhere within.
func nameOf(m func(http.Handler) http.Handler) string {
	full := runtime.FuncForPC(reflect.ValueOf(m).Pointer()).Name()
	for _, name := range []string{
		"SecurityHeaders", "NewCORS", "NewBearer", "bearerOrToken", gateName, "RateLimit).Middleware", "ReadAhead", "Timeout",
	} {
		if strings.Contains(full, name) {
			return strings.NewReplacer("New", "", ").Middleware", "").Replace(name)
		}
	}
	return full
}

const gateName = "Gate).Middleware"

// classOf asks the gate among the middlewares which class it lets a request in as.
func classOf(ctx context.Context, registry *prometheus.Registry, around []func(http.Handler) http.Handler) string {
	class := "-"
	for _, m := range around {
		if nameOf(m) != "Gate" {
			continue
		}
		m(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			families, err := registry.Gather()
			if err != nil {
				class = err.Error()
			}
			for _, f := range families {
				for _, series := range f.GetMetric() {
					if f.GetName() == "daesa_admission_gate_in_flight_requests" && series.GetGauge().GetValue() > 0 {
						class = series.GetLabel()[0].GetValue()
					}
				}
			}
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/", http.NoBody))
	}
	return class
}

// unanswered are the sentinels that no caller of the HTTP surface can ever meet, each with the reason why.
func unanswered() map[string]string {
	return map[string]string{
		"postgres.ErrNestedTransaction": "a mistake in our own code: 500 without a word is right",
		"reconcile.ErrBusy":             "of a job that reads the list",
		"reconcile.ErrPaused":           "of a job that reads the list",
		"reconcile.ErrClocks":           "of a job that reads the list",
		"reconcile.ErrShortRead":        "of a job that reads the list",
		"reconcile.ErrIncomplete":       "of a job that audits",
		"ledger.ErrNotBefore":           "met by the import and the sweep only",
		"ledger.ErrNothingTaken":        "met by the import and the sweep only",
		"ledger.ErrContradicts":         "met by the import and the sweep only",
	}
}

// TestProblems requires a row in the index of error answers for every exported sentinel of the packages whose errors
// reach a handler.
func TestProblems(t *testing.T) {
	t.Parallel()
	indexed := make(map[string]bool)
	for _, row := range app.Problems() {
		indexed[row.Err.Error()] = true
		if row.Status < 400 || row.Code == "" || row.Title == "" {
			t.Errorf("the row of %q lacks something: %+v", row.Err, row)
		}
	}
	excused := unanswered()
	for _, dir := range []string{"internal/web", "internal/admission", "ledger", "checkout", "webhook", "reconcile", "reconcile/desk", "internal/postgres"} {
		found := sentinels(t, filepath.Join("..", "..", dir))
		for name, text := range found {
			full := filepath.Base(dir) + "." + name
			_, isExcused := excused[full]
			delete(excused, full)
			switch {
			case isExcused && indexed[text]:
				t.Errorf("%s has a row and need not be excused", full)
			case !isExcused && !indexed[text]:
				t.Errorf("%s (%q) has no row in problems.go", full, text)
			}
		}
	}
	for name := range excused {
		t.Errorf("%s is excused and does not exist", name)
	}
}

// sentinels finds the exported error values of a package, with their texts.
func sentinels(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, name := range spec.Names {
					if text, isError := newError(spec, i); isError && strings.HasPrefix(name.Name, "Err") {
						found[name.Name] = text
					}
				}
			}
			return true
		})
	}
	return found
}

// newError reads the text of errors.New("…").
func newError(spec *ast.ValueSpec, i int) (string, bool) {
	if i >= len(spec.Values) {
		return "", false
	}
	call, ok := spec.Values[i].(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return "", false
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	return strings.Trim(literal.Value, "`\""), true
}

// TestFilesAreChapters keeps every file of the service readable in one sitting.
func TestFilesAreChapters(t *testing.T) {
	t.Parallel()
	const linesMost = 400
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if n := strings.Count(string(raw), "\n"); n > linesMost && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s has %d lines, want at most %d", path, n, linesMost)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
