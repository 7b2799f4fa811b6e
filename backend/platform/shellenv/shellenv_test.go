//go:build !windows

package shellenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bridge/backend/testing/testkit"
)

// TestMain is also the program that prints its environment.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "print-env" {
		if err := Print(os.Stdout, os.Args[2], os.Environ()); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// question is about a shell that is a script of the test's own.
func question(t *testing.T, script string) Question {
	t.Helper()
	shell := filepath.Join(t.TempDir(), "a shell's own")
	if err := testkit.WriteProgram(shell, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return about(t, shell)
}

func about(t *testing.T, shell string) Question {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	program := filepath.Join(home, "the owner's program")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	return Question{Shell: shell, Program: []string{program, "print-env"}, Environ: []string{"HOME=" + home, "PATH=/usr/bin:/bin", "OLD=from the broker", testkit.QuickExit}, Home: home}
}

// play runs what the shell was given behind -l -i -c.
const play = "[ \"$1 $2 $3\" = '-l -i -c' ] || exit 9\n"

func TestJOB_28_AShellThatPrintsTellsItsEnvironment(t *testing.T) {
	q := question(t, play+`echo 'welcome, KEY=not-this'
export KEY='a value
of two lines = and more' EMPTY= OLD=changed
sh -c "$4"
echo 'goodbye'`)
	env, err := Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"KEY=a value\nof two lines = and more", "EMPTY=", "OLD=changed", "HOME=" + q.Home} {
		if !slices.Contains(env, want) {
			t.Errorf("it has no %q in %q", want, env)
		}
	}
	for _, pair := range env {
		if name, _, _ := strings.Cut(pair, "="); slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_", Asking}, name) {
			t.Errorf("it has %q, which is of the shell itself", pair)
		}
	}
}

func TestJOB_28_AShellThatIsOfNoUseIsNamed(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"fails":                  {"exit 3", "ended without telling: exit status 3"},
		"becomes something else": {"exec true", "ended without telling"},
		"tells half":             {play + "sh -c \"$4\" | head -c 40", "ended without telling"},
		"is killed":              {"kill -9 $$", "ended without telling: signal: killed"},
		"prints without end":     {"exec yes", "it printed more than 8 MiB"},
		"hangs":                  {"sleep 6000.7 & wait", "it did not answer within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := question(t, tt.script)
			env, err := Ask(t.Context(), q)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), q.Shell) {
				t.Errorf("Ask = %q, %v, want %q", env, err, tt.want)
			}
			if found, _ := exec.CommandContext(t.Context(), "pgrep", "-f", q.Shell).Output(); len(found) > 0 {
				t.Errorf("it runs on: %s", found)
			}
		})
	}
	for _, shell := range []string{"", "sh", "/no/such/shell"} {
		if env, err := Ask(t.Context(), about(t, shell)); err == nil {
			t.Errorf("%q told %q", shell, env)
		}
	}
}

// A shell that begins its PATH anew hides nothing that the broker was started with.
func TestJOB_28_WhatTheBrokerFindsIsFound(t *testing.T) {
	for own, want := range map[string]string{
		"export PATH=/first:/bin":      "PATH=/first:/bin:/usr/bin:/image/tools",
		"PATH=$PATH:/last; export KEY": "PATH=/usr/bin:/bin:/image/tools:/last",
		"unset PATH":                   "PATH=/usr/bin:/bin:/image/tools",
	} {
		q := question(t, play+own+"\n/bin/sh -c \"$4\"")
		q.Environ[1] = "PATH=/usr/bin:/bin:/image/tools"
		env, err := Ask(t.Context(), q)
		if err != nil || !slices.Contains(env, want) {
			t.Errorf("%s: %q, %v, want %s", own, env, err, want)
		}
	}
}

// What a shell's files leave in the background holds nobody up, and goes on: it is the
// owner's.
func TestJOB_28_WhatAShellStartsHoldsNobodyUp(t *testing.T) {
	q := question(t, play+"sleep 60 &\necho $! >"+"\"$HOME/pid\"\nsh -c \"$4\"")
	if _, err := Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(filepath.Join(q.Home, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "kill", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		t.Errorf("it was ended: %v %s", err, out)
	}
}

// The shells that people have read their own files, and tell what stands there.
func TestJOB_28_RealShells(t *testing.T) {
	for shell, files := range map[string][]string{
		"bash": {".bash_profile", ".bashrc"}, "zsh": {".zprofile", ".zshrc"}, "fish": {".config/fish/config.fish"}, "dash": {".profile"},
	} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("no %s is installed", shell)
			}
			q := about(t, path)
			for i, file := range files {
				file = filepath.Join(q.Home, file)
				line := fmt.Sprintf("echo noise; export KEY_%d='of '%s\n", i, filepath.Base(file))
				if shell == "bash" && i == 0 {
					line += ". ~/.bashrc\n"
				}
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env, err := Ask(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for i, file := range files {
				if want := fmt.Sprintf("KEY_%d=of %s", i, filepath.Base(file)); !slices.Contains(env, want) {
					t.Errorf("%s: it has no %q in %q", shell, want, env)
				}
			}
		})
	}
}
