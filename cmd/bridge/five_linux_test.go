package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bridge/backend/core/decision"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/server"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/store"
	"bridge/backend/testing/testkit"
)

// five are the PCs of a team, at a hub of three nodes, each on a machine of its own.
type five struct {
	*testing.T
	hubs [3]*onMachine
	pcs  [5]*onMachine
}

// onMachine is a program that serves on a machine of a test's network.
type onMachine struct {
	*testing.T
	name, home string
	machine    *hubtest.Machine
	words      []string // of its command
	cmd        *exec.Cmd
}

// work is the folder in which jobs work on the machine, beside Bridge's home.
func (m *onMachine) work() string { return filepath.Join(filepath.Dir(m.home), "work") }

// serve starts it, and waits until it says that it is ready.
func (m *onMachine) serve() {
	m.Helper()
	m.cmd = exec.Command(m.words[0], append(m.words[1:], "--home", m.home)...) //nolint:gosec // a program of this test
	var stderr bytes.Buffer
	m.cmd.Stderr = &stderr
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.machine.Start(m.cmd)
	}
	if err != nil {
		m.Fatal(err)
	}
	late := time.AfterFunc(testkit.Patience, func() { _ = m.cmd.Process.Kill() })
	defer late.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = m.cmd.Wait()
		m.Fatalf("%s said %q (%v) %s", m.name, line, err, stderr.String())
	}
}

// end ends it with a signal, and waits for its end.
func (m *onMachine) end(how syscall.Signal) {
	if m.cmd != nil && m.cmd.ProcessState == nil {
		_ = m.cmd.Process.Signal(how)
		_ = m.cmd.Wait() // as it was told to
	}
}

// await waits until it is so.
func (m *onMachine) await(what string, is func() bool) {
	m.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for late := time.After(testkit.Patience); !is(); {
		select {
		case <-again.C:
		case <-late:
			m.Fatalf("%s: %s did not come: %+v", m.name, what, m.network())
		}
	}
}

// bridge runs a command of the PC's owner, which has to do what it is for.
func (m *onMachine) bridge(stdin string, words ...string) string {
	m.Helper()
	got := runBridge(m.T, nil, stdin, append(words, "--home", m.home)...)
	if got.code != 0 {
		m.Fatalf("%s: %q: %+v", m.name, words, got)
	}
	return got.stdout
}

func (m *onMachine) network() (network api.Network) {
	m.Helper()
	if err := json.Unmarshal([]byte(m.bridge("", "network", "--json")), &network); err != nil {
		m.Fatal(err)
	}
	return network
}

// node is the one to which the PC talks; "" for none.
func (m *onMachine) node() string {
	m.Helper()
	if team := m.network().Team; team != nil && team.Up {
		return team.Server
	}
	return ""
}

// as has a session on the PC call tools, each with its arguments.
func (m *onMachine) as(name string, calls ...string) string {
	m.Helper()
	var out bytes.Buffer
	if err := session(append([]string{"--home", m.home, "--agent", "claude", "--name", name, "--session", name, "--cwd", m.home, "--"}, calls...), &out); err != nil {
		m.Errorf("%s: %v: %s", m.name, err, out.String())
	}
	return out.String()
}

func newFive(t *testing.T) *five {
	t.Helper()
	f := &five{T: t}
	net := hubtest.NewNetwork(t, 100)
	var starts sync.WaitGroup
	for i, home := range hubtest.Nodes(t) {
		words := append([]string{"bridge-hub", "serve", "--team", "crew", "--port", "4779", "--nats-port", "4780"}, hubtest.NodeFlags(i)...)
		f.hubs[i] = &onMachine{T: t, name: fmt.Sprintf("hub-%d", i+1), home: home, machine: net.Machine(t, byte(i+1)), words: words}
		t.Cleanup(func() { f.hubs[i].end(syscall.SIGKILL) })
		starts.Go(f.hubs[i].serve)
	}
	starts.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i := range f.pcs {
		p := &onMachine{T: t, name: fmt.Sprintf("pc%d", i+1), home: filepath.Join(shortDir(t), "h"), machine: net.Machine(t, byte(i+11)), words: []string{"bridge", "serve", "--port", "0"}}
		f.pcs[i] = p
		p.allows()
		t.Cleanup(func() { p.end(syscall.SIGKILL) })
		p.serve()
		p.joins(f.hubs[i%3])
		p.comesTo(f.hubs[i%3].name)
	}
	f.meet()
	return f
}

