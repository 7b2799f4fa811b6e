package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/platform/disk"
	"bridge/backend/testing/testkit"
)

// packageTestVariable has the stage `package` run these tests, which build what
// `go run ./build package` builds for this machine.
const packageTestVariable = "BRIDGE_TEST_PACKAGES"

func madePackages(t *testing.T) project {
	t.Helper()
	if os.Getenv(packageTestVariable) == "" {
		t.Skip("NOT TESTED here: the stage `package` builds and installs the packages (go run ./build test package)")
	}
	p, err := openProject(testOutput{t})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDSK_05_TheSameCheckoutElsewhereMakesTheSamePackages(t *testing.T) {
	testkit.Long(t, "it builds every package twice")
	p := madePackages(t)
	r, err := p.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	here, there := t.TempDir(), t.TempDir()
	if err := p.packBridge(t.Context(), r, runtime.GOARCH, here); err != nil {
		t.Fatal(err)
	}
	other := copyCheckout(t, p)
	if err := errors.Join(runPage(t.Context(), other, nil), other.packBridge(t.Context(), r, runtime.GOARCH, there)); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(here, "*"))
	if err != nil || len(made) != 2 {
		t.Fatalf("made %v, %v; want a deb and an rpm", made, err)
	}
	for _, path := range made {
		want, _, err := disk.Checksum(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := disk.Checksum(filepath.Join(there, filepath.Base(path))); got != want {
			t.Errorf("%s: %s here, %s (%v) from the copy", filepath.Base(path), want, got, err)
		}
	}
}

// copyCheckout copies what is in the checkout, its history and the page's
// packages included.
func copyCheckout(t *testing.T, p project) project {
	t.Helper()
	root := filepath.Join(t.TempDir(), "elsewhere")
	const script = `mkdir "$1" && git ls-files -z --cached --others --exclude-standard --deduplicate | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$1" && cp -a .git "$1/" && cp -a frontend/node_modules "$1/frontend/"`
	copying := exec.CommandContext(t.Context(), "bash", "-ec", script, "bash", root)
	copying.Dir = p.root
	if output, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("copy the checkout: %v\n%s", err, output)
	}
	return project{root: root, output: p.output}
}

func TestDSK_05_InstallingUpgradingAndRemovingLeaveTheOwnersData(t *testing.T) {
	p := madePackages(t)
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("NOT TESTED: this system has no dpkg")
	}
	r, err := p.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	old, newer := t.TempDir(), t.TempDir()
	if err := p.packBridge(t.Context(), r, runtime.GOARCH, old); err != nil {
		t.Fatal(err)
	}
	r.version += "9"
	if err := p.pack(t.Context(), r, "bridge", runtime.GOARCH, p.at(".cache", "package", "linux-"+runtime.GOARCH), newer); err != nil {
		t.Fatal(err)
	}

	m.dpkg("--install", deb(t, old))
	for _, name := range []string{"man/man1/bridge-send.1", "man/man1/bridgectl.1", "bash-completion/completions/bridgectl", "doc/bridge/docs/guide/start.md"} {
		if _, err := os.Stat(filepath.Join(m.root, "usr/share", name)); err != nil {
			t.Errorf("DOC-06 %v", err)
		}
	}
	first := m.serve()
	m.session("peers", nil)
	m.hook()
	m.workers()
	m.bridge("send", "alpha", "kept over the upgrade")
	m.dpkg("--install", deb(t, newer))
	m.bridge("status") // the old one goes on
	first.end(t)
	second := m.serve()
	m.hook()
	m.workers()
	if inbox := m.session("inbox", nil); !strings.Contains(inbox, "kept over the upgrade") {
		t.Errorf("after the upgrade: %s", inbox)
	}

	m.dpkg("--remove", "bridge")
	second.ended(t)
	for _, name := range []string{"usr/bin/bridge", "usr/bin/bridgectl", "usr/lib/bridge"} {
		if _, err := os.Lstat(filepath.Join(m.root, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", name, err)
		}
	}
	m.dpkg("--purge", "bridge")
	if _, err := os.Stat(filepath.Join(m.home, ".bridge", "bridge.db")); err != nil {
		t.Errorf("the owner's data: %v", err)
	}
}

