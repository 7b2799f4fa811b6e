package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// testEnding is how the name of a file of Go tests ends.
const testEnding = "_test.go"

// walkTests calls visit for each file of a checkout whose name has one of the endings, with
// its folder below the checkout, its name and its text. It leaves out what is not the
// project's own source.
func walkTests(root string, endings []string, visit func(folder, name string, text []byte) error) error {
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "testdata", "dist"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(name, ending) }) {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(folder), name, text)
	})
}
