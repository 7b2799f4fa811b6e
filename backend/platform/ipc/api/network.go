package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// Invited is an invitation to pair, as the owner carries it to the other PC (RMT-01).
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

// InvitationEnded says what became of an invitation; Peer is nobody's unless it was
// used.
type InvitationEnded struct {
	State string `json:"state"` // used, burnt or expired
	Peer  PCName `json:"peer,omitzero"`
}

// PCName is a paired PC.
type PCName struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Key  string `json:"key,omitempty"` // of this PC, as a team's owner takes it in
}

// LinkArgs asks to pair with the PC at an address by the code that it shows.
type LinkArgs struct {
	Address string `json:"address"`
	Code    string `json:"code"`
}

// UnlinkArgs names a paired PC.
type UnlinkArgs struct {
	Name string `json:"name"`
}

// JoinOwnArgs asks to join a team that has a NATS server of its own.
type JoinOwnArgs struct {
	Team   string   `json:"team"`
	Roster string   `json:"roster"` // the identity of the key that seals who is in the team
	URLs   []string `json:"urls"`
	Creds  string   `json:"creds"`           // what the credentials file has: a secret
	CA     string   `json:"ca,omitempty"`    // certificates in PEM; "" is the system's
	Plain  bool     `json:"plain,omitempty"` // nats:// may go beyond this machine
}

// Network is this PC among others.
type Network struct {
	Name      string   `json:"name"`
	ID        string   `json:"id"` // "" before the first pairing
	Enabled   bool     `json:"enabled"`
	Listening []string `json:"listening"` // host:port
	Failed    string   `json:"failed,omitempty"`
	Peers     []PC     `json:"peers"`
	Team      *Team    `json:"team,omitempty"` // left out where it belongs to none
}

// TeamOf is the team that the PC belongs to with this one; "" for none.
func (n Network) TeamOf(pc PC) string {
	if n.Team == nil || !pc.Member {
		return ""
	}
	return n.Team.Team
}

// Team is the team that this PC belongs to, and the way to its hub.
type Team struct {
	Team   string `json:"team"`
	Name   string `json:"name"` // that the team has for this PC
	Hub    string `json:"hub"`  // the identity of the hub, or of the key that seals the roster
	Own    bool   `json:"own"`  // the server is a NATS server of the team's own, and no hub
	Up     bool   `json:"up"`
	Since  int64  `json:"since"`            // milliseconds since 1970; 0 while it is not
	Server string `json:"server,omitempty"` // that this PC talks to
	Failed string `json:"failed,omitempty"`
	// Decisions says that the whole team shares them with this PC, May what that means.
	Decisions bool   `json:"decisions"`
	May       string `json:"may"`
	// Unheard are PCs of the team that are not heard: each has the name of a pair.
	Unheard []string `json:"unheard"`
	// Sealed says that this PC seals what it says to one PC of the team, and says nothing to
	// Keyless, which have no key for that.
	Sealed  bool     `json:"sealed"`
	Keyless []string `json:"keyless"`
	Carried string   `json:"carried"` // that in a sentence
	// Sees says what whoever runs the hub sees and can do, in sentences.
	Sees string `json:"sees"`
	// Dropped is what came from the team and was not taken since Watched, the last first.
	Dropped []Dropped `json:"dropped"`
	Watched int64     `json:"watched"` // milliseconds since 1970; 0 where nobody listens
	// Waits are decisions of this PC's that the hub, although it is reached, does not take;
	// null where there are none.
	Waits *Waits `json:"waits"`
}

// Waits are decisions that wait for the team's hub.
type Waits struct {
	Decisions int    `json:"decisions"`
	Why       string `json:"why"`
	Since     int64  `json:"since"` // milliseconds since 1970; when it was first seen since Bridge runs
	Words     string `json:"words"` // all that in a sentence without its end
}

// Dropped is what came under one PC's name and was not taken for one reason.
type Dropped struct {
	Name    string `json:"name"` // "" where it is nobody's of the team
	Why     string `json:"why"`
	Words   string `json:"words"` // what it was: "3 × said in the name of …"
	Count   int64  `json:"count"`
	Last    int64  `json:"last"`    // milliseconds since 1970
	Hostile bool   `json:"hostile"` // no right Bridge does that by itself
}

// Joined says which team this PC has joined, or left.
type Joined struct {
	Team string `json:"team"`
	Name string `json:"name,omitempty"` // that the team has for this PC
	Hub  string `json:"hub,omitempty"`  // the identity of the hub, or of the key that seals the roster
	Own  bool   `json:"own,omitempty"`  // by credentials for a NATS server of the team's own
	// Untold is why the hub, or the team's own server, does not know that this PC left.
	Untold string `json:"untold,omitempty"`
}

