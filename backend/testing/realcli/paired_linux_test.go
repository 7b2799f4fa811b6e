package realcli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/network/hub/hubtest"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// TestRealAgentsWorkForAPairedPC is the acceptance of jobs on paired PCs: a real claude
// in one home has a real opencode and a real codex in another home work in a repository
// that is allowed there (RMT-08, RMT-16, RMT-17, RMT-19).
func TestRealAgentsWorkForAPairedPC(t *testing.T) {
	workElsewhere(t, (*world).pairWith, "opencode", "codex")
}

// kindsElsewhere are those that work for another PC of a team. Short runs leave out
// opencode: it takes the longest to start, and works for a paired PC in every run.
func kindsElsewhere() []string {
	if testkit.IsLong() {
		return []string{"codex", "opencode"}
	}
	return []string{"codex"}
}

// TestHUB_04_ARealAgentWorksForAPCOfTheTeam has the same done over a real hub.
func TestHUB_04_ARealAgentWorksForAPCOfTheTeam(t *testing.T) {
	workElsewhere(t, (*world).teamUpWith, kindsElsewhere()...)
}

// TestHUB_07_ARealAgentsWorkOutlivesANodeOfItsHub: three nodes, and the one that the
// laptop's broker talks to is killed while the agent's question waits for an answer.
func TestHUB_07_ARealAgentsWorkOutlivesANodeOfItsHub(t *testing.T) {
	testkit.Long(t, "a real agent's work over three nodes takes half a minute")
	laptop, desk := newWorld(t, "p"), newWorld(t, "work")
	laptop.allows(desk)
	hubs := desk.serveNodes()
	laptop.joinWith(desk, hubs[0])
	claude := laptop.open("claude", "p", "❯", scripted.ClaudeCommand("bridge")...)
	laptop.meet(claude, "claude-p")
	desk.model.Script("work", shell("opencode", "echo fixed > parser"), scripted.Say("fixed-there"))
	name := laptop.give(claude, desk, "opencode", "work", "ask", true)
	laptop.shown("the question", func(s state) bool { return s.message("echo fixed > parser").ID != "" })

	var present api.Network
	must(t, json.Unmarshal([]byte(laptop.bridge("network", "--json")), &present))
	node := slices.IndexFunc(hubs[:], func(h nodeOf) bool { return h.name == present.Team.Server })
	if node < 0 {
		t.Fatalf("the laptop talks to %q", present.Team.Server)
	}
	hubs[node].kill()
	for _, pc := range []*world{laptop, desk} {
		pc.sees("the other one by another node", func(n api.Network) bool {
			return n.Team.Up && n.Team.Server != hubs[node].name && len(n.Peers) == 1 && n.Peers[0].Up
		})
	}
	laptop.shown("the question still", func(s state) bool { return s.message("echo fixed > parser").ID != "" })
	var approvals dto.Approvals
	laptop.read("/api/approvals", &approvals)
	if len(approvals.Approvals) != 1 || approvals.Approvals[0].Job != name {
		t.Fatalf("the approvals are %+v", approvals.Approvals)
	}
	laptop.bridge("approve", approvals.Approvals[0].ID)
	if result := laptop.request("the result", holds("fixed-there")); shows(result, "fixed-there") != 1 {
		t.Errorf("the result comes as no message: %v", result)
	}
	laptop.consumed("fixed-there")
	laptop.idle("claude-p")
	if run := laptop.run(name); run.Status != "finished" || !holdsText(filepath.Join(run.Workdir, "parser"), "fixed") {
		t.Errorf("the run is %+v", run.Run)
	}
}

