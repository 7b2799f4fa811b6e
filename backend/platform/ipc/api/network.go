package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// Invited is an invitation to pair, which the owner enters on the other PC (RMT-01).
type Invited struct {
	ID        string   `json:"id"`
	Code      string   `json:"code"`
	Addresses []string `json:"addresses"` // host:port, any of them
	ExpiresAt int64    `json:"expiresAt"` // milliseconds since 1970
	Name      string   `json:"name"`      // of this PC
	Self      string   `json:"self"`      // its id
}

// InvitationArgs names an invitation.
type InvitationArgs struct {
	ID string `json:"id"`
}

// InvitationEnded is the end of an invitation; Peer is empty unless it was used.
type InvitationEnded struct {
	State string `json:"state"` // used, burnt or expired
	Peer  PCName `json:"peer,omitzero"`
}

// PCName is a paired PC.
type PCName struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Key  string `json:"key,omitempty"` // of this PC; a team's owner needs it to add this PC
}

// LinkArgs requests to pair with the PC at an address by the code that it shows.
type LinkArgs struct {
	Address string `json:"address"`
	Code    string `json:"code"`
}

// UnlinkArgs names a paired PC.
type UnlinkArgs struct {
	Name string `json:"name"`
}

// JoinExternalArgs requests to join a team that runs its own NATS server.
type JoinExternalArgs struct {
	Team   string   `json:"team"`
	Roster string   `json:"roster"` // the identity of the key that signs the team's roster
	URLs   []string `json:"urls"`
	Creds  string   `json:"creds"`           // content of the credentials file: a secret
	CA     string   `json:"ca,omitempty"`    // certificates in PEM; "" is the system's
	Plain  bool     `json:"plain,omitempty"` // nats:// is allowed beyond this machine
}

// Network is the state of this PC's links to other PCs.
type Network struct {
	Name      string   `json:"name"`
	ID        string   `json:"id"` // "" before the first pairing
	Enabled   bool     `json:"enabled"`
	Listening []string `json:"listening"` // host:port
	Failed    string   `json:"failed,omitempty"`
	Peers     []PC     `json:"peers"`
	Team      *Team    `json:"team,omitempty"` // omitted without a team
}

// TeamOf returns the team that pc shares with this PC, or "".
func (n Network) TeamOf(pc PC) string {
	if n.Team == nil || !pc.Member {
		return ""
	}
	return n.Team.Team
}

// Team is the team of this PC and the link to its hub.
type Team struct {
	Team   string `json:"team"`
	Name   string `json:"name"` // the team's name for this PC
	Hub    string `json:"hub"`  // the identity of the hub, or of the key that seals the roster
	Own    bool   `json:"own"`  // the server is the team's own NATS server, not a hub
	Up     bool   `json:"up"`
	Since  int64  `json:"since"`            // milliseconds since 1970; 0 while the link is down
	Server string `json:"server,omitempty"` // to which this PC connects
	Failed string `json:"failed,omitempty"`
	// Decisions means that the whole team shares decisions with this PC; May describes that.
	Decisions bool   `json:"decisions"`
	May       string `json:"may"`
	// Unheard lists PCs of the team that are ignored, because each has the name of a paired PC.
	Unheard []string `json:"unheard"`
	// Sealed means that this PC encrypts traffic to one PC of the team. It sends
	// nothing to the PCs in Keyless, which have no key for that.
	Sealed  bool     `json:"sealed"`
	Keyless []string `json:"keyless"`
	Carried string   `json:"carried"` // a sentence about both
	// Sees describes, in sentences, what the hub's operator can see and do.
	Sees string `json:"sees"`
	// Dropped lists rejected traffic from the team since Watched, latest first.
	Dropped []Dropped `json:"dropped"`
	Watched int64     `json:"watched"` // milliseconds since 1970; 0 without a listener
	// Waits describes decisions of this PC that the reachable hub does not accept;
	// null without any.
	Waits *Waits `json:"waits"`
}

// Waits describes decisions that wait for the team's hub.
type Waits struct {
	Decisions int    `json:"decisions"`
	Why       string `json:"why"`
	Since     int64  `json:"since"` // milliseconds since 1970; first seen since Bridge started
	Words     string `json:"words"` // a summary sentence without its final period
}

// Dropped counts the traffic in one PC's name that was rejected for one reason.
type Dropped struct {
	Name    string `json:"name"` // "" if the sender is not in the team
	Why     string `json:"why"`
	Words   string `json:"words"` // readable summary: "3 × said in the name of …"
	Count   int64  `json:"count"`
	Last    int64  `json:"last"`    // milliseconds since 1970
	Hostile bool   `json:"hostile"` // a correct Bridge never does that
}

// Joined names the team that this PC joined or left.
type Joined struct {
	Team string `json:"team"`
	Name string `json:"name,omitempty"` // the team's name for this PC
	Hub  string `json:"hub,omitempty"`  // the identity of the hub, or of the key that seals the roster
	Own  bool   `json:"own,omitempty"`  // by credentials for the team's own NATS server
	// Untold is the reason why the hub or server does not know that this PC left.
	Untold string `json:"untold,omitempty"`
}

