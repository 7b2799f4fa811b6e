package archtest

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const checkout = "../../.."

// document is one Markdown file of the checkout.
type document struct {
	path string // below the checkout, with slashes
	text string
}

// documents returns the Markdown files that people read: those of the checkout's first
// level and of docs.
func documents(t *testing.T) []document {
	t.Helper()
	var found []document
	err := filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(checkout, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case entry.IsDir() && name != "." && name != "docs" && !strings.HasPrefix(name, "docs/"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		found = append(found, document{name, strings.ReplaceAll(string(text), "\r\n", "\n")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 15 {
		t.Fatalf("only %d documents are found: the search is broken", len(found))
	}
	return found
}

func TestDOC_01_TheReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(checkout, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(text))); n > 900 {
		t.Errorf("the README has %d words, at most 900 are read", n)
	}
	for _, command := range []string{"go run ./build run", "go run ./build test"} {
		if !strings.Contains(string(text), "\n"+command+"\n") {
			t.Errorf("the README does not show `%s`", command)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

func TestDOC_02_NoLinkIsDead(t *testing.T) {
	all := documents(t)
	links := 0
	for _, page := range all {
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(page.text, ""), -1) {
			target := match[1] + match[2]
			if strings.HasPrefix(target, "https://") {
				continue
			}
			links++
			if problem := deadLink(all, page, target); problem != "" {
				t.Errorf("%s links to %s: %s", page.path, target, problem)
			}
		}
	}
	if links < 40 {
		t.Errorf("only %d links are found: the search is broken", links)
	}
}

// deadLink says why a link of a page leads nowhere, "" where it leads somewhere.
func deadLink(all []document, page document, target string) string {
	file, anchor, _ := strings.Cut(target, "#")
	path := page.path
	if file != "" {
		path = filepath.ToSlash(filepath.Join(filepath.Dir(page.path), file))
	}
	if _, err := os.Stat(filepath.Join(checkout, path)); err != nil {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	for _, other := range all {
		if other.path == path && slices.Contains(anchors(other.text), anchor) {
			return ""
		}
	}
	return "there is no such heading"
}

// anchors returns the names under which a page's headings can be linked to.
func anchors(text string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, match[1])
		names = append(names, name)
	}
	return names
}

func TestDOC_02_DeadLinksAreSeen(t *testing.T) {
	page := document{"docs/guide/start.md", "# A page, of `one`\n\n```\n# no heading\n```\n\n## Part 2\n"}
	for target, dead := range map[string]bool{
		"../../README.md": false, "../README.md": false, "#part-2": false, "#a-page-of-one": false, "../guide/start.md": false,
		"#no-heading": true, "#part": true, "../missing.md": true, "../README.md#no-such-heading": true,
	} {
		if problem := deadLink([]document{page}, page, target); (problem != "") != dead {
			t.Errorf("%s: %q", target, problem)
		}
	}
}

// sentences returns what a reader takes in at once: a sentence, an item of a list, a cell.
func sentences(text string) []string {
	text = fence.ReplaceAllString(text, "\n\n")
	text = regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "code")
	text = link.ReplaceAllString(text, "]")
	text = regexp.MustCompile(`(?m)^ *([-*]|\d+\.) +`).ReplaceAllString(text, "\n\n")
	text = regexp.MustCompile(`(?m)^#.*$|<[^>]*>`).ReplaceAllString(text, "\n\n")
	text = strings.ReplaceAll(text, "|", "\n\n")
	return regexp.MustCompile(`\n\s*\n|[.!?:;](?:\s|$)`).Split(text, -1)
}

// shortPages are held to sentences of at most 30 words, and of 14 in the mean.
var shortPages = regexp.MustCompile(`^(README\.md|docs/(README|storage|troubleshooting|glossary)\.md|docs/(guide|teams)/.*|docs/reference/(config|environment|exit-codes)\.md)$`)

func TestDOC_03_SentencesOfGuidesAreShort(t *testing.T) {
	pages, allWords, allCount, longest := 0, 0, 0, 0
	for _, page := range documents(t) {
		if !shortPages.MatchString(page.path) {
			continue
		}
		pages++
		words, count := 0, 0
		for _, sentence := range sentences(page.text) {
			n := len(strings.Fields(sentence))
			if n > 30 {
				t.Errorf("%s: a sentence has %d words, at most 30 are read: %s", page.path, n, strings.Join(strings.Fields(sentence), " "))
			}
			if n > 2 {
				words, count, longest = words+n, count+1, max(longest, n)
			}
		}
		allWords, allCount = allWords+words, allCount+count
		if count > 0 && words > 14*count {
			t.Errorf("%s: its %d sentences have %d words, more than 14 each", page.path, count, words)
		}
	}
	if pages < 12 {
		t.Fatalf("only %d pages are held: the search is broken", pages)
	}
	t.Logf("%d pages: %.1f words in a sentence, %d in the longest", pages, float64(allWords)/float64(allCount), longest)
}

func TestDOC_03_LongSentencesAreSeen(t *testing.T) {
	long := strings.Repeat("word ", 31)
	for name, text := range map[string]string{
		"a paragraph": "Short.\n\n" + long + "end.\n", "two lines": "One. " + strings.Replace(long, "word ", "word\n", 5),
		"a cell": "| a | " + long + " |\n", "an item": "- a\n- " + long + "\n",
	} {
		longest := 0
		for _, sentence := range sentences(text) {
			longest = max(longest, len(strings.Fields(sentence)))
		}
		if longest <= 30 {
			t.Errorf("%s: the longest sentence has %d words", name, longest)
		}
	}
	for name, text := range map[string]string{
		"code": "Run this:\n\n```\n" + long + "\n```\n\nDone.\n", "two sentences": strings.Repeat("word ", 20) + ". " + strings.Repeat("word ", 20) + ".",
		"cells": "| " + strings.Repeat("word ", 20) + " | " + strings.Repeat("word ", 20) + " |\n",
		"items": "- " + strings.Repeat("word ", 20) + "\n- " + strings.Repeat("word ", 20) + "\n",
	} {
		for _, sentence := range sentences(text) {
			if n := len(strings.Fields(sentence)); n > 30 {
				t.Errorf("%s: %d words are one sentence", name, n)
			}
		}
	}
}

// TestDOC_02_TheArchitectureNamesFilesThatAreThere checks every Go file that the page
// names, below backend: a reader who follows it must arrive.
func TestDOC_02_TheArchitectureNamesFilesThatAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(checkout, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z_]+(?:/[a-z_<>]+)*/[a-z_<>]+\\.go)").FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Fatalf("only %d files are named: the search is broken", len(named))
	}
	for _, name := range named {
		if len(filesNamed(t, name[1])) == 0 {
			t.Errorf("the architecture names %s, which is not there", name[1])
		}
	}
	functions := regexp.MustCompile("`([a-z_/<>]+\\.go)`, ((?:`[A-Za-z]+`(?:, | and )?)+)").FindAllStringSubmatch(string(text), -1)
	if len(functions) < 15 {
		t.Fatalf("only %d files with functions are named: the search is broken", len(functions))
	}
	for _, found := range functions {
		for _, name := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(found[2], -1) {
			if !anyDeclares(filesNamed(t, found[1]), name[1]) {
				t.Errorf("the architecture names %s in %s, where nothing is called so", name[1], found[1])
			}
		}
	}
}