// allows has the PC's owner allow all others everything.
func (m *onMachine) allows() {
	m.Helper()
	var others []string
	for i := range 5 {
		if name := fmt.Sprintf("pc%d", i+1); name != m.name {
			others = append(others, name)
		}
	}
	work := m.work()
	settings, err := json.Marshal(map[string]any{
		"jobs": map[string]any{"enabled": true},
		"network": map[string]any{
			"enabled": true, "port": 0, "name": m.name,
			"messages": map[string]any{"allowPeers": others}, "decisions": map[string]any{"allowPeers": []string{"@crew"}},
			"remoteJobs": map[string]any{"enabled": true, "allowRoots": []string{work}, "agents": []string{"claude"}, "allowPeers": others},
		},
	})
	if err == nil {
		err = os.MkdirAll(work, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(m.home, "config.json"), settings, 0o600)
	}
	if err != nil {
		m.Fatal(err)
	}
}

// joins has the PC join the team by a code that the node shows.
func (m *onMachine) joins(hub *onMachine) {
	m.Helper()
	invite := exec.CommandContext(m.Context(), "bridge-hub", "invite", "--json", "--home", hub.home) //nolint:gosec // a program of this test
	out, err := invite.StdoutPipe()
	if err == nil {
		err = invite.Start()
	}
	if err != nil {
		m.Fatal(err)
	}
	var invited struct {
		Code      string
		Addresses []string
	}
	if err := json.NewDecoder(out).Decode(&invited); err != nil {
		m.Fatal(err)
	}
	m.bridge(invited.Code+"\n", "join", invited.Addresses[0], "--code-stdin")
	if err := invite.Wait(); err != nil {
		m.Error(err)
	}
}

// comesTo starts the PC anew until it is at that node: it takes any of them.
func (m *onMachine) comesTo(node string) {
	m.Helper()
	for {
		at := ""
		m.await("a node", func() bool { at = m.node(); return at != "" })
		if at == node {
			return
		}
		m.end(syscall.SIGTERM)
		m.serve()
	}
}

// meet waits until each sees all others there.
func (f *five) meet() {
	f.Helper()
	for _, p := range f.pcs {
		p.await("all others", func() bool {
			peers := p.network().Peers
			return len(peers) == len(f.pcs)-1 && !slices.ContainsFunc(peers, func(pc api.PC) bool { return !pc.Up })
		})
	}
}

// whole waits until every node has everything.
func (f *five) whole() {
	f.Helper()
	f.hubs[0].awaitHub("every node", func(status server.Status) bool { return status.Replicas == 3 && len(status.Behind) == 0 })
}

func (m *onMachine) awaitHub(what string, is func(server.Status) bool) {
	m.Helper()
	for deadline := time.Now().Add(testkit.Patience); ; {
		said, err := exec.CommandContext(m.Context(), "bridge-hub", "status", "--json", "--home", m.home).Output() //nolint:gosec // a program of this test
		var status server.Status
		if err == nil && json.Unmarshal(said, &status) == nil && is(status) {
			return
		}
		if time.Now().After(deadline) {
			m.Fatalf("%s did not come: %s (%v)", what, said, err)
		}
	}
}

// each is how many messages each PC writes to each other one.
const each = 15

// writes has each PC's session write to a session on each other PC and decide on one topic
// with all others, at the same time, until all is written.
func (f *five) writes() (written *sync.WaitGroup) {
	written = &sync.WaitGroup{}
	for _, p := range f.pcs {
		var calls []string
		for n := range each {
			for _, pc := range f.pcs {
				if pc != p {
					calls = append(calls, "send", fmt.Sprintf(`{"to":"%s/reader","message":"%s to %s #%03d"}`, pc.name, p.name, pc.name, n))
				}
			}
			if n%5 == 4 {
				calls = append(calls, "decide", fmt.Sprintf(`{"topic":"db","text":"%s says %d","scope":"all"}`, p.name, n))
			}
		}
		written.Go(func() {
			if said := p.as("writer", calls...); strings.Contains(said, "refused") {
				p.Errorf("%s: %s", p.name, said)
			}
		})
	}
	return written
}

var numbered = regexp.MustCompile(`(pc\d) to (pc\d) #(\d{3})`)

// read is what the PC's session has of each other PC, in its order.
func (m *onMachine) read() (of map[string][]string, all int) {
	m.Helper()
	of = map[string][]string{}
	for _, found := range numbered.FindAllStringSubmatch(m.as("reader", "inbox", `{"mark_read":false,"limit":100}`), -1) {
		if of[found[1]] = append(of[found[1]], found[3]); found[2] != m.name {
			m.Errorf("%s has %q", m.name, found[0])
		}
		all++
	}
	return of, all
}

// history is what the PC has of a topic, the newest first.
func (m *onMachine) history(topic string) (list []string) {
	m.Helper()
	reader, err := store.OpenReader(m.Context(), filepath.Join(m.home, "bridge.db"))
	if err != nil {
		m.Fatal(err)
	}
	defer reader.Close()
	found, err := reader.Decisions(m.Context(), decision.Lookup{Topic: topic, History: true})
	if err != nil {
		m.Fatal(err)
	}
	for _, revision := range found {
		list = append(list, fmt.Sprintf("%s %q %v", revision.ID, revision.Text, revision.Current))
	}
	return list
}

