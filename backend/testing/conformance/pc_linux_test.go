package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/testing/testkit"
)

// waitFor waits until a condition holds.
func waitFor(holds func() bool) error {
	for end := time.Now().Add(testkit.Patience); ; {
		if holds() {
			return nil
		}
		if time.Now().After(end) {
			return errors.New("it does not come")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// pc is a home of Bridge's with its broker, an owner's home folder, and two sessions: one
// that gives jobs, and the victim.
type pc struct {
	*testing.T
	name, dir     string
	program       string // bridge
	user, home    string
	page, link    string
	cookie        string
	browser       *http.Client
	broker        *exec.Cmd
	boss, victim  *client.Client
	listener      *listener
	terminal      *os.File // the owner's, from the terminal's side
	terminalName  string
	terminalBytes *buffer
}

// ordinaryUser and ordinaryGroups are for tests that the superuser runs: Bridge and the
// attacker run as this user, for the kernel lets the superuser do more.
const ordinaryUser = 65534

var ordinaryGroups = []uint32{ordinaryUser, ordinaryUser - 1}

// asOrdinaryUser returns how a process is started that is not the superuser's.
func asOrdinaryUser() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser, Groups: ordinaryGroups}}
}

// give makes the ordinary user the owner of a folder and all below it.
func give(folder string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, ordinaryUser, ordinaryUser))
	})
}

// canaryStart is what the owner's shell start-up file holds.
const canaryStart = "# start-up\n"

// newPC makes a PC whose broker serves. The programs are those beside bridge in a folder.
// settings are members of config.json.
func newPC(t *testing.T, name, programs string, settings object) *pc {
	t.Helper()
	dir, err := os.MkdirTemp("", "conf")
	if err != nil {
		t.Fatal(err)
	}
	p := &pc{T: t, name: name, dir: dir, program: filepath.Join(programs, "bridge"), user: filepath.Join(dir, "user"), home: filepath.Join(dir, "h")}
	t.Cleanup(p.close)
	agents := filepath.Join(dir, "agents")
	config := object{
		"jobs": object{"enabled": true, "maxJobs": 50},
		"agents": object{
			"acp":    object{"attacker": object{"command": filepath.Join(agents, acpProgram)}},
			"claude": object{"bin": filepath.Join(agents, "claude")}, "codex": object{"bin": filepath.Join(agents, "codex")}, "opencode": object{"bin": filepath.Join(agents, "opencode")},
		},
	}
	for member, value := range settings {
		config[member] = value
	}
	text, err := json.Marshal(config)
	must(t, err)
	must(t, errors.Join(os.Mkdir(p.home, 0o700), linkAgents(agents), os.WriteFile(filepath.Join(p.home, "config.json"), text, 0o600)))
	p.writeOwnerFiles()
	must(t, give(dir))
	p.listener = listen(t, dir)
	master, slave, err := pty.Open()
	must(t, err)
	p.terminal, p.terminalName, p.terminalBytes = master, slave.Name(), &buffer{}
	must(t, give(p.terminalName))
	t.Cleanup(func() { _, _ = master.Close(), slave.Close() })
	go io.Copy(p.terminalBytes, master) //nolint:errcheck // until it is closed
	p.serve()
	p.signIn()
	p.boss, p.victim = p.session("boss", "session-of-the-boss"), p.session(victim, victimSession)
	return p
}

