package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/platform/sandbox"
	"bridge/backend/testing/testkit"
)

// orphansMade is how many processes a job leaves to its runner in the test.
const orphansMade = 300

// reapOrphans is the test binary as a runner whose job leaves many processes behind, some
// of them heads of sessions, while it starts and waits for children of its own. It tells
// how many of them it could not wait for, and how many processes stay uncollected.
func reapOrphans() int {
	if err := sandbox.Adopt(); err != nil {
		return 1
	}
	go sandbox.ReapOrphans(context.Background())
	job := exec.Command("sh", "-c", "for i in $(seq "+strconv.Itoa(orphansMade)+"); do (sh -c 'exit 3' & setsid true &) ; done; exit 7") //nolint:noctx // it ends
	job.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := sandbox.StartLeader(job); err != nil {
		return 1
	}
	failed := 0
	for range 50 {
		if err := exec.Command("true").Run(); err != nil { //nolint:noctx // it ends
			failed++
		}
	}
	err := job.Wait()
	sandbox.Collected(job.Process.Pid)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		failed++
	}
	left := 0
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		if left = zombies(); left == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("failed %d, left %d\n", failed, left)
	return 0
}

// zombies counts the children of this process that have ended and were not collected.
func zombies() (count int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return -1
	}
	for _, entry := range entries {
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
			count++
		}
	}
	return count
}

func TestSEC_08_OrphansAreCollectedWhileTheJobRuns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, "test-reap").CombinedOutput()
	if err != nil || string(out) != "failed 0, left 0\n" {
		t.Errorf("it says %q, %v", out, err)
	}
}
