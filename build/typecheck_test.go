package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What one system's compiler would not take is found on another one, also in tests.
func TestTypesAreCheckedForOtherSystems(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		wrong string
	}{
		"right":            {map[string]string{"a_windows.go": "package a\n\nvar A int = 1\n"}, ""},
		"a type":           {map[string]string{"a_windows.go": "package a\n\nvar A int = \"1\"\n"}, "a_windows.go:3"},
		"a name":           {map[string]string{"a_linux.go": "package a\n\nfunc f() {}\n", "b.go": "package a\n\nvar _ = f\n"}, "b.go:3"},
		"a type in a test": {map[string]string{"a_windows_test.go": "package a\n\nvar A int = \"1\"\n"}, "a_windows_test.go:3"},
		"a foreign system": {map[string]string{"a_darwin.go": "package a\n\nvar A int = \"1\"\n"}, ""},
		"a body":           {map[string]string{"b.go": "package a\n\nimport \"strings\"\n\nfunc f() int { return strings.ToUpper(\"a\") }\n"}, "b.go:5"},
	} {
		t.Run(name, func(t *testing.T) {
			p := project{root: t.TempDir(), output: testOutput{t}}
			c.files["go.mod"], c.files["doc.go"] = "module bridge\n\ngo 1.26\n", "package a\n"
			c.files["doc_test.go"] = "package a\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) {}\n"
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(p.root, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := p.typeCheck(t.Context(), "windows")
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("it said %v, want %q", err, c.wrong)
			}
		})
	}
}

// testOutput shows what the tasks say as the test's log.
type testOutput struct{ *testing.T }

func (o testOutput) Write(text []byte) (int, error) {
	o.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}
