package gitwork

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDiffTree: whatever names the files of a repository have, the changes that git lists
// are read with these names, each with its own numbers and patch.
func FuzzDiffTree(f *testing.F) {
	f.Add("a\n", "b c", 1, 2, false)
	f.Add("\"q\"", "diff --git a/x b/x", 0, 0, true)
	f.Add("ä\tx", "\nrename", 3, 0, false)
	f.Add(":100644 100644", "R100", 7, 9, true)
	f.Fuzz(func(t *testing.T, name, other string, added, removed int, binary bool) {
		if name == "" || other == "" || strings.ContainsRune(name+other, 0) || added < 0 || removed < 0 {
			return // git has no such names and numbers
		}
		ids := ":100644 100644 " + strings.Repeat("1", 40) + " " + strings.Repeat("2", 40) + " "
		numbers := fmt.Sprintf("%d\t%d\t", added, removed)
		if binary {
			numbers, added, removed = "-\t-\t", 0, 0
		}
		changes := parseRaw(fields(ids + "M\x00" + name + "\x00" + ids + "R090\x00" + other + "\x00" + name + "\x00" + ids + "A\x00" + other + "\x00"))
		count(changes, fields(numbers+name+"\x00"+numbers+"\x00"+other+"\x00"+name+"\x00"+numbers+other+"\x00"))
		change := FileChange{Added: added, Removed: removed, Binary: binary}
		modified, renamed, added3 := change, change, change
		modified.Path, modified.Status = name, "modified"
		renamed.Path, renamed.From, renamed.Status = name, other, "renamed"
		added3.Path, added3.Status = other, "added"
		if difference := cmp.Diff([]FileChange{modified, renamed, added3}, changes); difference != "" {
			t.Fatal(difference)
		}
	})
}

// FuzzDiffTreeOutput: no output makes the reading of a diff fail for good.
func FuzzDiffTreeOutput(f *testing.F) {
	f.Add(":1 2 3 4 R\x00a", "1\t2\t", "diff --git a b\n", true)
	f.Add("\x00\x00", "-\t-\tx\x00", "", false)
	f.Fuzz(func(t *testing.T, raw, numbers, patch string, cut bool) {
		changes := parseRaw(fields(raw))
		count(changes, fields(numbers))
		attach(changes, patch, cut)
		for _, change := range changes {
			if len(change.Patch) > len(patch)*len("\ufffd") { // a byte that is no text becomes that character
				t.Fatalf("a patch of %d bytes, of %d", len(change.Patch), len(patch))
			}
		}
	})
}
