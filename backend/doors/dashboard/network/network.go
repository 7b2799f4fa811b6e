// Package network is the dashboard's part about other PCs: the paired PCs, pairing
// by a code in both directions, and each PC's permissions in config.json (RMT-01,
// RMT-06). It describes the effect of a change before saving it, and never loses a
// concurrent edit of the file. The dashboard admits the requests.
package network

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/network/link"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// Peering is the dashboard's view of the links with other PCs; *pairing.Peering
// implements it. All methods are safe for concurrent use.
type Peering interface {
	// Network returns the state of the links.
	Network() (api.Network, error)
	// OwnAddresses returns the addresses by which others may reach this PC.
	OwnAddresses() []string
	// Invite opens an invitation and closes the previous one.
	Invite() (pairing.Invitation, error)
	// Invited returns the state of the last invitation.
	Invited() pairing.InvitationStatus
	// Withdraw closes the invitation with that id, if it is open.
	Withdraw(id string)
	// Join pairs with the PC at that address by the code that it shows.
	Join(ctx context.Context, address, code string) (link.Pair, error)
	// Unpair removes the pairing with that id. It fails with NotFound if there is none.
	Unpair(id string) error
	// Refresh applies the current config.json immediately.
	Refresh()
}

var _ Peering = (*pairing.Peering)(nil)

// Settings is the dashboard's view of config.json; config.File implements it.
type Settings interface {
	Read() (settings config.Config, revision string, err error)
	Plan(revision string, change func(*config.Config) error) (config.ConfigEdit, error)
}

var _ Settings = config.File{}

// Options configures a Network.
type Options struct {
	Peering  Peering  // nil without other PCs
	Settings Settings // nil if config.json must not be changed
	// Lists returns the lists that paired PCs share; nil as Peering.
	Lists func(context.Context) api.NetworkLists
	// Changing is held during every change of config.json in this process.
	Changing *sync.Mutex
	Folders  Folders
}

// Network serves the dashboard's part about other PCs.
type Network struct{ opts Options }

// New returns a Network with these options.
func New(opts Options) *Network { return &Network{opts} }

// ready fails if there is no Peering to serve.
func (n *Network) ready() error {
	if n.opts.Peering == nil || n.opts.Settings == nil {
		return bridge.Errorf(bridge.Unavailable, "other PCs are not reached from here: Bridge's log says why")
	}
	return nil
}

// Show answers GET /api/network.
func (n *Network) Show(w http.ResponseWriter, _ *http.Request) error {
	if err := n.ready(); err != nil {
		return err
	}
	return n.answer(w)
}

func (n *Network) answer(w http.ResponseWriter) error {
	settings, revision, err := n.opts.Settings.Read()
	if err != nil {
		return err
	}
	present, err := n.opts.Peering.Network()
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, n.toDTO(present, settings, revision))
}

// nothing is the body of a request without content.
type nothing struct{}

// Invite answers POST /api/network/invite with a code for the other PC's owner.
func (n *Network) Invite(w http.ResponseWriter, r *http.Request) error {
	return n.does(w, r, func() error {
		_, err := n.opts.Peering.Invite()
		return notOurs(err)
	})
}

// Withdraw answers DELETE /api/network/invite: the code is invalid afterwards.
func (n *Network) Withdraw(w http.ResponseWriter, r *http.Request) error {
	return n.does(w, r, func() error {
		n.opts.Peering.Withdraw(n.opts.Peering.Invited().ID)
		return nil
	})
}

// Unpair answers DELETE /api/network/peers/<id>.
func (n *Network) Unpair(w http.ResponseWriter, r *http.Request) error {
	return n.does(w, r, func() error {
		n.opts.Changing.Lock() // the name is removed from config.json with it
		defer n.opts.Changing.Unlock()
		return n.opts.Peering.Unpair(r.PathValue("id"))
	})
}

// does executes a change without a body; the answer is the new network.
func (n *Network) does(w http.ResponseWriter, r *http.Request, change func() error) error {
	var request nothing
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if err := n.ready(); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return n.answer(w)
}

func find(peers []api.PC, id string) (api.PC, error) {
	at := slices.IndexFunc(peers, func(pc api.PC) bool { return pc.ID == id })
	if at < 0 {
		return api.PC{}, bridge.Errorf(bridge.NotFound, "no paired PC and none of the team has that id: it was unpaired, left, or was never there")
	}
	return peers[at], nil
}

// linkRequest is the body of POST /api/network/link.
type linkRequest struct {
	Address string `json:"address"`
	Code    string `json:"code"`
}

// Link answers POST /api/network/link: this PC pairs with the one that shows a code.
func (n *Network) Link(w http.ResponseWriter, r *http.Request) error {
	var request linkRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if err := n.ready(); err != nil {
		return err
	}
	if _, err := link.CleanCode(request.Code); err != nil { // before a connection is made
		return err
	}
	pair, err := n.opts.Peering.Join(r.Context(), request.Address, request.Code)
	if err != nil {
		return notOurs(err)
	}
	settings, _, err := n.opts.Settings.Read()
	if err != nil {
		return err
	}
	return httpjson.WriteJSON(w, dto.Paired{
		PCName: nameShape(pair.Name, pair.ID), May: settings.Network.May(pair.Name, "", settings.Jobs.MaxAccess).Words(pair.Name),
	})
}

