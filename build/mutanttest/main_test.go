package main

import (
	"bytes"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPRF_02_WhatDoesNotCompileIsToldFromWhatFails runs the real go command.
func TestPRF_02_WhatDoesNotCompileIsToldFromWhatFails(t *testing.T) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(realGo, goCommand)
	for _, tt := range []struct {
		name, code, test string
		want             int
	}{
		{"passes", "func Sum(a int) int { return a }", "if Sum(1) != 1 { t.Error() }", 0},
		{"fails", "func Sum(a int) int { return -a }", "if Sum(1) != 1 { t.Error() }", 1},
		{"fails, and prints what go prints", "func Sum(a int) int { return -a }", `t.Error("FAIL [build failed]")`, 1},
		{"does not compile", `func Sum(a string) string { return a - "x" }`, "", notViable},
		{"vet complains alone", `import "fmt"; func Sum(a int) string { return fmt.Sprintf("%d") }`, "_ = Sum(1)", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range map[string]string{
				"go.mod": "module bridge\n\ngo 1.26\n", "p.go": "package p\n\n" + tt.code + "\n",
				"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) { " + tt.test + " }\n",
			} {
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var printed bytes.Buffer
			if code, err := run([]string{"test", "-timeout", "60s", "-failfast", "./..."}, &printed); code != tt.want || err != nil {
				t.Errorf("exit code %d, %v; want %d: %s", code, err, tt.want, printed.String())
			}
		})
	}
}

func TestPRF_02_OnlyTheChosenTestsOfOnePackageRun(t *testing.T) {
	asked := []string{"test", "-cover", "-coverprofile", "/tmp/profile", "./backend/network/hub/..."}
	for tests, want := range map[string][]string{
		"":     {"test", "-vet=off", "-ldflags=-s -w", "-cover", "-coverprofile", "/tmp/profile", "./backend/network/hub"},
		"MSG_": {"test", "-vet=off", "-ldflags=-s -w", "-run=MSG_", "-cover", "-coverprofile", "/tmp/profile", "./backend/network/hub"},
	} {
		if difference := cmp.Diff(want, testArguments(asked, tests)); difference != "" {
			t.Errorf("%q: %s", tests, difference)
		}
	}
}

func TestPRF_02_ThePathHasNoSecondStandIn(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := func(folders ...string) string { return strings.Join(folders, string(os.PathListSeparator)) }
	if got, want := withoutOwnFolder(list("/a", filepath.Dir(own), "/b")), list("/a", "/b"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

const switches = `package p

import "strings"

const most = 2 * 3

var least, build = 1 + 1, func() int { return 1 + 2 }

func kind(n int, s string) int {
	switch {
	case n > 3 &&
		s == "a":
		return 1
	case n > 2:
		return 2
	default:
		return 3
	}
}

func never(n int) int {
	switch n {
	case most - 1:
		return 1
	}
	return strings.Count("", "")
}
`

func TestPRF_02_TheProfileHasTheExpressionsOfCases(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	profile := filepath.Join(root, "profile")
	const before = "mode: set\nbridge/a/p.go:9.33,10.9 1 1\nbridge/a/p.go:12.12,13.11 1 0\nbridge/a/p.go:21.22,22.11 1 0\nother/x.go:1.1,2.2 1 1\n"
	for name, text := range map[string]string{filepath.Join(root, "a", "p.go"): switches, profile: before} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := widenProfile(profile, root); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(profile)
	added, kept := strings.CutPrefix(string(text), before)
	if err != nil || !kept {
		t.Fatalf("%v: %s", err, text)
	}
	got := slices.Sorted(strings.Lines(added))
	want := []string{
		"bridge/a/p.go:11.7,12.11 1 1\n", "bridge/a/p.go:14.7,14.12 1 1\n",
		"bridge/a/p.go:5.14,5.19 1 1\n", "bridge/a/p.go:7.20,7.25 1 1\n",
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
	for _, wrong := range []string{"mode: set\nbridge/a/p.go\n", "bridge/a/p.go:1,2 1 1\n", "bridge/a/gone.go:1.1,2.2 1 1\n"} {
		if err := os.WriteFile(profile, []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := widenProfile(profile, root); err == nil {
			t.Errorf("no failure for %q", wrong)
		}
	}
}

func TestPRF_02_ABlockHasItsBeginAndNotItsEnd(t *testing.T) {
	b := block{fromLine: 2, fromColumn: 5, toLine: 4, toColumn: 3}
	for _, tt := range []struct {
		line, column int
		want         bool
	}{{2, 4, false}, {2, 5, true}, {3, 1, true}, {4, 2, true}, {4, 3, false}, {1, 9, false}, {5, 1, false}} {
		if got := b.contains(token.Position{Line: tt.line, Column: tt.column}); got != tt.want {
			t.Errorf("%d.%d: %v", tt.line, tt.column, got)
		}
	}
}
