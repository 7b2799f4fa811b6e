package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

const linkPort = 4778

// pc is one of two PCs: a home, a home folder of its owner, and a place on the network.
type pc struct {
	*world
	*place
	name   string
	config string // of its agent
	env    []string
}

// twoPCs are two that know nothing of each other yet, each with a broker that serves.
type twoPCs struct {
	*testing.T
	*cable
	pcs [2]*pc
}

func newTwoPCs(t *testing.T) *twoPCs {
	t.Helper()
	if _, err := exec.LookPath("ss"); err != nil {
		t.Skip("SKIPPED: there is no ss (iproute2) to end connections with")
	}
	two := &twoPCs{T: t, cable: newCable(t)}
	for i, name := range []string{"one", "two"} {
		p := &pc{world: emptyWorld(t), place: two.ends[i], name: name}
		p.config = filepath.Join(p.dir, "config")
		p.env = append(os.Environ(), "HOME="+p.dir, "BRIDGE_HOME="+p.home.Dir(), "BRIDGE_PORT=0",
			startsEnv+"="+p.config, "BRIDGE_CLAUDE_BIN="+filepath.Join(p.dir, agentName))
		self, err := os.Executable()
		if err == nil {
			err = os.Symlink(self, filepath.Join(p.dir, agentName))
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(p.config, "projects"), 0o700)
		}
		if err == nil {
			err = p.home.Ensure()
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(p.dir, ".gitconfig"), []byte("[user]\nname=n\nemail=e@x\n"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.allow(config.Network{Enabled: true})
		p.serve()
		two.pcs[i] = p
	}
	return two
}

// allow writes what the PC's owner allows, in config.json.
func (p *pc) allow(network config.Network) {
	p.Helper()
	network.Name, network.Listen, network.Port = p.name, []string{p.ip}, linkPort
	data, err := json.Marshal(map[string]any{"network": network, "jobs": map[string]any{"enabled": true, "maxJobs": 50}})
	if err == nil {
		err = os.WriteFile(filepath.Join(p.home.Dir(), "config.json.new"), data, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(p.home.Dir(), "config.json.new"), filepath.Join(p.home.Dir(), "config.json"))
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *pc) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	return cmd
}

// serve starts the PC's broker and waits until it serves.
func (p *pc) serve() {
	p.Helper()
	cmd := p.command("serve")
	log, err := os.OpenFile(filepath.Join(p.dir, "serve.out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		cmd.Stdout, cmd.Stderr = log, log
		err = p.start(cmd)
	}
	if err != nil {
		p.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		_ = log.Close()
		close(ended)
	}()
	p.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
	p.await("the broker of "+p.name+" serves", settle, func() bool { return p.broker() != 0 })
}

// killBroker ends the broker that serves by force, and starts another.
func (p *pc) killBroker() {
	p.Helper()
	p.stop()
	p.serve()
}

// stop ends the broker by force.
func (p *pc) stop() {
	p.Helper()
	pid := 0
	p.await("a broker of "+p.name+" serves", settle, func() bool { pid = p.broker(); return pid != 0 })
	if !p.ours(pid) {
		p.Fatalf("process %d serves the home of %s", pid, p.name)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		p.Fatal(err)
	}
	p.await("the broker has gone", settle, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// ours is world's for a broker that finds its home in its environment.
func (p *pc) ours(pid int) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(environ, []byte("BRIDGE_HOME="+p.home.Dir()+"\x00"))
}

// as asks the PC's broker as its owner.
func (p *pc) as(ask func(ctx context.Context, owner *ipc.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	owner, err := p.owner(ctx)
	if err != nil {
		return err
	}
	defer owner.Close()
	return ask(ctx, owner)
}

// peer is how the PC sees the other one.
func (p *pc) peer() (peer api.PC) {
	_ = p.as(func(ctx context.Context, owner *ipc.Client) error { // a broker may be on its way
		network, err := owner.Network(ctx)
		if err == nil && len(network.Peers) == 1 {
			peer = network.Peers[0]
		}
		return err
	})
	return peer
}

// pair has the two pair by their commands: the second one carries the code.
func (two *twoPCs) pair() {
	two.Helper()
	invited, code := two.invite(two.pcs[0])
	link := two.pcs[1].command("link", invited.Address, "--code-stdin", "--json")
	link.Stdin = strings.NewReader(invited.Code + "\n")
	if out, err := two.pcs[1].output(link); err != nil {
		two.Fatalf("bridge link: %v: %s", err, out)
	}
	if err := <-code; err != nil {
		two.Fatalf("bridge pair: %v", err)
	}
	two.linked()
}

// invitation is what `bridge pair --json` prints.
type invitation struct{ Address, Code string }

// invite runs `bridge pair`, which ends with its invitation.
func (two *twoPCs) invite(p *pc) (shown invitation, ended <-chan error) {
	two.Helper()
	cmd := p.command("pair", "--json")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = p.start(cmd)
	}
	if err != nil {
		two.Fatal(err)
	}
	two.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	if err := json.NewDecoder(out).Decode(&shown); err != nil {
		two.Fatalf("bridge pair --json: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	return shown, waited
}

// linked waits until both see a link.
func (two *twoPCs) linked() {
	two.Helper()
	for _, p := range two.pcs {
		p.await(p.name+" sees a link", 2*settle, func() bool { return p.peer().Up })
	}
}

// cutOff waits until neither sees a link.
func (two *twoPCs) cutOff() {
	two.Helper()
	for _, p := range two.pcs {
		p.await(p.name+" sees no link", 2*settle, func() bool { peer := p.peer(); return peer.Name != "" && !peer.Up })
	}
}

func TestRMT_02_TwoPCsLinkAgainAfterEachCutAndDeath(t *testing.T) {
	two := newTwoPCs(t)
	two.pair()
	for i, name := range []string{"two", "one"} {
		peer := two.pcs[i].peer()
		if other := two.pcs[1-i].networkID(); peer.Name != name || peer.ID != other || peer.Allowed != (api.PCAllowed{}) {
			t.Errorf("%s sees %+v, whose own id is %s", two.pcs[i].name, peer, other)
		}
	}
	for _, round := range []struct {
		name string
		what func()
	}{
		{"the connection is reset", two.reset},
		{"the wire is cut and the connection is lost", func() {
			two.cut.Store(true)
			two.reset()
			two.cutOff()
			two.cut.Store(false)
		}},
		{"the device of one goes down and up", func() {
			two.pull(0, true)
			two.reset()
			two.cutOff()
			two.pull(0, false)
		}},
		{"the broker of one dies", two.pcs[0].killBroker},
		{"the broker of two dies", two.pcs[1].killBroker},
	} {
		t.Run(round.name, func(t *testing.T) {
			before := two.since()
			round.what()
			began := time.Now()
			for i, p := range two.pcs {
				p.await(p.name+" sees another link", 2*settle, func() bool { peer := p.peer(); return peer.Up && peer.Since != before[i] })
			}
			t.Logf("linked again after %s", time.Since(began).Round(10*time.Millisecond))
		})
	}
}

// since are the times at which each has the link.
func (two *twoPCs) since() (at [2]int64) {
	for i, p := range two.pcs {
		at[i] = p.peer().Since
	}
	return at
}

func (p *pc) networkID() (id string) {
	err := p.as(func(ctx context.Context, owner *ipc.Client) error {
		network, err := owner.Network(ctx)
		id = network.ID
		return err
	})
	if err != nil {
		p.Error(err)
	}
	return id
}

func TestRMT_01_TwoPCsPairOverABadWire(t *testing.T) {
	two := newTwoPCs(t)
	two.weather(200*time.Millisecond, 50)
	began := time.Now()
	two.pair()
	links := 1
	for ; links < 3 || two.lost.Load() == 0; links++ {
		two.killAndWait(links % 2)
	}
	t.Logf("paired and linked %d times in %s; %d packets were carried, %d lost", links, time.Since(began).Round(time.Millisecond), two.carried.Load(), two.lost.Load())
}

// killAndWait ends a PC's broker by force and waits for the next link.
func (two *twoPCs) killAndWait(i int) {
	two.Helper()
	before := two.since()
	two.pcs[i].killBroker()
	for i, p := range two.pcs {
		p.await(p.name+" sees another link", 2*settle, func() bool { peer := p.peer(); return peer.Up && peer.Since != before[i] })
	}
}
