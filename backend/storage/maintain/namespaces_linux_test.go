package maintain

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sqlitex"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

func init() {
	parts["writer"] = func(args []string) error {
		c, err := elsewhere(args[0])
		if err != nil {
			return err
		}
		held, err := c.Worker().Register()
		if err != nil {
			return err
		}
		return holdUntilStopped(held.Release)
	}
	parts["writer of a new store"] = func(args []string) error {
		c, err := elsewhere(args[0])
		if err != nil {
			return err
		}
		worker := c.Worker()
		worker.NoStore = func() bool { return true }
		held, err := worker.Register()
		if err == nil {
			err = held.RecordStore()
		}
		if err != nil {
			return err
		}
		return holdUntilStopped(held.Release)
	}
	parts["broker"] = func(args []string) error {
		c, err := elsewhere(args[0])
		if err != nil {
			return err
		}
		lock, err := sqlitex.AcquireLock(context.Background(), c.Home.BrokerLock())
		if err != nil {
			return err
		}
		return holdUntilStopped(lock.Release)
	}
	parts["maintenance"] = func(args []string) error {
		c, err := elsewhere(args[0])
		if err != nil {
			return err
		}
		return c.Worker().Exclusively(lease.Fix, false, func() error { return holdUntilStopped(func() error { return nil }) })
	}
	parts["attempt"] = func(args []string) error {
		c, err := elsewhere(args[0])
		if err != nil {
			return err
		}
		switch args[1] {
		case "fix":
			_, err = c.Archive().Fix(context.Background())
		case "restore":
			_, err = c.Restores().Restore(context.Background(), args[2])
		case "merge":
			_, err = c.Restores().Merge(context.Background(), args[2])
		case "register":
			var held *lease.Lease
			if held, err = c.Worker().Register(); err == nil {
				err = held.Release()
			}
		}
		fmt.Printf("%s: %v\n", bridge.CodeOf(err), err)
		return nil
	}
}

// elsewhere returns the maintenance of a home, in a container's view of the processes.
func elsewhere(dir string) (Maintenance, error) {
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return Maintenance{}, err
	}
	return maintenanceOf(dir)
}

// holdUntilStopped says that it has begun, waits for the end of its input and releases.
func holdUntilStopped(release func() error) error {
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return release()
}

// inContainer returns the command of a part in a namespace of process numbers of its own.
func inContainer(t *testing.T, part string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), partEnv+"="+part)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}

// hold starts a part that holds something until the returned function stops or kills it.
func hold(t *testing.T, part, dir string) (end func(how os.Signal)) {
	t.Helper()
	cmd := inContainer(t, part, dir)
	input, inErr := cmd.StdinPipe()
	output, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatal(inErr, outErr)
	}
	var builder strings.Builder
	cmd.Stderr = &builder
	if err := cmd.Start(); err != nil {
		t.Skipf("this system gives no namespaces: %v", err)
	}
	if line, _ := bufio.NewReader(output).ReadString('\n'); line != "held\n" {
		_ = input.Close()
		t.Fatalf("%s: %q, %v: %s", part, line, cmd.Wait(), builder.String())
	}
	ended := false
	end = func(how os.Signal) {
		if ended {
			return
		}
		ended = true
		if how != nil {
			_ = cmd.Process.Signal(how)
		} else {
			_ = input.Close()
		}
		if err := cmd.Wait(); how == nil && err != nil {
			t.Errorf("%s: %v: %s", part, err, builder.String())
		}
	}
	t.Cleanup(func() { end(os.Kill) })
	return end
}

// attempt lets a part in a container do its work, and returns the code and the sentence.
func attempt(t *testing.T, c Maintenance, work, set string) string {
	t.Helper()
	cmd := inContainer(t, "attempt", c.Home.Dir(), work, set)
	said, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Skipf("this system gives no namespaces: %v", err)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return string(said)
}