func TestHUB_01_TheHubHasAPackageOfItsOwn(t *testing.T) {
	p := madePackages(t)
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("NOT TESTED: this system has no dpkg")
	}
	r, err := p.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	old, newer := t.TempDir(), t.TempDir()
	if err := p.packHub(t.Context(), r, runtime.GOARCH, old); err != nil {
		t.Fatal(err)
	}
	r.version += "9"
	if err := p.pack(t.Context(), r, "bridge-hub", runtime.GOARCH, p.at(".cache", "package", "linux-"+runtime.GOARCH), newer); err != nil {
		t.Fatal(err)
	}
	if made, err := filepath.Glob(filepath.Join(old, "bridge-hub*.rpm")); err != nil || len(made) != 1 {
		t.Errorf("made %v, %v; want an rpm, too", made, err)
	}

	m.dpkg("--install", deb(t, old))
	m.holds("etc/default/bridge-hub", `BRIDGE_HUB_FLAGS="--team team"`)
	if _, err := exec.LookPath("systemd-sysusers"); err == nil {
		m.holds("etc/passwd", ":/var/lib/bridge-hub:")
	}
	m.hardened("usr/lib/systemd/system/bridge-hub.service")
	first := m.serveHub()
	m.dpkg("--install", deb(t, newer))
	if said := m.hub("status"); !strings.Contains(said, "Hub of the team team") { // the old one goes on
		t.Errorf("after the upgrade: %s", said)
	}
	first.end(t)
	second := m.serveHub()
	m.dpkg("--remove", "bridge-hub")
	second.ended(t)
	if _, err := os.Lstat(filepath.Join(m.root, "usr/bin/bridge-hub")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the program is still there (%v)", err)
	}
	m.dpkg("--purge", "bridge-hub")
	if _, err := os.Stat(filepath.Join(m.home, ".bridge-hub", "admin.nk")); err != nil {
		t.Errorf("the hub's data: %v", err)
	}
}

// holds looks for a text in a file of the machine.
func (m scratch) holds(name, want string) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil || !strings.Contains(string(text), want) {
		m.t.Errorf("/%s has no %s: %q, %v", name, want, text, err)
	}
}

// hardened has systemd itself judge a unit: it knows every line, and less than two of ten
// points are what the service may do beyond what a service has to.
func (m scratch) hardened(unit string) {
	m.t.Helper()
	for _, line := range []string{"User=bridge-hub", "StateDirectory=bridge-hub", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK"} {
		m.holds(unit, "\n"+line+"\n")
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		m.t.Log("NOT TESTED: this system has no systemd-analyze to judge the unit")
		return
	}
	verify := exec.CommandContext(m.t.Context(), "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "--root="+m.root, filepath.Base(unit))
	if said, err := verify.CombinedOutput(); err != nil || len(said) > 0 {
		m.t.Errorf("systemd-analyze verify: %s, %v", said, err)
	}
	judge := exec.CommandContext(m.t.Context(), "systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", filepath.Join(m.root, unit))
	if said, err := judge.CombinedOutput(); err != nil {
		m.t.Errorf("systemd-analyze security: %v\n%s", err, said)
	}
}

func (m scratch) hubCommand(words ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(m.root, "usr/bin/bridge-hub"), words...)
	cmd.Env = m.env()
	return cmd
}

func (m scratch) hub(words ...string) string {
	m.t.Helper()
	said, err := m.hubCommand(words...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("bridge-hub %s: %v\n%s", strings.Join(words, " "), err, said)
	}
	return string(said)
}

// serveHub runs the hub as its unit does, at ports that are free.
func (m scratch) serveHub() broker {
	m.t.Helper()
	return m.ready(m.hubCommand("serve", "--team", "team", "--listen", "127.0.0.1", "--port", "0", "--nats-port", "0"))
}

// scratch is a folder that dpkg takes for a machine, and an owner's home.
type scratch struct {
	t          *testing.T
	root, home string
}

