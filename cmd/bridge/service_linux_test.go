package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// The tests of this file run a real systemd in namespaces of its own: once as
// the manager of an account, once as the first process of a machine. They need
// root and systemd's program; where these are missing they skip themselves and
// say so.

// insideSystemd says which of the two this process finds around itself.
const insideSystemd = "BRIDGE_TEST_SYSTEMD"

const systemdProgram = "/lib/systemd/systemd"

// testAccount is the user id of the account that firstProcess makes.
const testAccount = 4242

// cannotIsolate is the exit code of a machine that refuses the namespaces.
const cannotIsolate = 77

// machine makes the namespaces look like a machine that systemd runs. What
// mounts change is seen inside only.
const machine = `
ip link set lo up || exit 77
umask 022 # as a machine's own files are made: another account reads them, too
{ mount --make-rprivate / && mount -t proc none /proc && { umount -R /sys/fs/cgroup 2>/dev/null || true; } &&
  mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/user/0 /run/etc /run/units && chmod 700 /run/user/0 &&
  mount -t cgroup2 none /sys/fs/cgroup && mkdir -p /sys/fs/cgroup/t && echo $$ > /sys/fs/cgroup/t/cgroup.procs; } || exit 77
`

// accountOfItsOwn makes a test account.
const accountOfItsOwn = `
cp /etc/passwd /run/passwd && echo "bridgetest:x:4242:4242::$BRIDGE_TEST_DIR/home:/bin/sh" >> /run/passwd && mount --bind /run/passwd /etc/passwd
`

// firstProcess makes systemd the first process, with no units but the two
// targets that a service needs.
const firstProcess = `
mkdir -p /etc/systemd/system && mount --bind /run/etc /etc/systemd/system
for target in sysinit basic multi-user shutdown; do printf '[Unit]\nDescription=%s\n' $target > /run/units/$target.target; done
export SYSTEMD_UNIT_PATH=/etc/systemd/system:/run/units container=test
( "$@" > $BRIDGE_TEST_DIR/output 2>&1; echo $? > $BRIDGE_TEST_DIR/code.new; mv $BRIDGE_TEST_DIR/code.new $BRIDGE_TEST_DIR/code ) &
exec /lib/systemd/systemd --system --unit=multi-user.target --show-status=no --log-target=null
`

// needSystemd skips the test where it cannot be made.
func needSystemd(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: the service under a real systemd needs root for its namespaces")
	}
	if _, err := os.Stat(systemdProgram); err != nil {
		t.Skip("NOT TESTED: the service under a real systemd, because " + systemdProgram + " is not installed")
	}
}

// isolated is this test again, within script.
func isolated(t *testing.T, kind, script, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup", "--net",
		"bash", "-c", script, "bash", self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"),
		insideSystemd + "=" + kind, "BRIDGE_TEST_DIR=" + dir, "BRIDGE_PORT=0",
	}
	return cmd
}

