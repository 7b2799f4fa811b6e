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

// The share may grow, and not fall.
func TestDOC_02_DocCommentsSayWhenFunctionsFail(t *testing.T) {
	said, all := failureDocs(module(t))
	if all < 500 {
		t.Fatalf("only %d functions return an error: the search is broken", all)
	}
	share := 100 * said / all
	t.Logf("%d of %d functions that return an error say when they fail: %d %%", said, all, share)
	if share < 80 {
		t.Errorf("%d %% of the functions that return an error say when they fail, at least 80 %% must", share)
	}
}

func TestDOC_02_FailureDocsAreCounted(t *testing.T) {
	text := `package chat

// Send stores a message. It fails with Busy if too many wait.
func Send() (int, error) { return 0, nil }

// Read returns a message.
func Read() (m int, err error) { return 0, nil }

func Drop() error { return nil }

// Count returns a number.
func Count() int { return 0 }

func open() error { return nil }
`
	if said, all := failureDocs([]source{parse(t, "backend/core/chat/c.go", text)}); said != 1 || all != 3 {
		t.Errorf("%d of %d", said, all)
	}
}