func TestRWM_05_AContainerSeesTheWriterOfItsHost(t *testing.T) {
	c := newHome(t)
	made, messages := mustBackup(t, c), mustBackupMessages(t, c)
	held, err := c.Worker().Register()
	if err != nil {
		t.Fatal(err)
	}
	if err := held.RecordStore(); err != nil {
		t.Fatal(err)
	}
	for work, set := range map[string]string{"fix": "", "restore": made.Path, "merge": messages.Path} {
		if said := attempt(t, c, work, set); !strings.HasPrefix(said, string(bridge.Denied)+": ") || !strings.Contains(said, "a test (process ") {
			t.Errorf("%s in a container: %s", work, said)
		}
	}
	if said := attempt(t, c, "register", ""); !strings.HasPrefix(said, ": <nil>") {
		t.Errorf("a writer in a container: %s", said)
	}
	writers, err := lease.Live(c.Home)
	if err != nil || len(writers) != 1 || writers[0].PID != os.Getpid() {
		t.Errorf("the leases are %+v, %v", writers, err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if said := attempt(t, c, "fix", ""); !strings.HasPrefix(said, ": <nil>") {
		t.Errorf("a fix after the writer's end: %s", said)
	}
}

func TestRWM_05_AHostSeesTheWriterOfAContainer(t *testing.T) {
	for _, part := range []string{"writer", "writer of a new store"} {
		t.Run(part, func(t *testing.T) {
			c := newHome(t)
			end := hold(t, part, c.Home.Dir())
			if _, err := c.Archive().Fix(context.Background()); bridge.CodeOf(err) != bridge.Denied {
				t.Errorf("a fix beside it: %v", err)
			}
			held, err := c.Worker().Register()
			if err != nil {
				t.Fatal(err)
			}
			if err := held.Release(); err != nil {
				t.Fatal(err)
			}
			if writers, err := lease.Live(c.Home); err != nil || len(writers) != 1 {
				t.Errorf("the leases are %+v, %v", writers, err)
			}
			end(os.Kill)
			if _, err := c.Archive().Fix(context.Background()); err != nil {
				t.Errorf("a fix after it was killed: %v", err)
			}
		})
	}
}

func TestRWM_05_MaintenanceKeepsAwayFromABrokerWithoutALease(t *testing.T) {
	c := newHome(t)
	made, messages := mustBackup(t, c), mustBackupMessages(t, c)
	end := hold(t, "broker", c.Home.Dir())
	before := managedBytes(t, c)
	for name, run := range map[string]func() error{
		"fix":     func() error { _, err := c.Archive().Fix(context.Background()); return err },
		"restore": func() error { _, err := c.Restores().Restore(context.Background(), made.Path); return err },
		"merge":   func() error { _, err := c.Restores().Merge(context.Background(), messages.Path); return err },
	} {
		if err := run(); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "a broker serves this home") {
			t.Errorf("%s: %v", name, err)
		}
	}
	sameFiles(t, before, managedBytes(t, c))
	if _, err := os.Lstat(c.Home.MaintenanceLock()); !inventory.IsGone(err) {
		t.Errorf("the maintenance lock was left: %v", err)
	}
	end(nil)
	if _, err := c.Archive().Fix(context.Background()); err != nil {
		t.Errorf("a fix after the broker's end: %v", err)
	}
}

func TestRWM_05_NoBrokerBeginsWhileMaintenanceIsAtWork(t *testing.T) {
	c := newHome(t)
	lock, err := sqlitex.AcquireLock(t.Context(), c.Home.BrokerLock())
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	end := hold(t, "maintenance", c.Home.Dir())
	if lock, err := sqlitex.AcquireLock(t.Context(), c.Home.BrokerLock()); err == nil {
		t.Errorf("the broker's lock is free: %v", lock.Release())
	}
	if _, err := c.Worker().Register(); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "maintenance is at work") {
		t.Errorf("a writer beside it: %v", err)
	}
	end(os.Kill)
	if _, err := c.Worker().Register(); bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "was interrupted") {
		t.Errorf("a writer after it was killed: %v", err)
	}
}

func TestRWM_05_AnUnlockableLeaseOfAnotherNamespaceCountsAsAlive(t *testing.T) {
	own, err := proc.Identity(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	boot, _, _ := strings.Cut(own, ":")
	for _, tt := range []struct {
		name string
		held lease.Holder
		want bool
	}{
		{"here, and gone", lease.Holder{PID: os.Getpid(), Identity: boot + ":1", Namespace: proc.Namespace()}, false},
		{"here, and alive", lease.Holder{PID: os.Getpid(), Identity: own, Namespace: proc.Namespace()}, true},
		{"in another namespace", lease.Holder{PID: 7, Identity: boot + ":1", Namespace: "pid:[1]"}, true},
		{"in another namespace, before the computer was started", lease.Holder{PID: 7, Identity: "another boot:1", Namespace: "pid:[1]"}, false},
	} {
		if got := tt.held.Lives(); got != tt.want {
			t.Errorf("%s: Lives = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A restore test works in a home of its own, beside the broker.
func TestRWM_05_ARestoreTestRunsBesideABroker(t *testing.T) {
	c := newHome(t)
	made, messages := mustBackup(t, c), mustBackupMessages(t, c)
	lock, err := sqlitex.AcquireLock(t.Context(), c.Home.BrokerLock())
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{made.Path, messages.Path} {
		if _, err := c.Restores().Test(t.Context(), set); err != nil {
			t.Errorf("a test of %s beside a broker: %v", set, err)
		}
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}
