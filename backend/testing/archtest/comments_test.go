package archtest

import "testing"

func TestDocCommentsBeginWithTheName(t *testing.T) { report(t, checkDocNames(module(t))) }

func TestCheckDocNamesFindsAnotherName(t *testing.T) {
	for text, found := range map[string]bool{
		"// Open opens it.\nfunc Open() {}":                              false,
		"// Close opens it.\nfunc Open() {}":                             true,
		"// It opens.\nfunc (t T) Open() {}":                             true,
		"// open, under the lock, opens it.\nfunc open() {}":             false,
		"func open() {}":                                                 false,
		"//go:noinline\nfunc open() {}":                                  false,
		"// A Door is wood.\ntype Door struct{}":                         false,
		"// Doors are wood.\ntype Door struct{}":                         true,
		"// What is shared.\ntype (\n\tA struct{}\n\tB struct{}\n)":      false,
		"type (\n\t// A is one.\n\tA struct{}\n\t// A.\n\tB struct{}\n)": true,
	} {
		sources := []source{parse(t, "backend/core/mail/m.go", "package p\n\n"+text+"\n")}
		if problems := checkDocNames(sources); len(problems) > 0 != found {
			t.Errorf("%q: problems = %q, want some: %v", text, problems, found)
		}
	}
}
