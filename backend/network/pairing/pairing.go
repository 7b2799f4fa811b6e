// Package pairing manages this PC's pairs and links. It pairs, keeps the links that the
// owner's settings allow, and passes received frames to their handler. It reads the
// settings each time, so a revoked permission is never cached.
package pairing

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/link"
	"bridge/backend/platform/config"
	"bridge/backend/platform/lifecycle"
)

// Options configures a [Peering]. All fields except ServeStored and PollInterval are required.
type Options struct {
	Home config.Home
	// Settings returns the present settings of config.json about other PCs.
	Settings func() (config.Network, error)
	Release  string
	// Forget removes the name of an unpaired PC from what the owner allows. Another PC
	// that pairs under that name then gets no permissions.
	Forget func(name string) error
	// Capabilities are what this PC supports with others. A frame's type names the
	// capability that Serve has for it.
	Capabilities []string
	// Serve processes a frame from a link. The next frame of that PC waits for it.
	Serve func(from remote.PC, frame remote.Frame)
	// ServeStored processes a frame that the team's hub has stored since then; it may
	// come more than once. If nil, all frames stay there.
	ServeStored func(ctx context.Context, from remote.PC, frame remote.Frame, since time.Time) error
	// Changed is called after something that is shown has changed.
	Changed func()
	Now     func() time.Time
	Log     *slog.Logger
	// PollInterval is how often the settings are checked for a change; 0 means two seconds.
	PollInterval time.Duration
}

const usualLook = 2 * time.Second

// Peering manages this PC's pairs, links and team membership.
type Peering struct {
	opts Options
	book *link.PairList

	turn      sync.Mutex // held to open and close the listener; no other lock is taken around it
	teamTurn  sync.Mutex // held to open and close the connection to the hub, to join and to leave
	admitting sync.Mutex // held to change network/team.json

	mu         sync.Mutex
	identity   *link.Identity // nil until the first pairing
	links      *link.Links    // nil until the first pairing
	listener   *link.Listener // nil while no PC is expected
	listens    listening
	failed     string // why no PC can connect
	invitation *link.Invitation
	joins      int // PCs that are pairing now
	team       teamFile
	teamBroken error    // why the team file cannot be read
	hub        *hub.Hub // nil while there is no connection to a hub
	hubFailed  error    // why it could not be opened
	hubOpened  time.Time
	waits      Waits // for the hub

	tasks *lifecycle.Tasks
}

// listening is where the listener is open.
type listening struct {
	addresses string
	port      int
}

