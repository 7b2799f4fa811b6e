package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mostFiles bounds the files of each change in docs/adding.md. The numbers only fall.
var mostFiles = map[string]int{
	"An MCP tool": 6, "A setting of jobs": 31, "An agent": 8, "A finding of the doctor": 2, "A part of the page": 13,
}

var (
	addedPattern = regexp.MustCompile("[Pp]attern: `([^\n]+)`\n")
	addedFile    = regexp.MustCompile("(?m)^- `([^`]+)`: ")
)

// TestTheFilesOfACommonChangeAreThoseOfItsPage searches the product for the example of each
// section of docs/adding.md: the list there is exact, and grows for nobody.
func TestTheFilesOfACommonChangeAreThoseOfItsPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(checkout, "docs", "adding.md"))
	if err != nil {
		t.Fatal(err)
	}
	product := productFiles(t)
	sections := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n## ")[1:]
	if len(sections) != len(mostFiles) {
		t.Fatalf("%d sections, %d bounds", len(sections), len(mostFiles))
	}
	for _, section := range sections {
		title, body, _ := strings.Cut(section, "\n")
		t.Run(title, func(t *testing.T) {
			found := addedPattern.FindStringSubmatch(body)
			if found == nil {
				t.Fatal("the section has no pattern")
			}
			pattern := regexp.MustCompile(found[1])
			var listed, there []string
			for _, file := range addedFile.FindAllStringSubmatch(body, -1) {
				listed = append(listed, file[1])
			}
			for name, content := range product {
				if pattern.MatchString(content) {
					there = append(there, name)
				}
			}
			slices.Sort(listed)
			slices.Sort(there)
			if diff := cmp.Diff(there, listed); diff != "" {
				t.Errorf("the list differs from the files that match (-there +listed):\n%s", diff)
			}
			if most := mostFiles[title]; len(there) != most {
				t.Errorf("%d files, the bound is %d: it only falls", len(there), most)
			}
		})
	}
}

// productFiles returns the text of the files of the product, by path: no tests, and nothing
// that only tests use.
func productFiles(t *testing.T) map[string]string {
	t.Helper()
	product := map[string]string{}
	for _, folder := range []string{"app", "backend", "cmd", "frontend/src"} {
		err := filepath.WalkDir(filepath.Join(checkout, filepath.FromSlash(folder)), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, err := filepath.Rel(checkout, file)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			isTest := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".test.ts") || name == "frontend/src/lib/sample.ts" ||
				isTestTool(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "backend/"))
			if isTest || !slices.Contains([]string{".go", ".ts", ".svelte"}, filepath.Ext(name)) {
				return nil
			}
			text, err := os.ReadFile(file)
			product[name] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(product) < 500 {
		t.Fatalf("only %d files are found: the search is broken", len(product))
	}
	return product
}