// writeOwnerFiles lays what the owner has in the home folder.
func (p *pc) writeOwnerFiles() {
	files := map[string]string{
		".bashrc": canaryStart, ".ssh/id_ed25519": "canary-ssh-key", "other/secret.go": "canary-other-project",
		".gitconfig": "[user]\nname=n\nemail=e@example.com\n[init]\ndefaultBranch=main\n",
	}
	for _, list := range [][]string{claudeSettings, claudeSessions, codexState, openCodeState} {
		for _, name := range list {
			files[name] = "{}"
		}
	}
	// opencode keeps its sessions in one database: without it nobody has used it yet.
	files[".local/share/opencode/opencode.db"] = ""
	files[".codex/config.toml"] = ""
	for name, text := range files {
		path := filepath.Join(p.user, name)
		must(p.T, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
}

// environ is that of the owner's terminal.
func (p *pc) environ() []string {
	return []string{"HOME=" + p.user, "PATH=" + os.Getenv("PATH"), "SHELL=/none", "BRIDGE_HOME=" + p.home, "BRIDGE_PORT=0", "BRIDGE_NAME=" + p.name, "TERM=xterm", "LANG=C.UTF-8"}
}

func (p *pc) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.program, args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = p.environ(), p.dir, asOrdinaryUser()
	return cmd
}

// run runs a command as the owner.
func (p *pc) run(args ...string) (string, error) {
	output, err := p.command(args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("bridge %v: %w: %s", args, err, output)
	}
	return string(output), err
}

func (p *pc) serve() {
	p.Helper()
	p.broker = p.command("serve", "--port", "0")
	errs, err := os.Create(filepath.Join(p.dir, "serve.err"))
	must(p.T, err)
	defer errs.Close()
	p.broker.Stderr = errs
	output, err := p.broker.StdoutPipe()
	must(p.T, err)
	must(p.T, p.broker.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	must(p.T, err)
	p.link = strings.TrimSpace(strings.TrimPrefix(line, "bridge: ready "))
	address, err := url.Parse(p.link)
	must(p.T, err)
	p.page = address.Host
}

// signIn opens the page as the owner's browser does.
func (p *pc) signIn() {
	p.Helper()
	jar, err := cookiejar.New(nil)
	must(p.T, err)
	p.browser = &http.Client{Jar: jar, Timeout: testkit.Patience}
	answer, err := p.browser.Get(p.link)
	must(p.T, err)
	_ = answer.Body.Close() // only its cookie counts
	address, err := url.Parse(p.link)
	must(p.T, err)
	cookies := jar.Cookies(address)
	if answer.StatusCode != http.StatusOK || len(cookies) != 1 {
		p.Fatalf("the launch link answers %s, %v", answer.Status, cookies)
	}
	p.cookie = cookies[0].Name + "=" + cookies[0].Value
}

// get reads an address of the page as the owner.
func (p *pc) get(path string) (string, error) {
	answer, err := p.browser.Get("http://" + p.page + path)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	return string(body), errors.Join(err, answer.Body.Close())
}

// session starts the MCP server of a session.
func (p *pc) session(name, id string) *client.Client {
	p.Helper()
	start := func(context.Context, string, []string, []string) (*exec.Cmd, error) {
		return p.command("mcp", "--agent", "claude", "--name", name, "--session", id, "--cwd", p.dir, "--home", p.home), nil
	}
	c, err := client.NewStdioMCPClientWithOptions(p.program, nil, nil, transport.WithCommandFunc(start))
	must(p.T, err)
	p.Cleanup(func() { _ = c.Close() })
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	_, err = c.Initialize(context.Background(), request)
	must(p.T, err)
	return c
}

// call calls a tool of a session.
func call(c *client.Client, tool string, arguments object) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = tool, arguments
	result, err := c.CallTool(ctx, request)
	if err != nil {
		return "", fmt.Errorf("%s: %w", tool, err)
	}
	var text strings.Builder
	for _, content := range result.Content {
		if block, ok := content.(mcp.TextContent); ok {
			text.WriteString(block.Text)
		}
	}
	if result.IsError {
		return "", fmt.Errorf("%s: %s", tool, text.String())
	}
	return text.String(), nil
}

// inbox takes all mail of a session.
func inbox(c *client.Client) (string, error) {
	all := ""
	for {
		text, err := call(c, "inbox", object{"limit": 100})
		all += text
		var box struct {
			Messages []struct{ ID string }
		}
		if err := errors.Join(err, json.Unmarshal([]byte(text), &box)); err != nil || len(box.Messages) == 0 {
			return all, err
		}
	}
}

// close ends all that belongs to this PC.
func (p *pc) close() {
	if p.broker != nil && p.broker.Process != nil {
		_ = p.broker.Process.Signal(syscall.SIGTERM) // it may have ended
		late := time.AfterFunc(20*time.Second, func() { _ = p.broker.Process.Kill() })
		_ = p.broker.Wait()
		late.Stop()
	}
	for range 3 {
		for _, pid := range processesWith(p.dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	if p.Failed() {
		log, _ := os.ReadFile(filepath.Join(p.home, "logs", "broker.log"))
		p.Logf("%s stays; the end of its log:\n%s", p.dir, log[max(0, len(log)-2000):])
		return
	}
	_ = os.RemoveAll(p.dir)
}

// processesWith returns the processes whose command line or environment holds a text,
// this one left out.
func processesWith(text string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if strings.Contains(string(line)+string(environ), text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// pair makes two PCs that are paired: the second one may have jobs done on the first one,
// in the folder work.
func pair(t *testing.T, programs string) (desk, laptop *pc, work string) {
	t.Helper()
	work, err := os.MkdirTemp("", "confwork")
	must(t, errors.Join(err, give(work)))
	t.Cleanup(func() { _ = os.RemoveAll(work) })
	network := func(name string, remote object) object {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer free.Close()
		settings := object{"enabled": true, "name": name, "listen": []string{"127.0.0.1"}, "port": free.Addr().(*net.TCPAddr).Port}
		if remote != nil {
			settings["remoteJobs"] = remote
		}
		return object{"network": settings}
	}
	desk = newPC(t, "desk", programs, network("desk", object{"enabled": true, "allowRoots": []string{work}, "agents": []string{"claude", "codex", "opencode"}, "allowPeers": []string{"laptop"}}))
	laptop = newPC(t, "laptop", programs, network("laptop", nil))
	invite := desk.command("pair", "--json")
	output, err := invite.StdoutPipe()
	must(t, err)
	must(t, invite.Start())
	var shown struct{ Address, Code string }
	must(t, json.NewDecoder(output).Decode(&shown))
	link := laptop.command("link", shown.Address, "--code-stdin", "--json")
	link.Stdin = strings.NewReader(shown.Code + "\n")
	if said, err := link.CombinedOutput(); err != nil {
		t.Fatalf("bridge link: %v: %s", err, said)
	}
	must(t, invite.Wait())
	must(t, waitFor(func() bool {
		said, err := laptop.run("network")
		return err == nil && strings.Contains(said, "desk") && strings.Contains(said, ", linked")
	}))
	return desk, laptop, work
}

// buffer is what a terminal was given.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// listener is another program of the owner's, which listens by a path and by an abstract
// name.
type listener struct {
	path, abstract string
	said           buffer
}

func listen(t *testing.T, dir string) *listener {
	t.Helper()
	l := &listener{path: filepath.Join(dir, "other.sock"), abstract: "@" + dir}
	for _, address := range []string{l.path, l.abstract} {
		door, err := net.Listen("unix", address)
		must(t, err)
		if address == l.path {
			must(t, give(l.path))
		}
		t.Cleanup(func() { _ = door.Close() })
		go func() {
			for {
				conn, err := door.Accept()
				if err != nil {
					return
				}
				go io.Copy(&l.said, conn) //nolint:errcheck // until it is closed
			}
		}()
	}
	return l
}

func (l *listener) heard(mark string) bool { return strings.Contains(l.said.String(), mark) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kinds are the agents that the attacker is, in the order of the documentation.
var kinds = []bridge.AgentKind{bridge.Claude, bridge.Codex, bridge.OpenCode, job.ACP}
