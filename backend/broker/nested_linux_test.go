package broker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// The processes of these tests are real: agents, the shells that they start, their MCP
// servers and their hooks. Each is this test binary under the name of such a program.

// treeEnv holds what a process of a test does, as JSON.
const treeEnv = "BRIDGE_BROKER_TEST_TREE"

// node is one process: it does its steps one after the other, says "ready", and goes on
// until its input ends.
type node struct {
	Program  string // the name of the process
	Script   string `json:",omitempty"` // what an interpreter runs
	Socket   string
	Register *api.Register     `json:",omitempty"` // it is an MCP server, or a plugin
	Plugin   bool              `json:",omitempty"`
	Calls    string            `json:",omitempty"` // a server calls a tool for the session with that id
	Hook     *session.HookCall `json:",omitempty"` // it is a hook
	Steps    []node            `json:",omitempty"` // it is an agent
	// Apart starts it in a namespace of process numbers of its own, below a shell.
	Apart bool `json:",omitempty"`
	// Terminal starts the root in a terminal of its own.
	Terminal bool `json:",omitempty"`
	// Stays keeps a step running.
	Stays bool `json:",omitempty"`
	// Ends ends the last step that stays, instead of a program.
	Ends bool `json:",omitempty"`
	// Waits says "ready" and waits until the test goes on, instead of a program.
	Waits bool `json:",omitempty"`
}

func TestMain(m *testing.M) {
	description := os.Getenv(treeEnv)
	if description == "" {
		os.Exit(m.Run())
	}
	var n node
	err := json.Unmarshal([]byte(description), &n)
	if err == nil {
		err = n.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (n node) run() error {
	ctx := context.Background()
	hello := ipc.Hello{Role: api.RoleHook, PID: os.Getpid(), Version: "test"}
	if n.Register != nil {
		hello.Role = api.RoleSession
	}
	if n.Plugin {
		hello.Role = api.RolePlugin
	}
	if n.Register != nil || n.Hook != nil {
		client, err := ipc.Dial(ctx, ipc.Target{Socket: n.Socket, Token: testToken}, hello)
		if err != nil {
			return err
		}
		defer client.Close()
		if n.Register != nil {
			n.Register.AgentPID, n.Register.HostKnown = os.Getppid(), true
			if _, err := client.Register(ctx, *n.Register); err != nil {
				return err
			}
			if n.Calls != "" {
				if _, err := client.Peers(ctx, api.Caller{SessionID: n.Calls}); err != nil {
					return err
				}
			}
		} else {
			n.Hook.Ancestors = []int{os.Getppid(), 2}
			reply, err := client.Hook(ctx, *n.Hook)
			if err != nil {
				return err
			}
			fmt.Printf("said %s %q\n", n.Hook.SessionID, reply.Text)
		}
	}
	input := bufio.NewReader(os.Stdin)
	end := func() error { return nil }
	for _, step := range n.Steps {
		var err error
		switch {
		case step.Ends:
			err = end()
		case step.Waits:
			fmt.Println("ready")
			_, err = input.ReadString('\n')
		case step.Stays:
			end, err = step.start(n.Socket)
		default:
			_, err = step.start(n.Socket)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.Program, err)
		}
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, input)
	return err
}

// start starts a step below this process and waits until it is ready. A step that does
// not stay ends; end ends one that stays.
func (n node) start(socket string) (end func() error, err error) {
	n.Socket = socket
	cmd, input, err := n.command(context.Background())
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end = func() error { return errors.Join(input.Close(), cmd.Wait()) }
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if lines.Text() == "ready" {
			if n.Stays {
				return end, nil
			}
			return end, end()
		}
		fmt.Println(lines.Text())
	}
	return nil, errors.Join(errors.New("it ended early"), cmd.Wait())
}

// command starts the process under its own name, an agent from a shell.
func (n node) command(ctx context.Context) (*exec.Cmd, io.WriteCloser, error) {
	own, err := json.Marshal(n)
	if err != nil {
		return nil, nil, err
	}
	program := filepath.Join(os.Getenv("BRIDGE_BROKER_TEST_PROGRAMS"), n.Program)
	args := []string{program}
	if n.Script != "" {
		args = append(args, n.Script)
	}
	if len(n.Steps) > 0 {
		args = append([]string{"/bin/sh", "-c", `"$@"; true`, "sh"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), treeEnv+"="+string(own))
	if n.Apart {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		}
	}
	if n.Terminal {
		input, inside, err := pty.Open()
		if err != nil {
			return nil, nil, err
		}
		cmd.Stdin, cmd.SysProcAttr = inside, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		return cmd, input, nil
	}
	input, err := cmd.StdinPipe()
	return cmd, input, err
}

