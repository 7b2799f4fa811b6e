package pairing

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bridge/backend/broker/mux"
	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/link"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pc is one PC of a test.
type pc struct {
	*Peering
	t       *testing.T
	changed chan struct{} // capacity 1: look again
	frames  chan remote.Frame

	mu       sync.Mutex
	settings config.Network
	broken   error
}

// forget takes a name out of what is allowed, as the owner's home does.
func (p *pc) forget(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	p.settings = p.settings.Without(name)
	return nil
}

func newPC(t *testing.T, name string) *pc {
	t.Helper()
	home, err := config.ResolveHome(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	p := &pc{t: t, changed: make(chan struct{}, 1), frames: make(chan remote.Frame, 10), settings: config.Network{Name: name, Enabled: true, Port: freePort(t)}}
	p.Peering, err = Open(Options{
		Home: home, Settings: p.read, Forget: p.forget, Release: "1.0", Capabilities: []string{"messages-v1"},
		Serve: func(_ remote.PC, frame remote.Frame) { p.frames <- frame },
		Changed: func() {
			select {
			case p.changed <- struct{}{}:
			default:
			}
		},
		Now: time.Now, Log: slog.New(slog.DiscardHandler), PollInterval: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Run()
	t.Cleanup(p.Close)
	return p
}

// freePort is one that nobody listens at now.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func (p *pc) read() (config.Network, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settings, p.broken
}

// set changes the settings, as an editor of config.json does.
func (p *pc) set(change func(*config.Network)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.settings)
}

// await waits until the network is as it should be.
func (p *pc) await(what string, is func(api.Network) bool) api.Network {
	p.t.Helper()
	late := time.After(testkit.Patience)
	for {
		network, err := p.Network()
		if err == nil && is(network) {
			return network
		}
		select {
		case <-p.changed:
		case <-time.After(time.Millisecond): // some of it changes without a word
		case <-late:
			p.t.Fatalf("%s did not come: %+v, %v", what, network, err)
		}
	}
}

func up(network api.Network) bool   { return len(network.Peers) == 1 && network.Peers[0].Up }
func down(network api.Network) bool { return len(network.Peers) == 1 && !network.Peers[0].Up }

func call[R any](t *testing.T, p *pc, op string, args any) (R, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	operations := mux.New()
	p.Register(operations)
	answer, err := operations.Serve(t.Context(), &presence.Link{}, op, raw)
	result, _ := answer.(R)
	return result, err
}

func pairUp(t *testing.T, a, b *pc) api.Invited {
	t.Helper()
	invitation, err := call[api.Invited](t, b, api.OpInvite.Name, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	peer, err := call[api.PCName](t, a, api.OpLink.Name, api.LinkArgs{Address: invitation.Addresses[0], Code: invitation.Code})
	if err != nil || peer.Name != b.Name() || peer.ID != invitation.Self {
		t.Fatalf("linked with %+v, %v", peer, err)
	}
	return invitation
}

func TestRMT_01_PairedLinkedAndUnlinked(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	invitation := pairUp(t, a, b)
	ended, err := call[api.InvitationEnded](t, b, api.OpInvitation.Name, api.InvitationArgs{ID: invitation.ID})
	if err != nil || ended.State != "used" || ended.Peer.Name != "laptop" {
		t.Errorf("the inviter hears %+v, %v", ended, err)
	}
	network := a.await("the link", up)
	if peer := network.Peers[0]; peer.Allowed != (api.PCAllowed{}) || peer.Release != "1.0" || peer.Since == 0 {
		t.Errorf("a new pair is %+v", peer)
	}
	b.await("the link", up)

	// Switched off on one side, and on again: nothing needs to be restarted.
	b.set(func(n *config.Network) { n.Enabled = false })
	a.await("the end of the link", down)
	b.await("a closed port", func(n api.Network) bool { return len(n.Listening) == 0 })
	b.set(func(n *config.Network) { n.Enabled = true })
	a.await("the link again", up)

	if _, err := call[api.Empty](t, b, api.OpUnlink.Name, api.UnlinkArgs{Name: "laptop"}); err != nil {
		t.Fatal(err)
	}
	a.await("the end of the pair", down)
	if _, err := call[api.Empty](t, b, api.OpUnlink.Name, api.UnlinkArgs{Name: "laptop"}); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("unlinked twice: %v", err)
	}
	if network, _ := b.Network(); len(network.Peers) != 0 || len(network.Listening) != 0 {
		t.Errorf("afterwards there is %+v", network)
	}
}

func TestRMT_06_WhatAPeerMayIsReadEachTime(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	pairUp(t, a, b)
	b.await("the pair", func(n api.Network) bool { return len(n.Peers) == 1 })
	all := func(n *config.Network) {
		peers := config.Sharing{AllowPeers: []string{"laptop"}}
		n.Messages, n.Decisions, n.Dashboard, n.Files.AllowPeers = peers, peers, peers, peers.AllowPeers
		n.RemoteJobs.Enabled, n.RemoteJobs.AllowPeers = true, []string{"laptop"}
	}
	allowed := func() api.PCAllowed {
		network, err := b.Network()
		if err != nil {
			t.Fatal(err)
		}
		return network.Peers[0].Allowed
	}
	if got := allowed(); got != (api.PCAllowed{}) {
		t.Errorf("before anything is allowed: %+v", got)
	}
	b.set(all)
	if got := allowed(); got != (api.PCAllowed{Jobs: true, Messages: true, Decisions: true, Dashboard: true, Files: true}) {
		t.Errorf("all of it: %+v", got)
	}
	b.set(func(n *config.Network) { n.Enabled = false })
	if got := allowed(); got != (api.PCAllowed{}) {
		t.Errorf("with links off: %+v", got)
	}
}

func TestRMT_01_TheDoorStaysOpenUntilThePairingIsThrough(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	b.set(func(n *config.Network) { n.Enabled = false }) // no PC is expected as soon as the code is used
	for round := range 30 {
		invitation, err := b.Invite()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Join(t.Context(), invitation.Addresses[0], invitation.Code); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

func TestRMT_01_AnUnpairedNameIsAllowedNothingWhenItComesAgain(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	pairUp(t, a, b)
	b.set(func(n *config.Network) {
		laptop := config.Sharing{AllowPeers: []string{"laptop", "other"}}
		n.Messages, n.Decisions, n.Dashboard, n.Files.AllowPeers = laptop, laptop, laptop, laptop.AllowPeers
		n.RemoteJobs.Enabled, n.RemoteJobs.AllowPeers = true, []string{"other", "laptop"}
	})
	if err := b.Unlink("laptop"); err != nil {
		t.Fatal(err)
	}
	if settings, _ := b.read(); !slices.Equal(settings.Names(), []string{"other"}) {
		t.Errorf("allowed are %v", settings.Names())
	}
	pairUp(t, a, b)
	network, err := b.Network()
	if err != nil || len(network.Peers) != 1 || network.Peers[0].Allowed != (api.PCAllowed{}) {
		t.Errorf("paired again: %+v, %v", network.Peers, err)
	}
	id := network.Peers[0].ID
	b.mu.Lock()
	b.broken = bridge.Errorf(bridge.Invalid, "config.json is damaged")
	b.mu.Unlock()
	if err := b.Unpair(id); bridge.CodeOf(err) != bridge.Invalid || !strings.Contains(err.Error(), "laptop is paired no more, but") {
		t.Errorf("with damaged settings: %v", err)
	}
	if err := b.Unpair(id); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("it is still paired: %v", err)
	}
}

func TestRMT_03_WhatTheOtherCannotDoIsSaid(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	b.opts.Capabilities = []string{"messages-v1", "remote-jobs-v1", "file-stream-v1"}
	pairUp(t, a, b)
	network := b.await("the link", up)
	want := "laptop runs Bridge 1.0, which does not know remote-jobs-v1, file-stream-v1: update Bridge there"
	if got := network.Peers[0].Update; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if older := a.await("the link", up); older.Peers[0].Update != "" {
		t.Errorf("who can all says %q", older.Peers[0].Update)
	}
}

func TestRMT_06_SettingsThatCannotBeReadAllowNothing(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	pairUp(t, a, b)
	a.await("the link", up)
	b.mu.Lock()
	b.broken = bridge.Errorf(bridge.Invalid, "config.json is damaged")
	b.mu.Unlock()
	a.await("the end of the link", down)
}

func TestRMT_01_OneInvitationAtATime(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk")
	first, err := b.Invite()
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Invite()
	if err != nil {
		t.Fatal(err)
	}
	if state, _, err := b.Await(t.Context(), first.ID); state != link.InvitationExpired || err != nil {
		t.Errorf("the first one is %s, %v", state, err)
	}
	if _, err := a.Join(t.Context(), second.Addresses[0], first.Code); err == nil {
		t.Error("the first code was taken")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.await2(gone, second.ID); err == nil {
		t.Error("who has gone got an answer")
	}
	if _, err := a.Join(t.Context(), second.Addresses[0], second.Code); err == nil {
		t.Error("the code of somebody who has gone was taken")
	}
	// The one who came with the wrong code may not have left yet.
	b.await("the end of its door", func(network api.Network) bool { return len(network.Listening) == 0 })
}

// await2 is the operation that waits, given up by its caller.
func (p *pc) await2(ctx context.Context, id string) (api.InvitationEnded, error) {
	return p.Peering.await(ctx, id)
}

func TestRMT_01_NothingIsMadeBeforeTheFirstPairing(t *testing.T) {
	p := newPC(t, "laptop")
	p.follow()
	if _, err := os.Stat(p.folder()); !os.IsNotExist(err) {
		t.Errorf("there is %s: %v", p.folder(), err)
	}
	network, err := p.Network()
	if err != nil || network.ID != "" || len(network.Listening) != 0 || network.Peers == nil {
		t.Errorf("the network is %+v, %v", network, err)
	}
}

func TestRMT_01_ATakenPortIsSaid(t *testing.T) {
	p := newPC(t, "laptop")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p.set(func(n *config.Network) { n.Port = taken.Addr().(*net.TCPAddr).Port })
	_, err = p.Invite()
	if bridge.CodeOf(err) != bridge.Unavailable || !strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("it says %v", err)
	}
	if p.open() != nil {
		t.Error("an invitation is open that nobody can use")
	}
}

func TestRMT_01_DamagedPairsAreLeftAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	home, err := config.ResolveHome(dir, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "network", "pairs.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Home: home, Now: time.Now}); bridge.CodeOf(err) != bridge.Storage {
		t.Errorf("opened with %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != "{" {
		t.Errorf("it is %q now", after)
	}
}

func TestNames(t *testing.T) {
	for host, want := range map[string]string{
		"laptop": "laptop", "Laptop-2.local": "Laptop-2", "": "pc", "--x": "x", "bücher": "bcher", "名": "pc", strings.Repeat("a", 60): strings.Repeat("a", 40),
	} {
		if got := nameOf(host); got != want {
			t.Errorf("%q is %q, want %q", host, got, want)
		}
	}
	for address, want := range map[string]string{
		"desk": "desk:4778", "10.0.0.1": "10.0.0.1:4778", "10.0.0.1:99": "10.0.0.1:99", "::1": "[::1]:4778", "[::1]:9": "[::1]:9", "": "", "a b": "", "http://x/": "",
	} {
		got, err := withPort(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v, want %q", address, got, err, want)
		}
	}
}

// A PC that came by a code knows the port of the invitation: links are listened for at
// that one, also when the door was shut between.
func TestRMT_01_AnyPortStaysTheOneThatIsKnown(t *testing.T) {
	p := newPC(t, "desk")
	p.set(func(n *config.Network) { n.Enabled, n.Port = false, 0 })
	invitation, err := p.Invite()
	if err != nil {
		t.Fatal(err)
	}
	shut := func() {
		t.Helper()
		p.Withdraw(p.Invited().ID)
		p.await("a shut door", func(n api.Network) bool { return len(n.Listening) == 0 })
	}
	shut()
	again, err := p.Invite()
	if err != nil || again.Addresses[0] != invitation.Addresses[0] {
		t.Errorf("it listened at %s, and then at %s, %v", invitation.Addresses[0], again.Addresses[0], err)
	}
	shut()
	taken, err := net.Listen("tcp", invitation.Addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if other, err := p.Invite(); err != nil || other.Addresses[0] == invitation.Addresses[0] {
		t.Errorf("where that port is taken it listens at %v, %v", other.Addresses, err)
	}
}

// TestRMT_01_NoInvitationAfterTheEnd asks a Bridge that has ended for an invitation.
func TestRMT_01_NoInvitationAfterTheEnd(t *testing.T) {
	a := newPC(t, "laptop")
	a.Close()
	if _, err := a.Invite(); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("it answers %v, want Unavailable", err)
	}
	if a.Invited().State == link.InvitationOpen {
		t.Error("an invitation is open")
	}
}
