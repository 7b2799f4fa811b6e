package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPRF_04_FuzzTargetsAreFound(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"b/one_test.go":              "package b\n\nfunc FuzzFrames(f *testing.F) {}\nfunc FuzzAll(x *testing.F) {}\nfunc TestFuzz(t *testing.T) {}\n",
		"a/two_test.go":              "package a\n\n// func FuzzNone(f *testing.F)\nfunc FuzzZ(f *testing.F) {}\n",
		"a/code.go":                  "package a\n\nfunc FuzzCode(f *testing.F) {}\n",
		"a/testdata/three_test.go":   "func FuzzData(f *testing.F) {}\n",
		"node_modules/m/one_test.go": "func FuzzModule(f *testing.F) {}\n",
		".cache/one_test.go":         "func FuzzCache(f *testing.F) {}\n",
	})
	for _, tt := range []struct {
		parts []string
		want  []fuzzTarget
	}{
		{nil, []fuzzTarget{{"a", "FuzzZ"}, {"b", "FuzzAll"}, {"b", "FuzzFrames"}}},
		{[]string{"Fra", "Z"}, []fuzzTarget{{"a", "FuzzZ"}, {"b", "FuzzFrames"}}},
		{[]string{"Nothing"}, nil},
	} {
		got, err := findFuzzTargets(root, tt.parts)
		if err != nil {
			t.Fatal(err)
		}
		if difference := cmp.Diff(tt.want, got, cmp.AllowUnexported(fuzzTarget{})); difference != "" {
			t.Errorf("%q: %s", tt.parts, difference)
		}
	}
	if targets, err := findFuzzTargets("..", nil); err != nil || len(targets) < 15 {
		t.Errorf("in this checkout: %v, %v", targets, err)
	}
}

func TestPRF_04_TheShortestInputsAreKept(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "testdata")
	if n, err := copyShortest(from, to, 3); n != 0 || err != nil {
		t.Errorf("of a missing folder: %d, %v", n, err)
	}
	write(t, from, map[string]string{"long": "12345", "short": "1", "known": "12", "middle": "123", "other": "1234"})
	write(t, to, map[string]string{"known": "as it was"})
	for _, want := range []int{2, 0} {
		if n, err := copyShortest(from, to, 3); n != want || err != nil {
			t.Errorf("%d copied, %v; want %d", n, err, want)
		}
	}
	names := map[string]string{}
	entries, _ := os.ReadDir(to)
	for _, entry := range entries {
		text, _ := os.ReadFile(filepath.Join(to, entry.Name()))
		names[entry.Name()] = string(text)
	}
	if difference := cmp.Diff(map[string]string{"known": "as it was", "short": "1", "middle": "123"}, names); difference != "" {
		t.Error(difference)
	}
}

func TestPRF_04_AWrongArgumentRunsNothing(t *testing.T) {
	p := project{root: t.TempDir(), output: io.Discard}
	for _, args := range [][]string{{"-for", "0s"}, {"-for", "soon"}, {"-keep", "-1"}, {"-x"}, {"NoSuchTarget"}} {
		if err := runFuzz(t.Context(), p, args); !errors.As(err, new(badArgument)) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
