package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"daesa/internal/app"
)

// settings are the environment variables that the program knows, as its help says.
func settings(t *testing.T) []string {
	t.Helper()
	var help bytes.Buffer
	for _, command := range []string{"serve", "health", "audit"} {
		if code := app.Main([]string{command, "--help"}, &help, &help); code != app.ExitOK {
			t.Fatalf("daesa %s --help: exit %d: %s", command, code, help.String())
		}
	}
	var all []string
	for _, found := range regexp.MustCompile(`\$((?:DAESA|TOSS)_[A-Z_]+)`).FindAllStringSubmatch(help.String(), -1) {
		all = append(all, found[1])
	}
	if len(all) < 20 {
		t.Fatalf("the help names %d settings", len(all))
	}
	return all
}

// files are everything that is deployed.
func files(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, pattern := range []string{"Dockerfile", "*.y*ml", "*.service", "env.example", "../docs/operations.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no such file, %v", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[path] = string(text)
		}
	}
	return all
}

// TestFiles_NameSettingsThatThereAre: a setting that the program does not have does nothing, and nobody would know.
func TestFiles_NameSettingsThatThereAre(t *testing.T) {
	t.Parallel()
	known := settings(t)
	for path, text := range files(t) {
		for _, name := range regexp.MustCompile(`\b(?:DAESA|TOSS)_[A-Z_]+\b`).FindAllString(text, -1) {
			if !slices.Contains(known, name) && name != "DAESA_DATABASE_URL" {
				t.Errorf("%s: the program has no setting %s", path, name)
			}
		}
	}
}

// TestFiles_NameFilesThatThereAre: what compose.yaml mounts is in the repository, or made by who fills it in.
func TestFiles_NameFilesThatThereAre(t *testing.T) {
	t.Parallel()
	var compose struct {
		Services map[string]struct {
			Image     string    `yaml:"image"`
			Command   yaml.Node `yaml:"command"`
			DependsOn yaml.Node `yaml:"depends_on"`
		} `yaml:"services"`
		Configs map[string]struct {
			File string `yaml:"file"`
		} `yaml:"configs"`
		Secrets map[string]struct {
			File string `yaml:"file"`
		} `yaml:"secrets"`
	}
	if err := yaml.Unmarshal([]byte(files(t)["compose.yaml"]), &compose); err != nil {
		t.Fatal(err)
	}
	for name, config := range compose.Configs {
		if _, err := os.Stat(config.File); err != nil {
			t.Errorf("config %s: %v", name, err)
		}
	}
	for name, secret := range compose.Secrets {
		if ignored, err := os.ReadFile("../.gitignore"); err != nil || !strings.HasPrefix(secret.File, "./secrets/") || !strings.Contains(string(ignored), "/deploy/secrets/\n") {
			t.Errorf("secret %s is in %s, which git does not ignore, %v", name, secret.File, err)
		}
	}
	for _, name := range []string{"postgres", "migrate", "daesa", "prometheus", "alertmanager", "grafana"} {
		if _, ok := compose.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	for name, service := range compose.Services {
		if strings.HasSuffix(service.Image, ":latest") || service.Image != "" && !strings.Contains(service.Image, ":") {
			t.Errorf("service %s has no version of %s", name, service.Image)
		}
	}
}

// TestUnit: systemd knows every word of the unit, and calls what it leaves open little.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not installed; the unit is for machines that have it")
	}
	unit := filepath.Join(t.TempDir(), "daesa.service")
	text := strings.ReplaceAll(files(t)["daesa.service"], "/usr/local/bin/daesa", "/bin/true")
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || strings.Contains(string(said), "daesa.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, said)
	}
	if said, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, said)
	}
}
