package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bridge/backend/agent"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
)

// A scripted host is this test's own program under an agent's name: a process of
// its own, which has `bridge mcp` or `bridge plugin` below it, calls `bridge hook`,
// and can be killed like the agent itself. It takes one order a line and answers
// with what came into its context.

// hostEnv holds the settings of a scripted host as JSON.
const hostEnv = "BRIDGE_SOAK_HOST"

type hostSettings struct {
	Kind    bridge.AgentKind
	Program string // bridge
	Home    string
	Dir     string // working folder
	Name    string
	Session string
}

// hostOrder is what a scripted host shall do: call a hook, wait with the wake
// hook, or call the tool inbox.
type hostOrder struct {
	Do     string // hook, wake, inbox
	Event  string
	Source string
}

type hostAnswer struct{ Text, Err string }

// runHost is the life of a scripted host, until it is killed or its input ends.
func runHost(settings string) int {
	var s hostSettings
	if err := json.Unmarshal([]byte(settings), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Unsetenv(hostEnv)
	h, err := newScriptedHost(s)
	out := json.NewEncoder(os.Stdout)
	if err != nil {
		_ = out.Encode(hostAnswer{Err: err.Error()})
		return 1
	}
	_ = out.Encode(hostAnswer{}) // it has begun
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var order hostOrder
		answer := hostAnswer{}
		err := json.Unmarshal(lines.Bytes(), &order)
		if err == nil {
			answer.Text, err = h.obey(order)
		}
		if err != nil {
			answer.Err = err.Error()
		}
		_ = out.Encode(answer) // whoever does not listen any more kills it
	}
	return 0
}

type scriptedHost struct {
	hostSettings
	mcp    *server
	plugin *pluginLines
}

func newScriptedHost(s hostSettings) (h *scriptedHost, err error) {
	h = &scriptedHost{hostSettings: s}
	if s.Kind == bridge.OpenCode {
		if h.plugin, err = startPlugin(s.Program, "plugin", "opencode", "--home", s.Home); err == nil {
			_, err = h.plugin.ask(map[string]any{"event": "session.created", "call": h.pluginCall()})
		}
		return h, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	h.mcp, err = startServer(ctx, s.Program, "mcp", "--home", s.Home, "--agent", string(s.Kind), "--name", s.Name, "--session", s.Session, "--cwd", s.Dir)
	return h, err
}

func (h *scriptedHost) obey(order hostOrder) (string, error) {
	switch {
	case h.plugin != nil:
		return h.plugin.event(order.Event, h.pluginCall())
	case order.Do == "inbox":
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		defer cancel()
		var box json.RawMessage
		err := h.mcp.call(ctx, "inbox", map[string]any{"limit": 100}, &box)
		return string(box), err
	}
	cmd := exec.Command(h.Program, "hook", string(h.Kind), order.Event, "--home", h.Home)
	input, err := json.Marshal(map[string]any{
		"session_id": h.Session, "conversationId": h.Session, "hook_event_name": order.Event, "source": order.Source, "cwd": h.Dir,
		"prompt": "go on", "tool_name": "Bash",
	})
	if err != nil {
		return "", err
	}
	var builder, woken strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(input)), &builder, &woken
	if err = cmd.Run(); order.Do == "wake" && cmd.ProcessState.ExitCode() == 2 {
		return woken.String(), nil
	}
	return builder.String(), err
}

func (h *scriptedHost) pluginCall() map[string]any {
	return map[string]any{"sessionId": h.Session, "cwd": h.Dir}
}

// pluginLines is opencode's side of `bridge plugin`.
type pluginLines struct {
	in    io.Writer
	lines *bufio.Scanner
	last  int
}