var jobName = regexp.MustCompile(`claude-job-[0-9a-f]{8}`)

// gives has a session on one PC give another PC a job that asks before it does anything.
func (m *onMachine) gives(machine *onMachine) (job string) {
	m.Helper()
	prompt, _ := json.Marshal("say begins\nrun echo once>>made\nsay all done") // it always can be
	said := m.as("boss", "spawn_claude", fmt.Sprintf(`{"host":%q,"cwd":%q,"access":"ask","prompt":%s}`, machine.name, machine.work(), prompt))
	if job = jobName.FindString(said); job == "" {
		m.Fatalf("%s: %s", m.name, said)
	}
	m.await("the question", func() bool { return strings.Contains(m.bridge("", "runs"), "bridge approve ") })
	return job
}

// approves answers the only question there is, until the answer arrives.
func (m *onMachine) approves() {
	m.Helper()
	id := regexp.MustCompile(`bridge approve (\S+)`).FindStringSubmatch(m.bridge("", "runs"))
	if id == nil {
		m.Fatalf("%s has no question", m.name)
	}
	m.await("the answer's arrival", func() bool {
		got := runBridge(m.T, nil, "", "approve", id[1], "--home", m.home)
		return got.code == 0
	})
}

// TestHUB_07_FivePCsAtThreeNodes has real programs share messages, decisions and a job
// while a node is killed that two of them talk to and that one of them works for the
// others by.
func TestHUB_07_FivePCsAtThreeNodes(t *testing.T) {
	testkit.Long(t, "five PCs at three nodes take most of a minute")
	if !hubtest.OnANetworkOfItsOwn(t) {
		return
	}
	scripted, err := exec.LookPath("scripted")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRIDGE_CLAUDE_BIN", scripted)
	t.Setenv("HOME", t.TempDir())
	f := newFive(t)
	for _, p := range f.pcs {
		p.as("reader", "peers", "{}")
	}
	f.whole()
	asks, works := f.pcs[0], f.pcs[1]
	job := asks.gives(works)

	written := f.writes()
	asks.await("the first messages", func() bool { _, n := asks.read(); return n >= 4 })
	began := time.Now()
	killed := f.hubs[1]
	killed.end(syscall.SIGKILL)
	_, before := asks.read()
	for _, p := range []*onMachine{works, f.pcs[4]} {
		p.await("another node", func() bool { at := p.node(); return at != "" && at != killed.name })
		t.Logf("%s was at %s %s after %s was killed", p.name, p.node(), time.Since(began).Round(100*time.Millisecond), killed.name)
	}
	asks.approves()
	asks.bridge("", "watch", job)
	t.Logf("the job had ended %s after", time.Since(began).Round(100*time.Millisecond))
	written.Wait()
	f.settled(began)
	if made, err := os.ReadFile(filepath.Join(works.work(), "made")); err != nil || string(made) != "once\n" {
		t.Errorf("the job made %q, %v", made, err)
	}
	asks.await("the result", func() bool {
		return strings.Contains(asks.as("boss", "inbox", `{"mark_read":false}`), "all done")
	})
	if said := asks.as("boss", "inbox", "{}", "inbox", "{}"); strings.Count(said, `"id":"result-`) != 1 {
		t.Errorf("the result came so: %s", said)
	}
	t.Logf("%d messages had arrived at %s when the node was killed", before, asks.name)

	killed.serve()
	f.whole()
	f.meet()
}

// settled waits until each PC has everything, and counts what it has.
func (f *five) settled(began time.Time) {
	f.Helper()
	const messages, decisions = 4 * each, 5 * each / 5
	for _, p := range f.pcs {
		p.await("everything", func() bool { _, n := p.read(); return n >= messages && len(p.history("db")) >= decisions })
	}
	f.Logf("all had arrived %s after", time.Since(began).Round(100*time.Millisecond))
	lost, doubled := 0, 0
	for _, p := range f.pcs {
		of, _ := p.read()
		for _, from := range f.pcs {
			if from == p {
				continue
			}
			got := of[from.name]
			once := slices.Compact(slices.Sorted(slices.Values(got)))
			lost, doubled = lost+each-len(once), doubled+len(got)-len(once)
			if !slices.IsSorted(got) {
				f.Errorf("%s has those of %s in the order %v", p.name, from.name, got)
			}
		}
		if want, got := f.pcs[0].history("db"), p.history("db"); !slices.Equal(want, got) || len(got) != decisions {
			f.Errorf("%s has the history\n%q, %s has\n%q", f.pcs[0].name, want, p.name, got)
		}
	}
	f.Logf("%d messages: lost %d, doubled %d; %d decisions, the same at all", 5*messages, lost, doubled, decisions)
	if lost+doubled != 0 {
		f.Error("messages are lost or doubled")
	}
}