// filesNamed returns the files below backend that a path of the architecture names. A
// part in angle brackets stands for any name.
func filesNamed(t *testing.T, path string) []string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join(checkout, "backend", regexp.MustCompile("<[a-z]+>").ReplaceAllString(path, "*")))
	if err != nil {
		t.Fatal(err)
	}
	return matches
}

// anyDeclares reports whether one of the files declares a function, method or type of
// that name.
func anyDeclares(files []string, name string) bool {
	declares := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type )` + name + `\b`)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && declares.Match(text)
	})
}

// TestDOC_02_TheArchitectureNamesEveryPackage checks the tables of wings and tests against
// the folders.
func TestDOC_02_TheArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(checkout, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	named, wing := map[string]bool{}, ""
	for _, row := range regexp.MustCompile("(?m)^\\| (?:`([a-z]+)`)? ?\\| ((?:`[a-z/]+`(?:, | with |, with )?)+) \\|").FindAllStringSubmatch(string(text), -1) {
		wing = cmp.Or(row[1], wing)
		first := ""
		for _, name := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(row[2], -1) {
			first = cmp.Or(first, name[1])
			for _, text := range []string{wing + "/" + name[1], name[1], wing + "/" + first + "/" + name[1], wing + "/" + strings.Split(first, "/")[0] + "/" + name[1]} {
				named[text] = true
			}
		}
	}
	for _, source := range module(t) {
		own := source.dir()
		if own == "" || source.isTest() || source.isTool() || named[own] {
			continue
		}
		named[own] = true
		t.Errorf("the architecture does not name the package %s", own)
	}
}