func startPlugin(program string, args ...string) (*pluginLines, error) {
	cmd := exec.Command(program, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &pluginLines{in: in, lines: bufio.NewScanner(out)}
	p.lines.Buffer(nil, 8<<20)
	return p, cmd.Start()
}

type pluginAnswer struct {
	ID    int
	Text  string
	Lease json.RawMessage `json:"loan"`
	Error string
}

// ask writes one request and waits for its answer, passing over pushes.
func (p *pluginLines) ask(request map[string]any) (pluginAnswer, error) {
	p.last++
	request["id"] = p.last
	if err := json.NewEncoder(p.in).Encode(request); err != nil {
		return pluginAnswer{}, err
	}
	for p.lines.Scan() {
		var answer pluginAnswer
		if json.Unmarshal(p.lines.Bytes(), &answer) == nil && answer.ID == p.last {
			return answer, nil
		}
	}
	return pluginAnswer{}, errEnded
}

func (p *pluginLines) event(event string, call map[string]any) (string, error) {
	answer, err := p.ask(map[string]any{"event": event, "call": call})
	if err != nil || answer.Lease == nil {
		return answer.Text, err
	}
	_, err = p.ask(map[string]any{"confirm": map[string]any{"loan": answer.Lease, "stage": "handed", "detail": "step"}})
	return answer.Text, err
}

// mortal is a session whose host is killed again and again.
type mortal struct {
	t     *deaths
	kind  bridge.AgentKind
	name  string
	cmd   *exec.Cmd
	in    *json.Encoder
	out   chan hostAnswer
	store string // the folder of claude's own store
}

// deaths is one home in which hosts die.
type deaths struct {
	*world
	links string // scripted hosts under their agents' names
	reads *store.Reader

	killed, brokers, again, proven, lateKills atomic.Int64
}

// live starts the host; it has registered when live returns.
func (m *mortal) live() error {
	settings, err := json.Marshal(hostSettings{
		Kind: m.kind, Program: program, Home: m.t.home.Dir(), Dir: m.t.dir, Name: m.name, Session: "host-" + m.name,
	})
	if err != nil {
		return err
	}
	m.cmd = exec.Command(filepath.Join(m.t.links, agent.Program(m.kind)))
	m.cmd.Env = append(os.Environ(), hostEnv+"="+string(settings), "CLAUDE_CONFIG_DIR="+m.store)
	m.cmd.Stderr = os.Stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	m.in, m.out = json.NewEncoder(in), make(chan hostAnswer, 10)
	go func(answers chan<- hostAnswer) {
		defer close(answers)
		for lines := json.NewDecoder(out); ; {
			var answer hostAnswer
			if lines.Decode(&answer) != nil {
				return
			}
			answers <- answer
		}
	}(m.out)
	_, err = m.heard()
	return err
}

// heard waits for the host's next answer.
func (m *mortal) heard() (string, error) {
	select {
	case answer, ok := <-m.out:
		if !ok {
			return "", errEnded
		}
		if answer.Err != "" {
			return answer.Text, fmt.Errorf("%s: %s", m.name, answer.Err)
		}
		return answer.Text, nil
	case <-time.After(settle):
		return "", fmt.Errorf("%s says nothing", m.name)
	}
}

func (m *mortal) order(o hostOrder) (string, error) {
	if err := m.in.Encode(o); err != nil {
		return "", err
	}
	return m.heard()
}

func (m *mortal) die() {
	_ = m.cmd.Process.Signal(syscall.SIGKILL) // nothing else ends it
	for range m.out {                         // until its pipe is closed
	}
	_ = m.cmd.Wait() // by the signal
	m.t.killed.Add(1)
}

// ways are how a kind is given mail; each is a sign, too, that its host went on.
func (m *mortal) ways() []hostOrder {
	switch m.kind {
	case bridge.OpenCode:
		return []hostOrder{{Event: "chat.message"}, {Event: "tool.execute.after"}}
	case bridge.Antigravity:
		return []hostOrder{{Do: "hook", Event: "PreInvocation"}, {Do: "inbox"}}
	case bridge.Claude:
		return []hostOrder{{Do: "hook", Event: "UserPromptSubmit"}, {Do: "hook", Event: "PostToolUse"}, {Do: "inbox"}, {Do: "wake", Event: "Wake"}}
	default:
		return []hostOrder{{Do: "hook", Event: "UserPromptSubmit"}, {Do: "hook", Event: "PostToolUse"}, {Do: "inbox"}}
	}
}

// starts are how a new process of the kind may show itself first.
func (m *mortal) starts() (orders []hostOrder) {
	if m.kind == bridge.Claude || m.kind == bridge.Codex {
		orders = []hostOrder{{Do: "hook", Event: "SessionStart", Source: "startup"}, {Do: "hook", Event: "SessionStart", Source: "resume"}}
	}
	return append(orders, hostOrder{}) // its registration alone
}

func oneOf[T any](list []T) T { return list[rand.IntN(len(list))] }

// round is one message to a host that dies between the hand-over and its next
// step, and comes back.
func (m *mortal) round(n int) error {
	token := fmt.Sprintf("tok-%s-%d", m.name, n)
	if m.kind == bridge.Claude { // at rest, so that it can be woken
		if _, err := m.order(hostOrder{Do: "hook", Event: "Stop"}); err != nil {
			return err
		}
	}
	id, err := m.t.ownerWrites("host-"+m.name, token)
	if err != nil {
		return err
	}
	held, err := m.takeAndDie(token, id)
	if err != nil {
		return err
	}
	if rand.IntN(10) == 0 {
		m.t.killBrokerOnce()
	}
	if err := m.live(); err != nil {
		return fmt.Errorf("it does not come back: %w", err)
	}
	if start := oneOf(m.starts()); start.Do != "" {
		if _, err := m.order(start); err != nil {
			return err
		}
	}
	if read := m.t.consumed(id); read.Happened() && (!held || read.Via != mail.ViaTranscript) {
		return fmt.Errorf("%s is called delivered by the restart: %+v", token, read)
	}
	return m.showAndGoOn(token, id, held)
}

// takeAndDie lets the host be given the message and kills it. held says that its
// own store holds the text.
func (m *mortal) takeAndDie(token, id string) (held bool, err error) {
	defer m.die()
	if err := m.in.Encode(oneOf(m.ways())); err != nil {
		return false, err
	}
	if rand.IntN(2) == 0 { // in the middle of it
		pause(60 * time.Millisecond)
		m.t.lateKills.Add(1)
		return false, nil
	}
	text, err := m.heard()
	if err != nil {
		return false, err
	}
	given := strings.Contains(text, token) // not while a broker has just died
	if given && m.kind == bridge.Claude && rand.IntN(3) == 0 {
		return true, m.remember(id, text)
	}
	pause(20 * time.Millisecond)
	return false, nil
}

// remember writes what the host was given into its transcript, as claude does
// before it asks its model.
func (m *mortal) remember(id, text string) error {
	folder := filepath.Join(m.store, "projects", "somewhere")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	line, err := json.Marshal(map[string]any{"type": "attachment", "attachment": map[string]any{"content": []string{text}}})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, "host-"+m.name+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Close()
}

// showAndGoOn wants the message shown to the new process, unless it holds it, and
// called delivered only after that process went on.
func (m *mortal) showAndGoOn(token, id string, held bool) error {
	shown := false
	for deadline := time.Now().Add(settle); time.Now().Before(deadline); {
		read := m.t.consumed(id)
		switch {
		case read.Happened() && held != (read.Via == mail.ViaTranscript), read.Happened() && !held && !shown:
			return fmt.Errorf("%s was read by %+v; its host holds it: %t; shown again: %t", token, read, held, shown)
		case read.Happened() && held:
			m.t.proven.Add(1)
			return nil
		case read.Happened():
			m.t.again.Add(1)
			return nil
		}
		// A hook that outlived its host may still hold the message: the next step
		// has it then. A wake hook might wait for ever.
		text, err := m.order(m.ways()[rand.IntN(min(3, len(m.ways())))])
		if err != nil {
			return err
		}
		if strings.Contains(text, token) && (held || shown) {
			return fmt.Errorf("%s is shown once more; its host holds it: %t", token, held)
		}
		shown = shown || strings.Contains(text, token)
	}
	return fmt.Errorf("%s has no end; shown again: %t: %+v", token, shown, m.t.find(id))
}

func (d *deaths) find(id string) mail.Delivery {
	row, err := d.reads.Find(context.Background(), id)
	if err != nil || len(row.Deliveries) != 1 {
		return mail.Delivery{}
	}
	return row.Deliveries[0]
}

func (d *deaths) consumed(id string) mail.Fact { return d.find(id).Consumed }

// ownerWrites sends the owner's words; a broker that was killed has a successor
// within moments.
func (d *deaths) ownerWrites(to, token string) (id string, err error) {
	for deadline := time.Now().Add(settle); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		var sent api.SendResult
		client, dialErr := d.owner(ctx)
		if err = dialErr; err == nil {
			sent, err = client.Send(ctx, api.SendArgs{To: to, Body: "from the owner [" + token + "]", MessageID: token, Again: true})
			client.Close()
		}
		cancel()
		if err == nil {
			return sent.ID, nil
		}
	}
	return "", fmt.Errorf("%s could not be sent: %w", token, err)
}

