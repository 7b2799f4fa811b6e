package realcli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// A run of these tests has a /tmp of its own: what the machine's holds under the
// names that the CLIs use there does not concern it, and it leaves nothing there.
func TestARunHasATemporaryFolderOfItsOwn(t *testing.T) {
	if !scripted.Isolated() {
		t.Skipf("SKIPPED, this run is not isolated: %v", unusable)
	}
	const within = "BRIDGE_TEST_WITHIN"
	theirs, left := "/tmp/codex-daemon-0", "/tmp/left-behind"
	if os.Getenv(within) == "1" { // the run within the run
		if _, err := os.Stat(theirs); !os.IsNotExist(err) {
			t.Errorf("%s is seen (%v)", theirs, err)
		}
		must(t, os.WriteFile(left, nil, 0o600))
		must(t, os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600))
		return
	}
	if err := os.Mkdir(theirs, 0o700); err == nil {
		defer os.Remove(theirs)
	}
	before, err := os.ReadDir("/tmp")
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	again := exec.CommandContext(soon(t), self, "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "BRIDGE_ISOLATED=") }), within+"=1")
	if output, err := again.CombinedOutput(); err != nil || !strings.Contains(string(output), "PASS: "+t.Name()) {
		t.Fatalf("the run within: %v\n%s", err, output)
	}
	after, err := os.ReadDir("/tmp")
	must(t, err)
	if len(before) != len(after) {
		t.Errorf("/tmp holds %v, held %v", after, before)
	}
}

// Each test of a run is tried, by itself, and one that fails fails the whole.
func TestApartTriesEachTestAndGivesOneVerdict(t *testing.T) {
	if !scripted.Isolated() {
		t.Skipf("SKIPPED, this run is not isolated: %v", unusable)
	}
	self, err := os.Executable()
	must(t, err)
	for _, c := range []struct{ name, run, clis, verdict string }{
		{"both pass", "^(TestModelPlaysScripts|TestModelToleratesOtherRequests)$", os.Getenv("BRIDGE_TEST_CLIS"), "PASS"},
		{"one fails", "^(TestModelPlaysScripts|TestAProgramThatCannotStartIsNotWaitedFor)$", "/nowhere", "FAIL"},
		{"none is there", "^(TestNobody|TestNothing)$", os.Getenv("BRIDGE_TEST_CLIS"), "PASS"},
	} {
		again := exec.CommandContext(soon(t), self, "-test.run="+c.run, "-test.v")
		again.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool {
			return strings.HasPrefix(pair, "BRIDGE_ISOLATED=") || strings.HasPrefix(pair, "BRIDGE_TEST_APART=")
		}), "BRIDGE_REQUIRE_CLIS=1", "BRIDGE_TEST_CLIS="+c.clis)
		output, err := again.CombinedOutput()
		said := string(output)
		if verdicts := regexp.MustCompile(`(?m)^(PASS|FAIL)$`).FindAllString(said, -1); (err == nil) != (c.verdict == "PASS") || len(verdicts) != 1 || verdicts[0] != c.verdict {
			t.Errorf("%s: the run ended with %v and says %v, want %s once:\n%s", c.name, err, verdicts, c.verdict, said)
		}
		for _, test := range regexp.MustCompile(`Test\w+`).FindAllString(c.run, -1) {
			if c.name != "none is there" && strings.Count(said, "--- PASS: "+test+" ")+strings.Count(said, "--- FAIL: "+test+" ") != 1 {
				t.Errorf("%s: %s was not tried once:\n%s", c.name, test, said)
			}
		}
	}
}

// The tests that begin first are named as they are called now.
func TestTheLongestTestsAreThere(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	list := exec.CommandContext(soon(t), self, "-test.list=.")
	list.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "BRIDGE_ISOLATED=") }), "BRIDGE_TEST_APART=1")
	output, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, test := range longest {
		if !slices.Contains(strings.Fields(string(output)), test) {
			t.Errorf("there is no %s", test)
		}
	}
}

// What a test leaves running is named, ended, and fails it: neither is it hidden by the
// namespaces, nor by a parent that has gone.
func TestWhatATestLeavesRunningIsNamed(t *testing.T) {
	if !scripted.Isolated() {
		t.Skipf("SKIPPED, this run is not isolated: %v", unusable)
	}
	const within = "BRIDGE_TEST_LEAVES"
	if os.Getenv(within) == "1" { // the run within the run
		must(t, exec.CommandContext(t.Context(), "sh", "-c", "setsid sleep 6000.25 &").Run())
		return
	}
	self, err := os.Executable()
	must(t, err)
	again := exec.CommandContext(soon(t), self, "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "BRIDGE_ISOLATED=") }), within+"=1")
	output, err := again.CombinedOutput()
	if again.ProcessState.ExitCode() != 1 || !regexp.MustCompile(`(?m)^left behind: 1 process\n\t\d+: sleep 6000.25$`).Match(output) {
		t.Errorf("the run within: %v\n%s", err, output)
	}
	if found, _ := exec.CommandContext(t.Context(), "pgrep", "-f", "sleep 6000.25").Output(); len(found) > 0 {
		t.Errorf("it runs on: %s", found)
	}
}

// A program that says that it cannot start ends the wait for it at once, and what
// it said comes first.
func TestAProgramThatCannotStartIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, "p")
	must(t, testkit.WriteProgram(filepath.Join(w.home.Bin, "failing"), []byte("#!/bin/sh\necho 'loading'\nread line\necho 'Error: the folder is not mine'\nexit 1\n"), 0o700))
	for name, wait := range map[string]func(terminal *scripted.Terminal) error{
		"its screen": func(terminal *scripted.Terminal) error {
			must(t, terminal.Type(scripted.Return))
			return terminal.Until(soon(t), "ready", func(screen string) bool { return strings.Contains(screen, "ready") })
		},
		"a prompt": func(terminal *scripted.Terminal) error { return terminal.Prompt(soon(t), "hello") },
	} {
		t.Run(name, func(t *testing.T) {
			id := strings.ReplaceAll(name, " ", "-")
			terminal := (&world{t, w.scene}).open(id, "p", "loading", "failing")
			if err := wait(terminal); err == nil || !strings.HasPrefix(err.Error(), id+" has ended with exit code 1: Error: the folder is not mine") {
				t.Errorf("the wait ended with %v", err)
			}
		})
	}
}