// grow starts the tree and returns what its hooks were told, by session id. The tree runs
// until the test ends.
func (b *bench) grow(root node) map[string]string {
	b.t.Helper()
	return b.plant(root).next()
}

// tree is a tree of processes that runs.
type tree struct {
	b       *bench
	cmd     *exec.Cmd
	input   io.WriteCloser
	lines   *bufio.Scanner
	outputs map[string]string
	failed  *strings.Builder
}

// goOn lets a step that waits go on, and returns what next does.
func (t *tree) goOn() map[string]string {
	t.b.t.Helper()
	if _, err := io.WriteString(t.input, "\n"); err != nil {
		t.b.t.Fatal(err)
	}
	return t.next()
}

// next returns what the hooks were told until the next step that waits, or the last one.
func (t *tree) next() map[string]string {
	t.b.t.Helper()
	for t.lines.Scan() {
		if t.lines.Text() == "ready" {
			return t.outputs
		}
		var id, text string
		if _, err := fmt.Sscanf(t.lines.Text(), "said %s %q", &id, &text); err == nil {
			t.outputs[id] += text
		}
	}
	t.b.t.Fatalf("the processes ended: %s", t.failed.String())
	return nil
}

// end ends the tree.
func (t *tree) end() {
	_ = t.input.Close()
	for t.lines.Scan() { // until it is closed
	}
	_ = t.cmd.Wait()
}

