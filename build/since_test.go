package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sinceProject is a checkout with packages that use each other, and one commit.
func sinceProject(t *testing.T) project {
	t.Helper()
	root := t.TempDir()
	write(t, root, map[string]string{
		"go.mod":                              "module bridge\n\ngo 1.26\n",
		"backend/core/mail/mail.go":           "package mail\n",
		"backend/core/mail/mail_test.go":      "package mail\n",
		"backend/core/mail/testdata/old.json": "{}\n",
		"backend/core/chat/chat.go":           "package chat\n",
		"backend/core/chat/chat_test.go":      "package chat\n",
		"backend/broker/broker.go":            "package broker\n\nimport _ \"bridge/backend/core/mail\"\n",
		"backend/broker/broker_test.go":       "package broker_test\n\nimport _ \"bridge/backend/broker\"\n",
		"backend/doors/hook/hook.go":          "package hook\n",
		"backend/doors/hook/hook_test.go":     "package hook\n\nimport _ \"bridge/backend/core/mail\"\n",
		"backend/testing/soak/soak_test.go":   "package soak\n",
		"backend/testing/archtest/a_test.go":  "package archtest\n",
		"cmd/bridge/main.go":                  "package main\n\nimport _ \"bridge/backend/broker\"\n\nfunc main() {}\n",
		"app/app.go":                          "package app\n",
		"frontend/src/a.ts":                   "\n",
		"README.md":                           "\n",
		".gitignore":                          "*.log\n",
	})
	git(t, root, "init", "-q")
	git(t, root, "add", ".")
	git(t, root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a")
	return project{root: root, output: io.Discard, notes: &notes{}}
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	call := exec.Command("git", args...)
	call.Dir = root
	if output, err := call.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, output)
	}
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// change makes a file differ, or makes it.
func change(t *testing.T, root, file string) {
	t.Helper()
	before, err := os.ReadFile(filepath.Join(root, file))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	write(t, root, map[string]string{file: string(before) + "\n// changed\n"})
}

func TestSinceRunsWhatCanHaveChanged(t *testing.T) {
	tests := []struct {
		name, file string
		packages   string // without those that read the whole tree
		stages     string
	}{
		{"nothing", "", "", ""},
		{"what git ignores", "backend/core/mail/a.log", "", ""},
		{"a file of the README's kind", "README.md", "", "go"},
		{
			"a package, and who uses it, also in tests alone or by a program", "backend/core/mail/mail.go",
			"broker cmd/bridge hook mail soak", "vet go browser",
		},
		{"a package's test data", "backend/core/mail/testdata/new.json", "broker cmd/bridge hook mail soak", "go browser"},
		{"what the CLIs meet", "backend/doors/hook/hook.go", "hook", "vet go real-clis"},
		{"a program", "cmd/bridge/main.go", "cmd/bridge soak", "vet go package browser"},
		{"a package that nobody uses", "backend/core/chat/chat.go", "chat", "vet go"},
		{"the page", "frontend/src/a.ts", "", "go page-check page-lint page-unit desktop browser"},
		{"the app", "app/app.go", "app", "vet go desktop"},
		{"what is depended on", "go.sum", "app archtest broker chat cmd/bridge hook mail soak", "vet go desktop browser"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := sinceProject(t)
			if tt.file != "" {
				change(t, p.root, tt.file)
			}
			c, err := p.changesSince(t.Context(), "HEAD")
			if err != nil {
				t.Fatal(err)
			}
			var packages []string
			for name, is := range c.affected {
				if name = strings.TrimPrefix(name, "bridge/"); strings.HasPrefix(name, "backend/") {
					name = path.Base(name)
				}
				if is && !strings.HasSuffix(name, "_test") && name != "build" && (name != "archtest" || tt.file == "go.sum") && !isProgram(name) {
					packages = append(packages, name)
				}
			}
			slices.Sort(packages)
			if got := strings.Join(packages, " "); got != tt.packages {
				t.Errorf("packages: %q, want %q", got, tt.packages)
			}
			if got := strings.Join(c.stages(stages()), " "); got != tt.stages {
				t.Errorf("stages: %q, want %q", got, tt.stages)
			}
		})
	}
}