// installation is a folder that every account may read, with `bridge` in it and
// owner's home.
func installation(t *testing.T, owner int) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{filepath.Dir(dir), dir} { // whatever the umask is
		if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // another account runs what is in it
			t.Fatal(err)
		}
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	program, err := os.OpenFile(filepath.Join(dir, "bridge"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(program, self); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(program.Chmod(0o755), program.Close(), os.Mkdir(filepath.Join(dir, "home"), 0o700), os.Chown(filepath.Join(dir, "home"), owner, -1)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDSK_03_TheUserUnitStartsAtLoginAndAfterACrash(t *testing.T) {
	if os.Getenv(insideSystemd) == "user" {
		t.Setenv("XDG_RUNTIME_DIR", "/run/user/0")
		userService(t, served{t, os.Getenv("BRIDGE_TEST_DIR")})
		return
	}
	needSystemd(t)
	dir := installation(t, os.Geteuid())
	output, err := isolated(t, "user", machine+`exec "$@"`, dir).CombinedOutput()
	if exitCode(err) == cannotIsolate {
		t.Skipf("NOT TESTED: this machine refuses the namespaces of the service's test:\n%s", output)
	}
	if err != nil {
		t.Fatalf("inside: %v\n%s", err, output)
	}
}

func TestDSK_03_TheSystemUnitRunsForItsAccountWithoutALogin(t *testing.T) {
	if os.Getenv(insideSystemd) == "system" {
		systemService(t, served{t, os.Getenv("BRIDGE_TEST_DIR")})
		return
	}
	needSystemd(t)
	underFirstProcess(t, "system", accountOfItsOwn, installation(t, testAccount))
}

// underFirstProcess runs this test again, beside a systemd that is the first process.
func underFirstProcess(t *testing.T, kind, accounts, dir string) {
	t.Helper()
	cmd := isolated(t, kind, machine+accounts+firstProcess, dir)
	var refusal strings.Builder
	cmd.Stdout, cmd.Stderr = &refusal, &refusal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()        // and with it everything inside
	deadline := time.Now().Add(3 * testkit.Patience) // the test inside has patience of its own
	for {
		if code, err := os.ReadFile(filepath.Join(dir, "code")); err == nil {
			if output, _ := os.ReadFile(filepath.Join(dir, "output")); strings.TrimSpace(string(code)) != "0" {
				t.Fatalf("inside: exit code %s\n%s", code, output)
			}
			return
		}
		select {
		case err := <-ended:
			t.Skipf("NOT TESTED: systemd cannot be the first process of a namespace here: %v\n%s", err, refusal.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			output, _ := os.ReadFile(filepath.Join(dir, "output"))
			t.Fatalf("nothing came of it\n%s", output)
		}
	}
}

// served runs commands of the bridge in dir.
type served struct {
	*testing.T
	dir string
}

// run runs bridge and returns both of its outputs; another exit code than want
// fails the test.
func (s served) run(want int, args ...string) string {
	s.Helper()
	output, err := exec.CommandContext(s.Context(), filepath.Join(s.dir, "bridge"), args...).CombinedOutput()
	if exitCode(err) != want {
		s.Fatalf("bridge %s: exit code %d, want %d\n%s", strings.Join(args, " "), exitCode(err), want, output)
	}
	return string(output)
}

// says is run whose output must hold text.
func (s served) says(text string, want int, args ...string) {
	s.Helper()
	if output := s.run(want, args...); !strings.Contains(output, text) {
		s.Fatalf("bridge %s does not say %q:\n%s", strings.Join(args, " "), text, output)
	}
}

// logged waits until the service has said in its log that it serves.
func (s served) logged(args ...string) {
	s.Helper()
	for deadline := time.Now().Add(testkit.Patience); !strings.Contains(s.run(0, args...), "host=service"); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("the service does not say that it serves:\n%s", s.run(0, args...))
		}
	}
}

// serviceStatus is what `bridge service status --json` prints.
type serviceStatus struct {
	Installed, Automatic bool
	State, File          string
	PID                  int
	Broker               *api.Status
}

func (s served) status() serviceStatus {
	s.Helper()
	output, _ := exec.CommandContext(s.Context(), filepath.Join(s.dir, "bridge"), "service", "status", "--json").Output() // the code repeats the state
	var status serviceStatus
	if err := json.Unmarshal(output, &status); err != nil {
		s.Fatalf("service status --json: %v\n%s", err, output)
	}
	return status
}

// until waits for a state of the service.
func (s served) until(what string, is func(serviceStatus) bool) serviceStatus {
	s.Helper()
	deadline := time.Now().Add(testkit.Patience)
	for {
		status := s.status()
		if is(status) {
			return status
		}
		if time.Now().After(deadline) {
			s.Fatalf("the service is not %s: %+v", what, status)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func isServing(status serviceStatus) bool {
	return status.State == "running" && status.Broker != nil && status.Broker.Host == "service" && status.Broker.PID == status.PID
}

// login starts the account's own systemd and returns how to end it.
func (s served) login() (logout func()) {
	s.Helper()
	manager := exec.Command(systemdProgram, "--user")
	if err := manager.Start(); err != nil {
		s.Fatal(err)
	}
	deadline := time.Now().Add(testkit.Patience)
	for {
		state, _ := exec.Command("systemctl", "--user", "is-system-running").Output() // degraded is a state, too
		if word := strings.TrimSpace(string(state)); word == "running" || word == "degraded" {
			break
		}
		if time.Now().After(deadline) {
			s.Fatalf("systemd --user is %q", state)
		}
		<-time.After(20 * time.Millisecond)
	}
	return func() {
		s.Helper()
		if output, err := exec.Command("systemctl", "--user", "exit").CombinedOutput(); err != nil {
			s.Fatalf("log out: %v\n%s", err, output)
		}
		_ = manager.Wait() // its exit code is that of `exit`
	}
}

func userService(t *testing.T, s served) {
	s.says("no systemd runs for your account", 1, "service", "install")
	logout := s.login()
	s.says("is not installed", 4, "service", "status")
	for _, verb := range []string{"start", "stop", "uninstall"} {
		s.says("is not installed", 1, "service", verb)
	}
	s.says("Wrote "+s.status().File, 0, "service", "install")
	s.says("installed already", 1, "service", "install")
	s.says("this service", 0, "service", "start")
	service := s.until("serving", isServing)
	s.says("this service", 0, "service", "restart")
	first := s.until("serving after a restart", func(status serviceStatus) bool { return isServing(status) && status.PID != service.PID })

	// A crash: systemd starts it again, and what was sent before is there.
	s.session("peers", "{}")
	s.run(0, "send", "alpha", "kept over the crash")
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until("serving again", func(status serviceStatus) bool { return isServing(status) && status.PID != first.PID })
	if inbox := s.session("inbox", "{}"); !strings.Contains(inbox, "kept over the crash") {
		t.Errorf("after the crash: %s", inbox)
	}

	s.waitsForAnother()
	t.Run("STO-17 a lost store", func(t *testing.T) { served{t, s.dir}.refusesALostStore() })

	// The next login starts it, without any command.
	logout()
	logout = s.login()
	s.until("serving after the login", isServing)
	s.logged("service", "logs")
	if log := s.run(0, "service", "logs", "-n", "1000"); strings.Contains(log, "launch?key=") {
		t.Errorf("the log holds the launch link's key:\n%s", log)
	}

	file := s.status().File
	s.says("Removed "+file, 0, "service", "uninstall")
	for _, gone := range []string{file, filepath.Join(filepath.Dir(file), "default.target.wants", "bridge.service")} {
		if _, err := os.Lstat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", gone, err)
		}
	}
	s.run(4, "status")
	if _, err := os.Stat(filepath.Join(s.dir, "home", ".bridge", "bridge.db")); err != nil {
		t.Errorf("the owner's data: %v", err)
	}
	logout()
}

// refusesALostStore: a service whose store is lost ends and is not started again
// and again; its owner hears why, and it serves once the store is back (STO-17).
func (s served) refusesALostStore() {
	s.Helper()
	s.run(0, "doctor", "--backup")
	if err := os.Remove(filepath.Join(s.dir, "home", ".bridge", "bridge.db")); err != nil {
		s.Fatal(err)
	}
	if err := syscall.Kill(s.status().PID, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	s.until("failed without its store", func(status serviceStatus) bool { return status.State == "failed" && status.PID == 0 })
	s.says("bridge.db is lost: it is gone", 3, "service", "start")
	log := s.run(0, "service", "logs")
	if count := strings.Count(log, "the service cannot serve"); count != 1 || !strings.Contains(log, "bridge.db is lost: it is gone") {
		s.Errorf("it was started %d times:\n%s", count, log)
	}
	s.says("Restored", 0, "doctor", "--restore", "latest", "--yes")
	s.says("this service", 0, "service", "start")
	s.until("serving with its store", isServing)
	if inbox := s.session("search_history", `{"query":"crash"}`); strings.Contains(inbox, "refused") {
		s.Errorf("after the restore: %s", inbox)
	}
}

// waitsForAnother: a broker that somebody started on purpose goes first, and the
// service follows it.
func (s served) waitsForAnother() {
	s.Helper()
	s.says("is stopped", 0, "service", "stop")
	other := exec.Command(filepath.Join(s.dir, "bridge"), "serve", "--port", "0")
	if err := other.Start(); err != nil {
		s.Fatal(err)
	}
	s.until("stopped beside another broker", func(status serviceStatus) bool { return status.Broker != nil && status.Broker.Host == "serve" })
	s.says("the service waits", 0, "service", "start")
	s.until("running beside another broker", func(status serviceStatus) bool {
		return status.State == "running" && status.Broker != nil && status.Broker.PID == other.Process.Pid
	})
	if err := other.Process.Signal(syscall.SIGTERM); err != nil {
		s.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		s.Errorf("the other broker: %v", err)
	}
	s.until("serving after the other", isServing)
}

// session makes one call of a session called alpha.
func (s served) session(tool, arguments string) string {
	s.Helper()
	args := []string{"--agent", "claude", "--name", "alpha", "--session", "h1", "--cwd", s.dir, "--", tool, arguments}
	output, err := exec.CommandContext(s.Context(), "session", args...).CombinedOutput()
	if err != nil {
		s.Fatalf("session %s: %v\n%s", tool, err, output)
	}
	return string(output)
}

func awaitSystemd(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(testkit.Patience)
	for exec.Command("systemctl", "is-active", "--quiet", "multi-user.target").Run() != nil {
		if time.Now().After(deadline) {
			t.Fatal("systemd does not come up")
		}
		<-time.After(50 * time.Millisecond)
	}
}

func systemService(t *testing.T, s served) {
	awaitSystemd(t)
	whose := func(verb string) []string { return []string{"service", verb, "--system", "--user", "bridgetest"} }
	s.says("there is no account", 1, "service", "install", "--system", "--user", "nobody-like-this")
	s.refusesOthers(whose("install"))
	s.says("Wrote /etc/systemd/system/bridge-bridgetest.service", 0, whose("install")...)
	s.says("running", 0, whose("start")...)
	s.says("starts with the machine", 0, whose("status")...)
	s.logged(whose("logs")...)
	pid, err := exec.Command("systemctl", "show", "--property=MainPID", "--value", "bridge-bridgetest.service").Output()
	if err != nil {
		t.Fatal(err)
	}
	var process syscall.Stat_t
	if err := syscall.Stat("/proc/"+strings.TrimSpace(string(pid)), &process); err != nil || process.Uid != testAccount {
		t.Errorf("process %s belongs to %d (%v), want the account %d", pid, process.Uid, err, testAccount)
	}
	s.says("Removed /etc/systemd/system/bridge-bridgetest.service", 0, whose("uninstall")...)
	s.says("is not installed", 4, whose("status")...)
	if _, err := os.Stat(filepath.Join(s.dir, "home", ".bridge", "bridge.db")); err != nil {
		t.Errorf("the owner's data: %v", err)
	}
}

// refusesOthers: only root changes the machine's services.
func (s served) refusesOthers(args []string) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), filepath.Join(s.dir, "bridge"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testAccount, Gid: testAccount}}
	output, err := cmd.CombinedOutput()
	if exitCode(err) != 3 || !strings.Contains(string(output), "root's to change") {
		s.Errorf("as an ordinary account: %v\n%s", err, output)
	}
}