// Open reads the pairs of this PC. It creates no files before the first pairing. It fails if
// network/pairs.json or the identity of this PC cannot be read.
func Open(opts Options) (*Peering, error) {
	if opts.PollInterval == 0 {
		opts.PollInterval = usualLook
	}
	p := &Peering{opts: opts}
	p.tasks = lifecycle.NewTasks(context.Background())
	var err error
	if p.book, err = link.OpenPairList(p.folder(), opts.Now); err != nil {
		return nil, err
	}
	p.Team().readTeam()
	if len(p.book.Pairs()) == 0 && p.team.Membership == nil {
		return p, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.identifyLocked()
}

func (p *Peering) folder() string { return filepath.Join(p.opts.Home.Dir(), "network") }

// Run starts to follow the settings until Close.
func (p *Peering) Run() {
	p.tasks.Go(func() {
		tick := time.NewTicker(p.opts.PollInterval)
		defer tick.Stop()
		for {
			p.follow()
			select {
			case <-tick.C:
			case <-p.tasks.Done():
				return
			}
		}
	})
}

// Close ends the links, the listener and the connection to the hub.
func (p *Peering) Close() {
	p.tasks.Stop()
	_ = p.listen(config.Network{}) // no PC is expected any more
	p.Team().followTeam()
	p.mu.Lock()
	links := p.links
	p.mu.Unlock()
	if links != nil {
		links.Close()
	}
}

// identifyLocked loads or creates this PC's identity, once.
func (p *Peering) identifyLocked() error {
	if p.identity != nil {
		return nil
	}
	identity, err := link.OpenIdentity(p.folder())
	if err != nil {
		return err
	}
	p.identity = &identity
	p.links = link.NewLinks(link.Options{
		Identity: identity, Pairs: p.book, Enabled: p.enabled, Hello: p.hello, Handle: p.opts.Serve,
		Changed: func(remote.PC) { p.opts.Changed() }, Now: p.opts.Now, Log: p.opts.Log,
	})
	return nil
}

func (p *Peering) enabled() bool {
	settings, err := p.opts.Settings()
	return err == nil && settings.Enabled
}

func (p *Peering) hello() link.Hello {
	hello := link.Hello{Protocol: link.Protocol, Name: p.Name(), Release: p.opts.Release, Capabilities: p.opts.Capabilities}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil && p.invitationLocked() == nil {
		hello.Port = p.listens.port
	}
	return hello
}

// Name returns the name of this PC for other PCs.
func (p *Peering) Name() string {
	settings, err := p.opts.Settings()
	if err == nil && settings.Name != "" {
		return settings.Name
	}
	host, _ := os.Hostname() // without one it is "pc"
	return nameOf(host)
}

// nameOf returns a valid name made from a host name.
func nameOf(host string) string {
	host, _, _ = strings.Cut(host, ".")
	name := strings.Map(func(r rune) rune {
		if remote.CheckName(string(r)) == nil || r == '-' || r == '_' {
			return r
		}
		return -1
	}, host)
	name = strings.TrimLeft(name, "-_")
	if len(name) > remote.MaxNameChars {
		name = name[:remote.MaxNameChars]
	}
	if name == "" {
		return "pc"
	}
	return name
}

// follow applies the present settings.
func (p *Peering) follow() {
	settings, err := p.opts.Settings()
	if err != nil {
		settings = config.Network{} // unreadable settings allow nothing
	}
	err = p.listen(settings)
	p.mu.Lock()
	links, before := p.links, p.failed
	p.failed = ""
	if err != nil {
		p.failed = err.Error()
	}
	changed := before != p.failed
	p.mu.Unlock()
	if links != nil {
		links.Refresh()
	}
	p.Team().followTeam()
	if changed {
		if err != nil {
			p.opts.Log.Warn("other PCs cannot come in", "err", err)
		}
		p.opts.Changed()
	}
}

// listen opens the port while a PC may connect, and closes it when none may.
func (p *Peering) listen(settings config.Network) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.mu.Lock()
	present, listens := p.listener, p.listens
	expected := !p.tasks.HasEnded() && (settings.Enabled && len(p.book.Pairs()) > 0 || p.invitationLocked() != nil || p.joins > 0)
	p.mu.Unlock()
	want := listening{addresses: strings.Join(settings.Addresses(), " "), port: settings.Port}
	if want.port == 0 {
		want.port = listens.port // any port works, and a PC may know the earlier one
	}
	if present != nil && expected && listens == want {
		return nil
	}
	if present != nil {
		present.Close() // the new listener may need its port
	}
	listener, err := p.openDoor(settings, want.port, expected)
	if err != nil && settings.Port == 0 && want.port != 0 {
		listener, err = p.openDoor(settings, 0, expected)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener = listener; listener != nil {
		p.listens = listening{addresses: want.addresses, port: listener.Port()}
	}
	return err
}

// openDoor opens a listener. It returns nil if no PC is expected.
func (p *Peering) openDoor(settings config.Network, port int, expected bool) (*link.Listener, error) {
	if !expected {
		return nil, nil //nolint:nilnil // there is no door, and that is no error
	}
	p.mu.Lock()
	err := p.identifyLocked()
	identity, links := p.identity, p.links
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	doors := link.Doors{Known: p.known, Linked: links.Take, Invitation: p.open, Joining: p.joining}
	return link.Listen(p.tasks.Context(), *identity, settings.Addresses(), port, doors, p.opts.Log)
}

// known admits a paired PC while links are enabled. It fails with Denied otherwise.
func (p *Peering) known(id string) error {
	if !p.enabled() {
		return bridge.Errorf(bridge.Denied, "links are off here")
	}
	_, err := p.book.ByID(id)
	return err
}

func (p *Peering) open() *link.Invitation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.invitationLocked()
}

// invitationLocked returns the open invitation; nil for none.
func (p *Peering) invitationLocked() *link.Invitation {
	if p.invitation != nil && p.invitation.State() == link.InvitationOpen {
		return p.invitation
	}
	return nil
}

func (p *Peering) joining(conn *tls.Conn, invitation *link.Invitation) {
	p.mu.Lock()
	identity := *p.identity
	p.joins++ // the code is used before the pairing is complete: the listener stays open until then
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.joins--
	}()
	pair, err := invitation.Admit(conn, identity, p.book, p.Name())
	if err != nil {
		p.opts.Log.Warn("a pairing attempt was refused", "from", conn.RemoteAddr(), "err", err)
	} else {
		p.opts.Log.Info("paired", "peer", pair.Name, "id", link.Fingerprint(pair.ID))
	}
	p.opts.Changed()
}