// killBrokerOnce ends the broker that serves, if one does.
func (d *deaths) killBrokerOnce() {
	if pid := d.broker(); pid != 0 && d.ours(pid) && syscall.Kill(pid, syscall.SIGKILL) == nil {
		d.brokers.Add(1)
	}
}

func newDeaths(t *testing.T) *deaths {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		t.Fatal(err)
	}
	home, err := config.ResolveHome(filepath.Join(dir, "h"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	d := &deaths{world: &world{T: t, home: home, dir: dir}, links: filepath.Join(dir, "bin")}
	t.Cleanup(d.close)
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(d.links, 0o700)
	}
	for _, kind := range bridge.Kinds() {
		if err == nil {
			err = os.Symlink(self, filepath.Join(d.links, agent.Program(kind)))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestMSG_06_HostsKilledBetweenHandOverAndNextStep: agents of all kinds die when
// they were just given the owner's words, sometimes the broker with them, and come
// back by a start, a resume or a first call. Each message is shown again, or the
// host's own store holds it; none is called delivered otherwise.
func TestMSG_06_HostsKilledBetweenHandOverAndNextStep(t *testing.T) {
	d := newDeaths(t)
	n := kills(t, 12)
	var mortals []*mortal
	for _, kind := range bridge.Kinds() {
		m := &mortal{t: d, kind: kind, name: string(kind), store: filepath.Join(d.dir, "store-"+string(kind))}
		if err := m.live(); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		mortals = append(mortals, m)
	}
	var err error
	if d.reads, err = store.OpenReader(t.Context(), d.home.DB()); err != nil {
		t.Fatal(err)
	}
	defer d.reads.Close()
	var running sync.WaitGroup
	for _, m := range mortals {
		running.Go(func() {
			for i := range n / len(mortals) {
				if err := m.round(i); err != nil {
					t.Errorf("%s, round %d: %v", m.kind, i, err)
					return
				}
			}
		})
	}
	running.Wait()
	for _, m := range mortals {
		if m.cmd.ProcessState == nil {
			m.die()
		}
	}
	t.Logf("%d hosts killed, %d of them during the hand-over, and %d brokers: %d messages shown again, %d held by the host's own store, none called delivered otherwise",
		d.killed.Load()-int64(len(mortals)), d.lateKills.Load(), d.brokers.Load(), d.again.Load(), d.proven.Load())
	if got := d.again.Load() + d.proven.Load(); got != int64(n/len(mortals)*len(mortals)) {
		t.Errorf("%d messages have an end, want %d for each of %d hosts", got, n/len(mortals), len(mortals))
	}
}
