package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheReadmeNamesFilesThatAreThere checks every Go file that the README's
// ARCHITECTURE names, below backend: a reader who follows it must arrive.
func TestTheReadmeNamesFilesThatAreThere(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, architecture, found := strings.Cut(string(text), "## ARCHITECTURE")
	if !found {
		t.Fatal("the README has no ARCHITECTURE")
	}
	named := regexp.MustCompile("`([a-z_]+(?:/[a-z_<>]+)*/[a-z_<>]+\\.go)").FindAllStringSubmatch(architecture, -1)
	if len(named) < 20 {
		t.Fatalf("only %d files are named: the search is broken", len(named))
	}
	placeholder := regexp.MustCompile("<[a-z]+>")
	for _, name := range named {
		matches, err := filepath.Glob(filepath.Join("../../backend", placeholder.ReplaceAllString(name[1], "*")))
		if err != nil || len(matches) == 0 {
			t.Errorf("the README names %s, which is not there (%v)", name[1], err)
		}
	}
}