// PC is a paired PC: whether a link to it is up, and what it may do here.
type PC struct {
	Name         string    `json:"name"`
	ID           string    `json:"id"`
	Up           bool      `json:"up"`
	Since        int64     `json:"since"` // milliseconds since 1970; 0 while it is not
	Release      string    `json:"release"`
	Capabilities []string  `json:"capabilities"`
	Failed       string    `json:"failed,omitempty"` // why the last call came to nothing
	Update       string    `json:"update,omitempty"` // why it has to be updated, a sentence
	Allowed      PCAllowed `json:"allowed"`
	May          string    `json:"may"` // what it may do here, a sentence
	Paired       bool      `json:"paired"`
	Member       bool      `json:"member"` // of this PC's team
	// Before is another PC that had this one's name in the team before; null for none.
	Before *Before `json:"before"`
}

// Before is a PC whose name in the team is another one's now.
type Before struct {
	ID    string `json:"id"`
	Since int64  `json:"since"` // milliseconds since 1970: when this PC saw that
}

// PCAllowed is what a paired PC may do here.
type PCAllowed struct {
	Jobs      bool `json:"jobs"`
	Messages  bool `json:"messages"`
	Decisions bool `json:"decisions"`
	Dashboard bool `json:"dashboard"`
	Files     bool `json:"files"`
}

// NetworkLists is what the paired PCs show of themselves (RMT-23).
type NetworkLists struct {
	Peers []PCList `json:"peers"`
}

// PCList is what a paired PC shows of itself, as far as its owner allows: its sessions
// and jobs, read-only. AsOf is when it said so, by this PC's clock; 0 where it never
// did. Failed says why there is nothing newer.
type PCList struct {
	Name     string          `json:"name"`
	ID       string          `json:"id"`
	Up       bool            `json:"up"`
	Sessions []RemoteSession `json:"sessions"`
	Jobs     []RemoteJob     `json:"jobs"`
	AsOf     int64           `json:"asOf"` // milliseconds since 1970
	Failed   string          `json:"failed,omitempty"`
	// Messages says that its sessions take messages from here.
	Messages bool `json:"messages"`
}

// RemoteSession is a session of a paired PC, by the name <host>/<session>. Cwd is ""
// where its owner does not show it.
type RemoteSession struct {
	Name  string            `json:"name"`
	Agent bridge.AgentKind  `json:"agent"`
	State string            `json:"state"` // busy or idle
	Cwd   string            `json:"cwd"`
	Since bridge.UnixMillis `json:"since"`
}

// RemoteJob is a delegated job of a paired PC, by the name <host>/<job>.
type RemoteJob struct {
	Name   string            `json:"name"`
	Agent  bridge.AgentKind  `json:"agent"`
	Status string            `json:"status"`
	Title  string            `json:"title"`
	Cwd    string            `json:"cwd"`
	Since  bridge.UnixMillis `json:"since"`
}

// NetworkCalls are the operations about other PCs.
type NetworkCalls struct{ link Link }

// Invite opens an invitation in place of the one before.
func (c NetworkCalls) Invite(ctx context.Context) (Invited, error) {
	return OpInvite.Call(ctx, c.link, Empty{})
}

// AwaitInvitation returns when the invitation is open no more.
func (c NetworkCalls) AwaitInvitation(ctx context.Context, id string) (InvitationEnded, error) {
	return OpInvitation.Call(ctx, c.link, InvitationArgs{ID: id})
}

// Link pairs with another PC.
func (c NetworkCalls) Link(ctx context.Context, args LinkArgs) (PCName, error) {
	return OpLink.Call(ctx, c.link, args)
}

// Unlink ends a pair.
func (c NetworkCalls) Unlink(ctx context.Context, name string) error {
	_, err := OpUnlink.Call(ctx, c.link, UnlinkArgs{Name: name})
	return err
}

// JoinTeam makes this PC one of a team.
func (c NetworkCalls) JoinTeam(ctx context.Context, args LinkArgs) (Joined, error) {
	return OpJoinTeam.Call(ctx, c.link, args)
}

// JoinOwn makes this PC one of a team that has a NATS server of its own.
func (c NetworkCalls) JoinOwn(ctx context.Context, args JoinOwnArgs) (Joined, error) {
	return OpJoinOwn.Call(ctx, c.link, args)
}

// Identify tells who this PC is for others.
func (c NetworkCalls) Identify(ctx context.Context) (PCName, error) {
	return OpIdentify.Call(ctx, c.link, Empty{})
}

// LeaveTeam ends that.
func (c NetworkCalls) LeaveTeam(ctx context.Context) (Joined, error) {
	return OpLeaveTeam.Call(ctx, c.link, Empty{})
}

// NetworkLists tells what the paired PCs show of themselves.
func (c NetworkCalls) NetworkLists(ctx context.Context) (NetworkLists, error) {
	return OpNetworkLists.Call(ctx, c.link, Empty{})
}

// Network tells how it stands with other PCs.
func (c NetworkCalls) Network(ctx context.Context) (Network, error) {
	return OpNetwork.Call(ctx, c.link, Empty{})
}