// notOurs changes the code of the other PC's refusal or a used port. Otherwise the
// page would report its own refusal or a missing broker.
func notOurs(err error) error {
	var known *bridge.Error
	if errors.As(err, &known) && slices.Contains([]bridge.Code{bridge.Unauthorized, bridge.Denied, bridge.Unavailable, bridge.Unsupported}, known.Code) {
		return bridge.WithCause(bridge.Conflict, err, known.Message)
	}
	return err
}

func (n *Network) toDTO(present api.Network, settings config.Config, revision string) dto.Network {
	wire := dto.Network{
		Name: present.Name, ID: present.ID, Fingerprint: link.Fingerprint(present.ID), Enabled: settings.Network.Enabled,
		Listening: dto.List(present.Listening), Failed: present.Failed, Invitation: invitationShape(n.opts.Peering.Invited()), Peers: []dto.PairedPC{},
		Policy: n.policyShape(settings, revision), Team: teamShape(present.Team, settings.Network),
	}
	paired := map[string]bool{}
	for _, pc := range present.Peers {
		paired[pc.Name] = true
		wire.Peers = append(wire.Peers, pcShape(pc, settings, present.TeamOf(pc)))
	}
	for _, name := range settings.Network.Names() {
		if !paired[name] {
			wire.Policy.Unpaired = append(wire.Policy.Unpaired, name)
		}
	}
	for _, team := range settings.Network.Teams() {
		if present.Team == nil || present.Team.Team != team {
			wire.Policy.OtherTeams = append(wire.Policy.OtherTeams, team)
		}
	}
	return wire
}

func pcShape(pc api.PC, settings config.Config, team string) dto.PairedPC {
	may := settings.Network.May(pc.Name, "", settings.Jobs.MaxAccess)
	wire := dto.PairedPC{
		PCName: nameShape(pc.Name, pc.ID), Up: pc.Up, Release: pc.Release, Capabilities: dto.List(pc.Capabilities), Update: pc.Update, Failed: pc.Failed, Member: pc.Member, Paired: pc.Paired,
		Allowed: dto.PCAllowed{Jobs: may.Jobs, Messages: may.Messages, Decisions: may.Decisions, Dashboard: may.Dashboard, Files: may.Files},
		May:     settings.Network.May(pc.Name, team, settings.Jobs.MaxAccess).Words(pc.Name),
	}
	if pc.Up {
		wire.Since = &pc.Since
	}
	if pc.Before != nil {
		wire.Before = &dto.Before{Fingerprint: link.Fingerprint(pc.Before.ID), Since: pc.Before.Since}
	}
	return wire
}

func teamShape(team *api.Team, settings config.Network) *dto.Team {
	if team == nil {
		return nil
	}
	wire := &dto.Team{
		Team: team.Team, Name: team.Name, ID: team.Hub, Fingerprint: link.Fingerprint(team.Hub), Own: team.Own, Up: team.Up, Server: team.Server, Failed: team.Failed,
		Unheard: dto.List(team.Unheard), Sees: team.Sees, Carried: team.Carried, Seal: settings.Hub.Seal, Dropped: []dto.Dropped{},
	}
	if team.Team != "" {
		wire.Decisions = settings.SharesWith(team.Team)
		wire.May = remote.TeamWords(team.Team, settings.Enabled, wire.Decisions)
	}
	if team.Up {
		wire.Since = &team.Since
	}
	if team.Watched != 0 {
		wire.Watched = &team.Watched
	}
	if team.Waits != nil {
		wire.Waits = &dto.Waits{Words: team.Waits.Words, Since: team.Waits.Since}
	}
	for _, d := range team.Dropped {
		wire.Dropped = append(wire.Dropped, dto.Dropped{Words: d.Words, Count: d.Count, Last: d.Last, Hostile: d.Hostile})
	}
	return wire
}

func nameShape(name, id string) dto.PCName {
	return dto.PCName{Name: name, ID: id, Fingerprint: link.Fingerprint(id)}
}

func invitationShape(status pairing.InvitationStatus) *dto.Invitation {
	if status.ID == "" {
		return nil
	}
	wire := &dto.Invitation{
		ID: status.ID, State: string(status.State), Code: status.Code, Addresses: dto.List(status.Addresses), LocalOnly: isLocal(status.Addresses),
		ExpiresAt: status.ExpiresAt.UnixMilli(), WrongCodes: status.WrongCodes, BurntAt: link.MaxWrongCodes,
	}
	if status.Pair.ID != "" {
		peer := nameShape(status.Pair.Name, status.Pair.ID)
		wire.Peer = &peer
	}
	return wire
}

// isLocal reports whether only programs of this PC can reach these addresses.
func isLocal(addresses []string) bool {
	return !slices.ContainsFunc(addresses, func(address string) bool {
		host, _, err := net.SplitHostPort(address)
		ip := net.ParseIP(host)
		return err != nil || ip == nil || !ip.IsLoopback()
	})
}