// workElsewhere has a claude on one PC give work to agents of those kinds on another one,
// which meet makes known to it. In a short run only the first kind reads: the other one does
// that where it is the first.
func workElsewhere(t *testing.T, meet func(laptop, desk *world), kinds ...string) {
	laptop, desk := newWorld(t, "p"), newWorld(t, "work")
	laptop.allows(desk)
	meet(laptop, desk)
	claude := laptop.open("claude", "p", "❯", scripted.ClaudeCommand("bridge")...)
	laptop.meet(claude, "claude-p")
	for i, kind := range kinds {
		laptop.step(kind+" changes a file when it may", func(w *world) { w.changesThere(claude, desk, kind) })
		if i == 0 || testkit.IsLong() {
			laptop.step(kind+" that only reads changes nothing", func(w *world) { w.readsThere(claude, desk, kind) })
		}
	}
}

// allows makes a repository in the other home, in which the other's agents may work for
// this one, and installs Bridge in both.
func (w *world) allows(desk *world) {
	w.Helper()
	desk.repository("work")
	for _, pc := range []*world{w, desk} {
		pc.allowJobs()
	}
	w.network("laptop", nil)
	desk.network("desk", map[string]any{
		"enabled": true, "allowRoots": []string{desk.home.Project("work")}, "agents": []string{"codex", "opencode"}, "allowPeers": []string{"laptop"},
	})
	w.install("claude")
	desk.install("codex", "opencode")
}

// network sets how this home links with others, and whose jobs it does.
func (w *world) network(name string, remoteJobs map[string]any) {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(w.T, err)
	port := listener.Addr().(*net.TCPAddr).Port
	must(w.T, listener.Close())
	network := map[string]any{"enabled": true, "name": name, "port": port}
	if remoteJobs != nil {
		network["remoteJobs"] = remoteJobs
	}
	must(w.T, w.home.Edit(".bridge/config.json", func(settings map[string]any) { settings["network"] = network }))
}

// invitation is what a program prints that shows a code, and waits for who comes with it.
type invitation struct {
	Address, Code string
	Addresses     []string // of a hub
}

// invite runs such a program until the other one has come.
func (w *world) invite(come func(invitation), program string, args ...string) {
	w.Helper()
	show := w.home.Command(soon(w.T), w.home.Dir, program, args...)
	stdout, err := show.StdoutPipe()
	must(w.T, err)
	must(w.T, show.Start())
	var invited invitation
	must(w.T, json.NewDecoder(stdout).Decode(&invited))
	come(invited)
	must(w.T, show.Wait())
}

// comes brings the code, as the PC's owner would.
func (w *world) comes(command, address, code string) {
	w.Helper()
	_, err := w.home.Run(soon(w.T), w.home.Dir, code+"\n", "bridge", command, address, "--code-stdin")
	must(w.T, err)
}

// pairWith pairs the two as their owners would, and waits for the link.
func (w *world) pairWith(other *world) {
	w.Helper()
	other.invite(func(i invitation) { w.comes("link", i.Address, i.Code) }, "bridge", "pair", "--json")
	w.sees("the link", func(n api.Network) bool { return len(n.Peers) == 1 && n.Peers[0].Up })
}

// teamUpWith has both join a team at a hub on the other's PC, and waits until each sees
// the other there.
func (w *world) teamUpWith(other *world) {
	w.Helper()
	w.joinWith(other, other.serveHub(other.hubProgram(), "--team", "crew", "--listen", "127.0.0.1", "--port", "0", "--nats-port", "0"))
}

// joinWith has both join the team of that hub.
func (w *world) joinWith(other *world, hub nodeOf) {
	w.Helper()
	for _, pc := range []*world{w, other} {
		other.invite(func(i invitation) { pc.comes("join", i.Addresses[0], i.Code) }, hub.program, append(hub.at, "invite", "--json")...)
	}
	for _, pc := range []*world{w, other} {
		pc.sees("the other one in the team", func(n api.Network) bool { return len(n.Peers) == 1 && n.Peers[0].Member && n.Peers[0].Up })
	}
}

// nodeOf is a hub that runs.
type nodeOf struct {
	name, program string
	at            []string // the flags that name its home
	process       *os.Process
	killed        *bool
}

// kill ends it as a crash does.
func (n nodeOf) kill() {
	*n.killed = true
	_ = n.process.Kill()
}