// isProgram tells the packages that are there in the real tree alone.
func isProgram(name string) bool {
	return slices.Contains([]string{"conformance", "faults", "cmd/bridge-hook", "cmd/bridge-hub", "cmd/bridge-mcp", "cmd/bridge-worker"}, name)
}

// What is committed since counts, too, and a file that moved counts where it was.
func TestSinceComparesWithTheCommit(t *testing.T) {
	p := sinceProject(t)
	git(t, p.root, "mv", "backend/core/chat/chat.go", "app/chat.go")
	git(t, p.root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "b")
	for commit, want := range map[string][]string{"HEAD": nil, "HEAD~1": {"app/chat.go", "backend/core/chat/chat.go"}} {
		c, err := p.changesSince(t.Context(), commit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.files); diff != "" && len(want)+len(c.files) > 0 {
			t.Errorf("%s: %s", commit, diff)
		}
	}
}

func TestSinceSaysWhatItLeavesOut(t *testing.T) {
	p := sinceProject(t)
	var output bytes.Buffer
	p.output = &output
	write(t, p.root, map[string]string{"backend/core/chat/chat.go": "package chat // changed\n"})
	names, err := p.narrow(t.Context(), "HEAD", nil)
	if err != nil || strings.Join(names, " ") != "vet go" {
		t.Fatalf("narrow = %q, %v", names, err)
	}
	if want := "left out, for nothing that they use has changed: page-check, page-lint, page-unit, package, desktop, browser, real-clis\n"; !strings.Contains(output.String(), want) {
		t.Errorf("it says\n%s", &output)
	}
	kept := p.withoutUnchanged([]string{"bridge/backend/core/mail", "bridge/backend/core/chat", "bridge/backend/broker"})
	if strings.Join(kept, " ") != "bridge/backend/core/chat" {
		t.Errorf("kept %q", kept)
	}
	if diff := cmp.Diff([]skip{{"2 packages", "nothing that they use has changed"}}, p.notes.skips, cmp.AllowUnexported(skip{})); diff != "" {
		t.Error(diff)
	}
}

func TestTestRefusesWrongArguments(t *testing.T) {
	here := sinceProject(t)
	nowhere := project{root: t.TempDir(), output: io.Discard}
	for _, tt := range []struct {
		p    project
		args []string
		want string
	}{
		{here, []string{"nonsense"}, `no stage "nonsense"`},
		{here, []string{"-since", "HEAD", "nonsense"}, `no stage "nonsense"`},
		{here, []string{"-since", "no-such"}, `no commit "no-such"`},
		{here, []string{"-since", ""}, `no commit ""`},
		{here, []string{"-since", "--all"}, `no commit "--all"`},
		{nowhere, []string{"-since", "HEAD"}, "no git repository"},
		{here, []string{"-flakes", "0", "vet"}, "-flakes 0"},
		{here, []string{"-flakes", "many"}, "many"},
		{here, []string{"-wrong"}, "-wrong"},
	} {
		err := runTests(context.Background(), tt.p, tt.args)
		if !errors.As(err, new(badArgument)) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("test %q = %v, want one sentence with %q", tt.args, err, tt.want)
		}
	}
}

// What fails is counted, with its stage, and is not tried again.
func TestFlakesAreCounted(t *testing.T) {
	runs := 0
	stages := []stage{
		{name: "good", run: func(context.Context, project) error { return nil }},
		{name: "go", run: func(ctx context.Context, p project) error {
			runs++
			if runs == 2 {
				return nil
			}
			p.fail(failure{test: "pkg TestA", output: "slow"})
			return p.retryFailed(ctx, errors.New("failed"), 0, 2, func(project, failure) error {
				t.Error("it is tried again")
				return nil
			})
		}},
	}
	var output bytes.Buffer
	err := findFlakes(t.Context(), project{root: t.TempDir(), output: &output}, stages, 3)
	if err == nil || runs != 3 {
		t.Errorf("findFlakes = %v after %d runs", err, runs)
	}
	if want := "\n2 of 3  go           pkg TestA\n           slow\n"; !strings.Contains(output.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, &output)
	}
}