// PC is a paired PC: the state of its link and its permissions here.
type PC struct {
	Name         string    `json:"name"`
	ID           string    `json:"id"`
	Up           bool      `json:"up"`
	Since        int64     `json:"since"` // milliseconds since 1970; 0 while the link is down
	Release      string    `json:"release"`
	Capabilities []string  `json:"capabilities"`
	Failed       string    `json:"failed,omitempty"` // why the last call failed
	Update       string    `json:"update,omitempty"` // why it needs an update, a sentence
	Allowed      PCAllowed `json:"allowed"`
	May          string    `json:"may"` // its permissions here, a sentence
	Paired       bool      `json:"paired"`
	Member       bool      `json:"member"` // of this PC's team
	// Before is another PC that earlier had this name in the team, or null.
	Before *Before `json:"before"`
}

// Before is a PC whose name in the team now belongs to another PC.
type Before struct {
	ID    string `json:"id"`
	Since int64  `json:"since"` // milliseconds since 1970: when this PC saw the change
}

// PCAllowed holds the permissions of a paired PC here.
type PCAllowed struct {
	Jobs      bool `json:"jobs"`
	Messages  bool `json:"messages"`
	Decisions bool `json:"decisions"`
	Dashboard bool `json:"dashboard"`
	Files     bool `json:"files"`
}

// NetworkLists holds the lists that the paired PCs share (RMT-23).
type NetworkLists struct {
	Peers []PCList `json:"peers"`
}

// PCList is a paired PC's list of sessions and jobs, read-only and as far as its
// owner allows. AsOf is the time of the list by this PC's clock, or 0 without a
// list. Failed is the reason why there is no newer list.
type PCList struct {
	Name     string          `json:"name"`
	ID       string          `json:"id"`
	Up       bool            `json:"up"`
	Sessions []RemoteSession `json:"sessions"`
	Jobs     []RemoteJob     `json:"jobs"`
	AsOf     int64           `json:"asOf"` // milliseconds since 1970
	Failed   string          `json:"failed,omitempty"`
	// Messages reports whether its sessions accept messages from here.
	Messages bool `json:"messages"`
}

// RemoteSession is a session of a paired PC, named <host>/<session>. Cwd is "" if
// its owner hides it.
type RemoteSession struct {
	Name  string            `json:"name"`
	Agent bridge.AgentKind  `json:"agent"`
	State string            `json:"state"` // busy or idle
	Cwd   string            `json:"cwd"`
	Since bridge.UnixMillis `json:"since"`
}

// RemoteJob is a delegated job of a paired PC, named <host>/<job>.
type RemoteJob struct {
	Name   string            `json:"name"`
	Agent  bridge.AgentKind  `json:"agent"`
	Status string            `json:"status"`
	Title  string            `json:"title"`
	Cwd    string            `json:"cwd"`
	Since  bridge.UnixMillis `json:"since"`
}

// NetworkCalls holds the operations on other PCs. Each fails with Denied inside an agent.
type NetworkCalls struct{ link Link }

// Invite opens an invitation and closes the previous one. It fails with Unavailable if the
// broker is ending, and if no port can be opened.
func (c NetworkCalls) Invite(ctx context.Context) (Invited, error) {
	return OpInvite.Call(ctx, c.link, Empty{})
}

// AwaitInvitation waits until the invitation has ended. If ctx ends first, the broker withdraws
// the invitation. It fails with Unavailable if the broker ends.
func (c NetworkCalls) AwaitInvitation(ctx context.Context, id string) (InvitationEnded, error) {
	return OpInvitation.Call(ctx, c.link, InvitationArgs{ID: id})
}

// Link pairs with another PC. It fails with Invalid for a malformed address or code, and if the
// other PC is unreachable or refuses the code.
func (c NetworkCalls) Link(ctx context.Context, args LinkArgs) (PCName, error) {
	return OpLink.Call(ctx, c.link, args)
}

// Unlink removes a pairing. It fails with NotFound if no pair has that name, and if config.json
// cannot be changed.
func (c NetworkCalls) Unlink(ctx context.Context, name string) error {
	_, err := OpUnlink.Call(ctx, c.link, UnlinkArgs{Name: name})
	return err
}

// JoinTeam adds this PC to a team. It fails with Conflict if this PC is in a team already, and
// if the hub is unreachable or refuses the code.
func (c NetworkCalls) JoinTeam(ctx context.Context, args LinkArgs) (Joined, error) {
	return OpJoinTeam.Call(ctx, c.link, args)
}

// JoinExternal adds this PC to a team that runs its own NATS server. It fails with Conflict if this
// PC is in a team already, and if the server or its roster cannot be read.
func (c NetworkCalls) JoinExternal(ctx context.Context, args JoinExternalArgs) (Joined, error) {
	return OpJoinOwn.Call(ctx, c.link, args)
}

// Identify returns this PC's identity for other PCs. It fails if the identity cannot be read or
// created.
func (c NetworkCalls) Identify(ctx context.Context) (PCName, error) {
	return OpIdentify.Call(ctx, c.link, Empty{})
}

// LeaveTeam removes this PC from its team. It fails with NotFound if this PC is in no team, and
// if network/team.json or config.json cannot be changed.
func (c NetworkCalls) LeaveTeam(ctx context.Context) (Joined, error) {
	return OpLeaveTeam.Call(ctx, c.link, Empty{})
}

// NetworkLists returns the lists that the paired PCs share. It fails with Unsupported if the
// broker links with no other PCs.
func (c NetworkCalls) NetworkLists(ctx context.Context) (NetworkLists, error) {
	return OpNetworkLists.Call(ctx, c.link, Empty{})
}

// Network returns the state of the links to other PCs. It fails if the settings cannot be read.
func (c NetworkCalls) Network(ctx context.Context) (Network, error) {
	return OpNetwork.Call(ctx, c.link, Empty{})
}
