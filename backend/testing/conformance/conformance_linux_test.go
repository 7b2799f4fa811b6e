package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

var programs string // the folder of the programs that are tested

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if len(os.Args) > 2 && os.Args[1] == helperArgument {
		if err := runHelper(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	for _, name := range agentPrograms {
		if filepath.Base(os.Args[0]) == name {
			runAgent(name, os.Args[1:])
			return 0
		}
	}
	folder, err := os.MkdirTemp("", "conf-bin")
	if err == nil {
		defer os.RemoveAll(folder)
		var program string
		program, err = testkit.Product(folder)
		programs = filepath.Dir(program)
	}
	if err == nil {
		err = copySelf(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return testkit.Away(m)
}

// attacker is a copy of this program that every user can run.
var attacker string

func copySelf(folder string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	attacker = filepath.Join(folder, "attacker")
	return errors.Join(os.Chmod(folder, 0o755), testkit.WriteProgram(attacker, binary, 0o755))
}

// kernel returns the version of Landlock that this kernel has.
func kernel(t *testing.T) int {
	t.Helper()
	version, err := llsys.LandlockGetABIVersion()
	if err != nil {
		t.Skipf("NOT PROVEN HERE: this kernel has no Landlock: %v", err)
	}
	return version
}

// judge fails the test for each attack that has succeeded, and prints those that are open.
func (c *cell) judge(results []result) {
	c.Helper()
	for _, r := range results {
		switch {
		case r.attack.open != "" && r.succeeded:
			c.Logf("OPEN %s: %q succeeds as %s", r.attack.open, r.attack.name, c.setting)
		case r.attack.open != "":
			c.Logf("OPEN %s: %q is refused as %s", r.attack.open, r.attack.name, c.setting)
		case r.succeeded:
			c.Errorf("%s: %q succeeds as %s: %s; the attacker returns %q", r.attack.class, r.attack.name, c.setting, r.attack.proof.words, r.outcome.Gained)
		}
	}
	c.Logf("%d attacks as %s", len(results), c.setting)
}

// localCells tries all attacks of the settings on one PC.
func localCells(t *testing.T, folder string, landlock int, kinds []bridge.AgentKind) (results []result) {
	p := newPC(t, "desk", folder, nil)
	for _, kind := range kinds {
		for _, access := range every {
			t.Run(fmt.Sprintf("%s %s", kind, access), func(t *testing.T) {
				began := time.Now()
				c := newCell(t, setting{kind, access, local, landlock}, p, p, filepath.Join(p.dir, "work-"+string(kind)+"-"+string(access)))
				results = append(results, c.run()...)
				c.judge(c.results)
				t.Logf("after %s", time.Since(began).Round(time.Millisecond))
			})
		}
	}
	return results
}

// TestSEC_14_SEC_08_SEC_10_AJobOfThisPC tries every attack in jobs of this PC.
func TestSEC_14_SEC_08_SEC_10_AJobOfThisPC(t *testing.T) {
	tried := []bridge.AgentKind{job.ACP}
	if testkit.IsLong() {
		tried = kinds
	}
	localCells(t, programs, kernel(t), tried)
}

// TestSEC_14_AJobOfAPairedPC tries every attack in jobs of a paired PC.
func TestSEC_14_AJobOfAPairedPC(t *testing.T) {
	landlock := kernel(t)
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode} {
		if !testkit.IsLong() && kind != bridge.Claude {
			continue
		}
		desk, laptop, work := pair(t, programs) // a pair for each kind: the jobs of a minute are bounded
		for _, access := range every {
			if !testkit.IsLong() && access != job.AccessEdit {
				continue
			}
			t.Run(fmt.Sprintf("%s %s", kind, access), func(t *testing.T) {
				began := time.Now()
				c := newCell(t, setting{kind, access, paired, landlock}, desk, laptop, filepath.Join(work, string(kind)+"-"+string(access)))
				c.judge(c.run())
				t.Logf("after %s", time.Since(began).Round(time.Millisecond))
			})
		}
	}
}