// serveNodes runs the three nodes of a hub.
func (w *world) serveNodes() (nodes [3]nodeOf) {
	w.Helper()
	program := w.hubProgram()
	var ready sync.WaitGroup
	for i, home := range hubtest.Nodes(w.T) {
		must(w.T, exec.CommandContext(w.Context(), "ip", "address", "add", hubtest.Address(byte(i+1))+"/32", "dev", "lo").Run())
		ready.Go(func() {
			nodes[i] = w.serveHub(program, append([]string{"--home", home, "--team", "crew"}, hubtest.NodeFlags(i)...)...)
			nodes[i].name, nodes[i].at = fmt.Sprintf("hub-%d", i+1), []string{"--home", home}
		})
	}
	ready.Wait()
	if w.Failed() {
		w.FailNow()
	}
	return nodes
}

// hubProgram is a team's hub.
func (w *world) hubProgram() string {
	w.Helper()
	folder, err := product()
	must(w.T, err)
	hub := filepath.Join(folder, "bridge-hub")
	must(w.T, bring(hub))
	return hub
}

// serveHub runs a team's hub until the end of the test.
func (w *world) serveHub(hub string, flags ...string) nodeOf {
	w.Helper()
	serve := w.home.Command(context.WithoutCancel(w.Context()), w.home.Dir, hub, append([]string{"serve"}, flags...)...)
	stdout, err := serve.StdoutPipe()
	must(w.T, err)
	must(w.T, serve.Start())
	killed := false
	w.whole.Cleanup(func() {
		err := serve.Process.Signal(syscall.SIGTERM)
		if err == nil {
			err = serve.Wait()
		}
		if err != nil && !killed {
			w.whole.Errorf("bridge-hub serve after SIGTERM: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.Contains(line, "PCs join at ") {
		w.Fatalf("bridge-hub serve said %q (%v)", line, err)
	}
	return nodeOf{program: hub, process: serve.Process, killed: &killed}
}

// sees waits until the PC's network is so.
func (w *world) sees(what string, is func(api.Network) bool) {
	w.Helper()
	ctx := soon(w.T)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var network api.Network
		must(w.T, json.Unmarshal([]byte(w.bridge("network", "--json")), &network))
		if is(network) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatalf("it does not see %s: %+v", what, network)
		}
	}
}

// give has claude give a job to the desk, and returns its name.
func (w *world) give(claude prompter, desk *world, kind, script, access string, worktree bool) string {
	w.Helper()
	args := map[string]any{"prompt": "play script:" + script, "host": "desk", "cwd": desk.home.Project("work"), "access": access}
	if worktree {
		args["worktree"] = true
	}
	w.model.Script("gives-"+script, scripted.Call(claudeTool+"spawn_"+kind, args), scripted.Say("given"))
	w.prompt(claude, "gives-"+script)
	request := w.request("the answer to spawn_"+kind, asks("gives-"+script, 1))
	name := jobName.FindString(last(request))
	if name == "" {
		w.Fatalf("RMT-08: it answers %q", last(request))
	}
	return name
}

// read fetches something as the page does.
func (w *world) read(path string, into any) {
	w.Helper()
	answer := w.page.get(w.T, soon(w.T), path)
	defer answer.Body.Close()
	must(w.T, json.NewDecoder(answer.Body).Decode(into))
}

// run fetches what the laptop's page shows of a run.
func (w *world) run(name string) (run dto.RunDetail) {
	w.Helper()
	w.read("/api/runs/"+name, &run)
	return run
}

// allowsThere allows a command of a job on the other PC, where this PC's owner is asked.
func (w *world) allowsThere(name, command string) {
	w.Helper()
	w.shown("the question", func(s state) bool { return s.message(command).ID != "" })
	var approvals dto.Approvals
	w.read("/api/approvals", &approvals)
	at := len(approvals.Approvals) - 1
	if at < 0 || approvals.Approvals[at].Job != name || approvals.Approvals[at].By != "claude-p" || approvals.Approvals[at].Remote == nil || approvals.Approvals[at].Remote.Host != "desk" {
		w.Fatalf("RMT-16: the approvals are %+v", approvals.Approvals)
	}
	if raw, _ := json.Marshal(approvals); strings.Contains(string(raw), "token") {
		w.Errorf("RMT-16: they tell of a token: %s", raw)
	}
	w.bridge("approve", approvals.Approvals[at].ID)
}

// ownerAllowsThere has the other PC's owner allow a command that may leave the sandbox:
// nobody else is asked (SEC-03).
func (w *world) ownerAllowsThere(desk *world, command string) {
	w.Helper()
	var approvals, here dto.Approvals
	desk.shown("the question", func(state) bool {
		desk.read("/api/approvals", &approvals)
		return len(approvals.Approvals) > 0 && strings.Contains(approvals.Approvals[len(approvals.Approvals)-1].Detail, command)
	})
	if w.read("/api/approvals", &here); slices.ContainsFunc(here.Approvals, func(a dto.Approval) bool { return strings.Contains(a.Detail, command) }) {
		w.Errorf("SEC-03: this PC is asked %+v", here.Approvals)
	}
	desk.bridge("approve", approvals.Approvals[len(approvals.Approvals)-1].ID)
}

func (w *world) changesThere(claude prompter, desk *world, kind string) {
	file, said := "parser-"+kind, "fixed-there-by-"+kind
	desk.model.Script("work-"+kind, shell(kind, "echo fixed > "+file), scripted.Say(said))
	name := w.give(claude, desk, kind, "work-"+kind, "ask", true)

	if kind == "codex" {
		w.ownerAllowsThere(desk, "echo fixed > "+file)
	} else {
		w.allowsThere(name, "echo fixed > "+file)
	}

	if result := w.request("the result", holds(said)); shows(result, said) != 1 {
		w.Errorf("RMT-19: the result comes as no message: %v", result)
	}
	if m := w.consumed(said); m.From != "desk/"+name {
		w.Errorf("RMT-19: it is from %q", m.From)
	}
	w.idle("claude-p")
	if got := shows(w.afterwards(claude, "look-back-"+kind), said); got != 1 {
		w.Errorf("RMT-15: the result was shown %d times", got)
	}
	w.idle("claude-p")
	run := w.run(name)
	inside := filepath.Join(desk.home.Project("work"), "worktrees") + string(filepath.Separator)
	if run.Remote == nil || run.Remote.Host != "desk" || !strings.HasPrefix(run.Workdir, inside) || run.Session == "" || run.By != "claude-p" || run.Status != "finished" {
		w.Errorf("RMT-17: the run is %+v", run.Run)
	}
	if !holdsText(filepath.Join(run.Workdir, file), "fixed") || exists(filepath.Join(desk.home.Project("work"), file)) {
		w.Errorf("RMT-09: the change is not in %s alone", run.Workdir)
	}
	var diff dto.RunDiff
	w.read("/api/runs/"+name+"/diff", &diff)
	if len(diff.Files) != 1 || diff.Files[0].Path != file || !strings.Contains(diff.Files[0].Patch, "+fixed") {
		w.Errorf("RMT-18: what it changed there is %+v", diff)
	}
	var log dto.RunLog
	if w.read("/api/runs/"+name+"?from=0", &log); !strings.Contains(log.Text, said) {
		w.Errorf("RMT-18: its log is %q", log.Text)
	}
}

func (w *world) readsThere(claude prompter, desk *world, kind string) {
	file, said := filepath.Join(desk.home.Project("work"), "never-"+kind), "only-read-by-"+kind
	desk.model.Script("read-"+kind, shell(kind, "echo x > "+file), scripted.Say(said))
	name := w.give(claude, desk, kind, "read-"+kind, "read", false)
	w.request("the result", holds(said))
	w.consumed(said)
	w.idle("claude-p")
	if _, err := os.Stat(file); err == nil {
		w.Errorf("JOB-13: %s wrote %s", name, file)
	}
	if run := w.run(name); run.Access != "read" {
		w.Errorf("its access is %s", fmt.Sprint(run.Access))
	}
}