// Invitation is what the owner carries to the other PC.
type Invitation struct {
	ID        string
	Addresses []string // host:port, any of them
	Code      string
	ExpiresAt time.Time
	Name      string // of this PC
	Self      string // its id
}

// Invite replaces the earlier invitation by a new one and opens its port. It fails with
// Unavailable after Close, if the settings cannot be read, and if no port can be opened.
func (p *Peering) Invite() (Invitation, error) {
	settings, err := p.opts.Settings()
	if err != nil {
		return Invitation{}, err
	}
	p.mu.Lock()
	if err := p.identifyLocked(); err != nil {
		p.mu.Unlock()
		return Invitation{}, err
	}
	if p.invitation != nil {
		p.invitation.Withdraw()
	}
	p.invitation = link.NewInvitation(p.opts.Now)
	invitation, self := p.invitation, p.identity.ID
	p.mu.Unlock()
	if err := p.listen(settings); err != nil {
		invitation.Withdraw()
		return Invitation{}, err
	}
	p.mu.Lock()
	listener := p.listener
	p.mu.Unlock()
	if listener == nil {
		invitation.Withdraw()
		return Invitation{}, bridge.Errorf(bridge.Unavailable, "this Bridge is ending: open the invitation again when it has started")
	}
	addresses := link.Reachable(listener.Addresses())
	p.opts.Changed()
	return Invitation{ID: invitation.ID, Addresses: addresses, Code: invitation.Code, ExpiresAt: invitation.ExpiresAt, Name: p.Name(), Self: self}, nil
}

// InvitationStatus is the state of the last invitation.
type InvitationStatus struct {
	ID         string // "" if there was none
	State      link.InvitationState
	WrongCodes int
	ExpiresAt  time.Time
	Code       string    // "" unless it is open
	Addresses  []string  // none unless it is open
	Pair       link.Pair // the PC that used it; zero if none did, or it is no longer paired
}

// Invited returns the state of the last invitation.
func (p *Peering) Invited() InvitationStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.invitation == nil {
		return InvitationStatus{}
	}
	status := InvitationStatus{ID: p.invitation.ID, State: p.invitation.State(), WrongCodes: p.invitation.WrongCodes(), ExpiresAt: p.invitation.ExpiresAt}
	if status.State == link.InvitationOpen {
		status.Code = p.invitation.Code
		if p.listener != nil {
			status.Addresses = link.Reachable(p.listener.Addresses())
		}
	}
	status.Pair, _ = p.book.ByID(p.invitation.PairedID()) // of a used one
	return status
}

// Await waits until the invitation with that id is no longer open, and returns its
// outcome. An unknown id counts as expired. It fails with Unavailable if the broker ends.
func (p *Peering) Await(ctx context.Context, id string) (link.InvitationState, link.Pair, error) {
	p.mu.Lock()
	invitation := p.invitation
	p.mu.Unlock()
	if invitation == nil || invitation.ID != id {
		return link.InvitationExpired, link.Pair{}, nil
	}
	expires := time.NewTimer(invitation.ExpiresAt.Sub(p.opts.Now()))
	defer expires.Stop()
	select {
	case <-invitation.Ended():
	case <-expires.C:
	case <-ctx.Done():
		return "", link.Pair{}, ctx.Err()
	case <-p.tasks.Done():
		return "", link.Pair{}, bridge.Errorf(bridge.Unavailable, "this broker is ending, and the invitation with it")
	}
	pair, _ := p.book.ByID(invitation.PairedID()) // of a used one
	return invitation.State(), pair, nil
}

// Withdraw ends the invitation with that id, if it is open.
func (p *Peering) Withdraw(id string) {
	if invitation := p.open(); invitation != nil && invitation.ID == id {
		invitation.Withdraw()
		p.opts.Changed()
	}
}

// Join pairs with the PC at that address by the code that the other PC shows. It fails with
// Invalid for a bad address or code, and with Denied if the other PC refuses the code. It also
// fails if that PC cannot be reached.
func (p *Peering) Join(ctx context.Context, address, code string) (link.Pair, error) {
	address, err := withPort(address)
	if err != nil {
		return link.Pair{}, err
	}
	p.mu.Lock()
	err = p.identifyLocked()
	identity := p.identity
	p.mu.Unlock()
	if err != nil {
		return link.Pair{}, err
	}
	pair, err := link.Join(ctx, *identity, p.book, p.Name(), address, code)
	if err != nil {
		return link.Pair{}, err
	}
	p.follow()
	p.opts.Changed()
	return pair, nil
}