// plant starts the tree.
func (b *bench) plant(root node) *tree {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	programs := b.t.TempDir()
	for _, name := range []string{"claude", "codex", "opencode", "node", "bridge-mcp", "bridge-hook"} {
		if err := os.Symlink(self, filepath.Join(programs, name)); err != nil {
			b.t.Fatal(err)
		}
	}
	b.t.Setenv("BRIDGE_BROKER_TEST_PROGRAMS", programs)
	root.Socket = b.home.Socket()
	cmd, input, err := root.command(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	var failed strings.Builder
	cmd.Stderr = &failed
	if err := cmd.Start(); err != nil {
		if root.Apart {
			b.t.Skipf("this system gives no namespaces: %v", err)
		}
		b.t.Fatal(err)
	}
	grown := &tree{b: b, cmd: cmd, input: input, lines: bufio.NewScanner(output), outputs: map[string]string{}, failed: &failed}
	b.t.Cleanup(grown.end)
	return grown
}

func server(kind bridge.AgentKind, id, cwd string) node {
	return node{Program: "bridge-mcp", Register: &api.Register{Kind: kind, SessionID: id, Cwd: cwd}, Stays: true}
}

func hookOf(kind bridge.AgentKind, event session.Event, id, cwd string) node {
	return node{Program: "bridge-hook", Hook: &session.HookCall{Kind: kind, Event: event, HostEvent: string(event), Source: "startup", SessionID: id, Cwd: cwd}}
}

func agentOf(program string, steps ...node) node {
	return node{Program: program, Steps: steps, Stays: true}
}

// bound returns the live session of an id, with its folder.
func (b *bench) bound(kind bridge.AgentKind, id string) (found session.Session, live bool) {
	b.broker.Lock()
	defer b.broker.Unlock()
	s, live := b.broker.Roster.ByHost(kind, id)
	if live {
		found = *s
	}
	return found, live
}

func TestRWM_03_AnAgentInAnAgentsShellTakesNothingOver(t *testing.T) {
	const outer, inner = "outer-0001", "inner-0002"
	start, tool := session.EventStart, session.EventTool
	script := "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"
	for _, kind := range []bridge.AgentKind{bridge.Claude, bridge.Codex} {
		program := string(kind)
		known := map[bridge.AgentKind]string{bridge.Claude: outer}[kind] // codex tells its server no id
		nested := map[bridge.AgentKind]string{bridge.Claude: inner}[kind]
		for _, tt := range []struct {
			name  string
			steps []node
			// itself says that the inner agent has a session of its own.
			itself bool
		}{
			{"without a server", []node{agentOf(program, hookOf(kind, start, inner, "/src/sub"), hookOf(kind, tool, inner, "/src/sub"))}, false},
			{"its server first", []node{agentOf(program, server(kind, nested, "/src/sub"), hookOf(kind, start, inner, "/src/sub"), hookOf(kind, tool, inner, "/src/sub"))}, true},
			{"its hook first", []node{agentOf(program, hookOf(kind, start, inner, "/src/sub"), server(kind, nested, "/src/sub"), hookOf(kind, tool, inner, "/src/sub"))}, true},
			{"by one more shell", []node{{Program: "node", Script: "/srv/run.js", Stays: true, Steps: []node{agentOf(program, hookOf(kind, start, inner, "/src/sub"))}}}, false},
			{"below a process that speaks for another kind", []node{{
				Program: "node", Script: "/srv/run.js", Stays: true,
				Steps: []node{server(map[string]bridge.AgentKind{"claude": bridge.Codex, "codex": bridge.Claude}[program], "another", "/src"), hookOf(kind, start, inner, "/src/sub")},
			}}, false},
			{"of another kind", []node{agentOf(map[string]string{"claude": "codex", "codex": "claude"}[program], hookOf(kind, start, inner, "/src/sub"))}, false},
		} {
			for _, before := range []bool{true, false} { // the outer agent's server, before its hook and after it
				t.Run(fmt.Sprintf("%s/%s/%v", kind, tt.name, before), func(t *testing.T) {
					b := newBench(t)
					own := []node{server(kind, known, "/src"), hookOf(kind, start, outer, "/src")}
					if !before {
						own = []node{own[1], own[0], hookOf(kind, tool, outer, "/src")}
					}
					outputs := b.grow(agentOf(program, append(own, tt.steps...)...))
					s, live := b.bound(kind, outer)
					if !live || s.Cwd != "/src" {
						t.Errorf("the outer session is %+v, live: %v", s, live)
					}
					other, isOwn := b.bound(kind, inner)
					if isOwn != tt.itself || isOwn && (other.ID == s.ID || other.Cwd != "/src/sub") {
						t.Errorf("the inner session is %+v, live: %v, want %v", other, isOwn, tt.itself)
					}
					if outputs[inner] != "" {
						t.Errorf("the inner agent was told %q", outputs[inner])
					}
				})
			}
		}
	}
	t.Run("an inherited session id", func(t *testing.T) {
		b := newBench(t)
		b.grow(agentOf("claude", server(bridge.Claude, outer, "/src"), agentOf("claude", server(bridge.Claude, outer, "/src/sub"))))
		observer := b.join(api.Register{Name: "observer"})
		found, err := observer.Peers(t.Context(), api.Caller{})
		if s, live := b.bound(bridge.Claude, outer); err != nil || !live || s.Cwd != "/src" || len(found.Peers) != 3 {
			t.Errorf("the outer session is %+v, live: %v; all are %+v, %v", s, live, found.Peers, err)
		}
	})
	t.Run("a script", func(t *testing.T) {
		b := newBench(t)
		b.grow(node{Program: "node", Script: script, Stays: true, Steps: []node{
			server(bridge.Claude, outer, "/src"),
			{Program: "node", Script: script, Stays: true, Steps: []node{hookOf(bridge.Claude, start, inner, "/src/sub")}},
		}})
		s, live := b.bound(bridge.Claude, outer)
		if _, isOwn := b.bound(bridge.Claude, inner); !live || s.Cwd != "/src" || isOwn {
			t.Errorf("the outer session is %+v, live: %v, the inner one %v", s, live, isOwn)
		}
	})
}

// An outer session keeps its words while an agent in its shell calls hooks.
func TestRWM_03_TheOwnersWordsReachTheSessionThatTheyAreFor(t *testing.T) {
	const outer, inner = "outer-0001", "inner-0002"
	b := newBench(t)
	b.grow(agentOf("claude", server(bridge.Claude, outer, "/src"), hookOf(bridge.Claude, session.EventStart, outer, "/src")))
	s, _ := b.bound(bridge.Claude, outer)
	writer := b.join(api.Register{Name: "writer"})
	writer.mustSend(api.SendArgs{To: s.Name, Body: "for the outer session"})
	outputs := b.grow(agentOf("claude", hookOf(bridge.Claude, session.EventStart, inner, "/src"), hookOf(bridge.Claude, session.EventTool, inner, "/src"),
		hookOf(bridge.Claude, session.EventTool, outer, "/src")))
	if outputs[inner] != "" || !strings.Contains(outputs[outer], "for the outer session") {
		t.Errorf("told: %q", outputs)
	}
}

// Two agents in containers of their own have the same process number there.
func TestRWM_04_AgentsInContainersAreDifferentSessions(t *testing.T) {
	const thread, two = "thread-one", "thread-two"
	b := newBench(t)
	apart := func(id, cwd string) node {
		agent := agentOf("codex", server(bridge.Codex, "", cwd), hookOf(bridge.Codex, session.EventStart, id, cwd), hookOf(bridge.Codex, session.EventTool, id, cwd))
		agent.Apart = true
		return agent
	}
	b.grow(apart(thread, "/src/one"))
	first, live := b.bound(bridge.Codex, thread)
	if !live || first.Cwd != "/src/one" || first.AgentPID <= 2 {
		t.Fatalf("the first session is %+v, live: %v", first, live)
	}
	writer := b.join(api.Register{Name: "writer"})
	writer.mustSend(api.SendArgs{To: first.Name, Body: "for the first one"})
	outputs := b.grow(apart(two, "/src/two"))
	second, live := b.bound(bridge.Codex, two)
	if present, stays := b.bound(bridge.Codex, thread); !stays || present.ID != first.ID || present.Cwd != "/src/one" {
		t.Errorf("the first session became %+v, live: %v", present, stays)
	}
	if !live || second.ID == first.ID || second.Cwd != "/src/two" || second.AgentPID == first.AgentPID || outputs[two] != "" {
		t.Errorf("the second session is %+v, live: %v, and was told %q", second, live, outputs[two])
	}
}

// A client that states the process of another session's agent does not get that session.
func TestRWM_04_AStatedProcessNumberIsNoProof(t *testing.T) {
	const thread, two = "thread-one", "thread-two"
	b := newBench(t)
	b.grow(agentOf("codex", server(bridge.Codex, "", "/src/one"), hookOf(bridge.Codex, session.EventStart, thread, "/src/one")))
	first, _ := b.bound(bridge.Codex, thread)
	liar := b.dial(api.RoleHook)
	reply, err := liar.Hook(t.Context(), session.HookCall{
		Kind: bridge.Codex, Event: session.EventStart, HostEvent: "SessionStart", Source: "startup", SessionID: two, Cwd: "/src/two", Ancestors: []int{first.AgentPID},
	})
	if present, live := b.bound(bridge.Codex, thread); err != nil || !live || present.Cwd != "/src/one" || reply.Text != "" {
		t.Errorf("the session is %+v, live: %v; the answer is %+v, %v", present, live, reply, err)
	}
	b.join(api.Register{Kind: bridge.Codex, Name: "liar", AgentPID: first.AgentPID, HostKnown: true})
	b.broker.Lock()
	defer b.broker.Unlock()
	if found := b.broker.Roster.ByProcess(bridge.Codex, []int{first.AgentPID}); len(found) != 1 {
		t.Errorf("sessions of that process: %+v", found)
	}
}

// A server whose agent has ended comes to the next broker, too. It is that agent's, and
// not that of whatever has adopted it.
func TestRWM_04_AServerWhoseAgentHasEndedIsNoOthers(t *testing.T) {
	b := newBench(t)
	agent := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	b.join(api.Register{Kind: bridge.Codex, Name: "adopter", AgentPID: os.Getppid(), HostKnown: true})
	server, err := ipc.Dial(t.Context(), ipc.Target{Socket: b.home.Socket(), Token: testToken}, ipc.Hello{Role: api.RoleSession, PID: os.Getpid(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	joined, err := server.Register(t.Context(), api.Register{Kind: bridge.Codex, Name: "orphan", Cwd: "/src", AgentPID: agent.Process.Pid, HostKnown: true})
	if err != nil {
		t.Fatal(err)
	}
	b.broker.Lock()
	defer b.broker.Unlock()
	hosts, _ := b.broker.HostsLocked(joined.ID)
	if len(hosts) != 1 || !hosts[0].Ended() {
		t.Errorf("its processes are %+v, want one that has ended", hosts)
	}
	if found := b.broker.Roster.ByProcess(bridge.Codex, []int{os.Getppid(), agent.Process.Pid}); len(found) != 1 || found[0].Name != "adopter" {
		t.Errorf("sessions of those processes: %+v", found)
	}
}