func newMachine(t *testing.T) scratch {
	t.Helper()
	m := scratch{t: t, root: t.TempDir(), home: t.TempDir()}
	for _, name := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(m.root, "var/lib/dpkg", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(m.root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return m
}

func deb(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("packages in %s: %v, %v", dir, found, err)
	}
	return found[0]
}

// dpkg runs the package's scripts without changing the root folder.
func (m scratch) dpkg(args ...string) {
	m.t.Helper()
	flags := []string{"--root=" + m.root, "--force-not-root", "--force-script-chrootless", "--log=" + filepath.Join(m.home, "dpkg.log")}
	cmd := exec.CommandContext(m.t.Context(), "dpkg", append(flags, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if output, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("dpkg %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func (m scratch) env() []string {
	return []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "BRIDGE_PORT=0"}
}

func (m scratch) program() string { return filepath.Join(m.root, "usr/bin/bridgectl") }

func (m scratch) bridge(args ...string) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), m.program(), args...)
	cmd.Env = m.env()
	if output, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("bridge %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// hook makes a hook call of the program that the agents are told to start, which
// lies beside bridge and is not on the PATH.
func (m scratch) hook() {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.root, "usr/lib/bridge/bridge-hook"), "claude", "PostToolUse")
	cmd.Env = m.env()
	cmd.Stdin = strings.NewReader(`{"session_id":"nobody","cwd":"/"}`)
	if output, err := cmd.CombinedOutput(); err != nil || string(output) != "{}\n" {
		m.t.Fatalf("bridge-hook: %q, %v", output, err)
	}
	if _, err := os.Lstat(filepath.Join(m.root, "usr/bin/bridge-hook")); !errors.Is(err, os.ErrNotExist) {
		m.t.Errorf("bridge-hook is on the PATH (%v)", err)
	}
}

// workers looks for the programs that run beside agents, which nobody types.
func (m scratch) workers() {
	m.t.Helper()
	for _, name := range []string{"bridge-mcp", "bridge-worker"} {
		cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.root, "usr/lib/bridge", name))
		cmd.Env = m.env()
		if output, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(output), name+" is started by Bridge itself") {
			m.t.Errorf("%s: %q, %v", name, output, err)
		}
		if _, err := os.Lstat(filepath.Join(m.root, "usr/bin", name)); !errors.Is(err, os.ErrNotExist) {
			m.t.Errorf("%s is on the PATH (%v)", name, err)
		}
	}
}

// broker is a `bridge serve` that has said that it is ready.
type broker struct{ cmd *exec.Cmd }

func (m scratch) serve() broker {
	m.t.Helper()
	cmd := exec.Command(m.program(), "serve", "--port", "0")
	cmd.Env = m.env()
	return m.ready(cmd)
}

// ready starts what serves, and waits until it says so.
func (m scratch) ready(cmd *exec.Cmd) broker {
	m.t.Helper()
	var buffer bytes.Buffer
	cmd.Stderr = &buffer
	printed, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended when all went well
	if line, err := bufio.NewReader(printed).ReadString('\n'); err != nil {
		m.t.Fatalf("serve: %q, %v\n%s", line, err, buffer.String())
	}
	return broker{cmd}
}

func (b broker) end(t *testing.T) {
	t.Helper()
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	b.ended(t)
}

// ended waits for a clean end.
func (b broker) ended(t *testing.T) {
	t.Helper()
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("the broker ended badly: %v", err)
	}
}

// session makes one call of a session called alpha.
func (m scratch) session(tool string, arguments map[string]any) string {
	m.t.Helper()
	c, err := client.NewStdioMCPClient(m.program(), m.env(), "mcp", "--agent", "claude", "--name", "alpha", "--session", "h1", "--cwd", m.home)
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	if _, err := c.Initialize(m.t.Context(), hello); err != nil {
		m.t.Fatal(err)
	}
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = tool, arguments
	result, err := c.CallTool(m.t.Context(), request)
	if err != nil || result.IsError || len(result.Content) == 0 {
		m.t.Fatalf("%s: %+v, %v", tool, result, err)
	}
	text, _ := result.Content[0].(mcp.TextContent)
	return text.Text
}