// withPort adds the default port to an address without one. It fails with Invalid for a bad one.
func withPort(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), strconv.Itoa(config.DefaultLinkPort)
	}
	number, portErr := strconv.ParseUint(port, 10, 16)
	if host == "" || strings.ContainsAny(host, " \t/@[]") || strings.Contains(host, ":") && net.ParseIP(host) == nil || portErr != nil || number == 0 {
		return "", bridge.Errorf(bridge.Invalid, "%q is no address: it is host or host:port, as the other PC shows it", address)
	}
	return net.JoinHostPort(host, port), nil
}

// Refresh applies the present settings at once.
func (p *Peering) Refresh() {
	p.follow()
	p.opts.Changed()
}

// Unlink ends the pair with that name at once, and removes the name from what the owner allows.
// It fails with NotFound if no pair has that name, and if the pairs or config.json cannot be
// written.
func (p *Peering) Unlink(name string) error {
	pair, err := p.book.ByName(name)
	if err != nil {
		return err
	}
	return p.unpair(pair)
}

// Unpair ends the pair with that id like [Peering.Unlink]. It fails with NotFound if none.
func (p *Peering) Unpair(id string) error {
	pair, err := p.book.ByID(id)
	if err != nil {
		return bridge.Errorf(bridge.NotFound, "no paired PC has that id: it was unpaired, or never paired")
	}
	return p.unpair(pair)
}

func (p *Peering) unpair(pair link.Pair) error {
	if err := p.book.Remove(pair.ID); err != nil {
		return err
	}
	p.follow()
	p.opts.Changed()
	if err := p.opts.Forget(pair.Name); err != nil {
		return bridge.WithCause(bridge.CodeOf(err), err, fmt.Sprintf("%s is paired no more, but config.json may still allow things to a PC of that name: take the name out there (%s)", pair.Name, err))
	}
	return nil
}

// Status is the state of this PC among others, for people.
type Status struct {
	Name      string
	ID        string // "" before the first pairing
	Enabled   bool
	Listening []string // host:port
	Failed    string   // why it does not listen
	Peers     []PeerStatus
	Policy    remote.Policy
	Settings  config.Network
}

func (p *Peering) isPaired(id string) bool {
	_, err := p.book.ByID(id)
	return err == nil
}

// PeerStatus is another PC, and what it may do here now.
type PeerStatus struct {
	remote.Status
	Paired, Member                              bool // with this one; of its team
	Jobs, Messages, Decisions, Dashboard, Files bool
	Before                                      Named // with another PC that had its name in the team before, or zero
}

// Status returns the present state. It fails if the settings cannot be read.
func (p *Peering) Status() (Status, error) {
	settings, err := p.opts.Settings()
	if err != nil {
		return Status{}, err
	}
	status := Status{Name: p.Name(), Enabled: settings.Enabled, Policy: settings.Policy(), Settings: settings}
	p.mu.Lock()
	if p.identity != nil {
		status.ID = p.identity.ID
	}
	if p.listener != nil {
		status.Listening = p.listener.Addresses()
	}
	team := p.team
	status.Failed = p.failed
	p.mu.Unlock()
	status.Peers = p.peers(team, status.Policy)
	return status, nil
}

// peers returns the state of each known PC, sorted by name. All of it is of one state of the
// team, even if the team changes meanwhile.
func (p *Peering) peers(team teamFile, policy remote.Policy) (peers []PeerStatus) {
	allTeam := team.Membership != nil && policy.AllowShare(remote.ShareDecisions, remote.TeamShare(team.Membership.Team)) == nil
	for _, peer := range p.Ways().status(team.PCs) {
		shares := func(share remote.Share) bool { return policy.AllowShare(share, peer.Name) == nil }
		member := team.PCs[peer.ID] != ""
		status := PeerStatus{
			Status: peer, Paired: p.isPaired(peer.ID), Member: member, Jobs: policy.AllowPeer(peer.Name) == nil, Messages: shares(remote.ShareMessages),
			Decisions: shares(remote.ShareDecisions) || allTeam && member, Dashboard: shares(remote.ShareDashboard), Files: policy.AllowFiles(peer.Name) == nil,
		}
		if before, had := team.before(peer.PC); had && member {
			status.Before = before
		}
		peers = append(peers, status)
	}
	return peers
}

// OwnAddresses returns the addresses by which others may reach this PC.
func (p *Peering) OwnAddresses() []string { return link.OwnAddresses() }
