package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Network is the answer of GET /api/network and of its changes.
type Network struct {
	Name        string   `json:"name"`
	ID          string   `json:"id"`          // "" before the first pairing
	Fingerprint string   `json:"fingerprint"` // short form of the id for comparison by people
	Enabled     bool     `json:"enabled"`
	Listening   []string `json:"listening"` // host:port
	Failed      string   `json:"failed"`    // why no PC can connect, or ""
	// Invitation is the last one, even after its end; null without any.
	Invitation *Invitation   `json:"invitation"`
	Peers      []PairedPC    `json:"peers"`
	Policy     NetworkPolicy `json:"policy"`
	Team       *Team         `json:"team"` // null without a team
}

// Team is the team of this PC; its PCs are in Peers.
type Team struct {
	Team        string             `json:"team"`        // "" if unreadable
	Name        string             `json:"name"`        // the team's name for this PC
	ID          string             `json:"id"`          // of the hub
	Fingerprint string             `json:"fingerprint"` // of the hub
	Own         bool               `json:"own"`         // the server is the team's own NATS server, not a hub
	Up          bool               `json:"up"`
	Since       *bridge.UnixMillis `json:"since"`  // null while the link is down
	Server      string             `json:"server"` // to which this PC connects, or ""
	Failed      string             `json:"failed"` // why the hub is unreachable, or ""
	// Decisions means that the whole team shares decisions; May describes that in a sentence.
	Decisions bool   `json:"decisions"`
	May       string `json:"may"`
	// Unheard lists PCs of the team that are ignored, because each has the name of a paired PC.
	Unheard []string `json:"unheard"`
	Sees    string   `json:"sees"`    // what the hub's operator can see, in sentences
	Carried string   `json:"carried"` // whether the operator can read this PC's traffic to another
	Seal    bool     `json:"seal"`    // config.json makes this PC encrypt its traffic to another
	// Dropped lists rejected traffic from the team since Watched, latest first.
	Dropped []Dropped          `json:"dropped"`
	Watched *bridge.UnixMillis `json:"watched"`
	// Waits describes decisions that the hub does not accept; null without any.
	Waits *Waits `json:"waits"`
}

// Waits describes decisions that wait for the team's reachable hub.
type Waits struct {
	Words string            `json:"words"` // how many and why: a sentence without its final period
	Since bridge.UnixMillis `json:"since"`
}

// Dropped counts the traffic in one PC's name that was rejected for one reason.
type Dropped struct {
	Words   string            `json:"words"` // "3 × " can precede it
	Count   int64             `json:"count"`
	Last    bridge.UnixMillis `json:"last"`
	Hostile bool              `json:"hostile"` // a correct Bridge never does that
}

// Invitation is an invitation for pairing another PC.
type Invitation struct {
	ID         string            `json:"id"`
	State      string            `json:"state"` // open, used, burnt or expired
	Code       string            `json:"code"`  // "" unless it is open
	Addresses  []string          `json:"addresses"`
	LocalOnly  bool              `json:"localOnly"` // no other PC can reach these addresses
	ExpiresAt  bridge.UnixMillis `json:"expiresAt"`
	WrongCodes int               `json:"wrongCodes"`
	BurntAt    int               `json:"burntAt"` // the number of wrong codes that ends it
	Peer       *PCName           `json:"peer"`    // the PC that used it, or null
}

// PCName is a paired PC for people.
type PCName struct {
	Name        string `json:"name"`
	ID          string `json:"id"`
	Fingerprint string `json:"fingerprint"`
}

// PairedPC is another PC that this one knows.
type PairedPC struct {
	PCName
	Up           bool               `json:"up"`
	Since        *bridge.UnixMillis `json:"since"` // null while no link is up
	Release      string             `json:"release"`
	Capabilities []string           `json:"capabilities"`
	Update       string             `json:"update"`  // why it needs an update, a sentence, or ""
	Failed       string             `json:"failed"`  // why the last call failed, or ""
	Allowed      PCAllowed          `json:"allowed"` // by its own name
	May          string             `json:"may"`     // its permissions here, a sentence
	Member       bool               `json:"member"`  // of the team
	Paired       bool               `json:"paired"`  // with this PC
	Before       *Before            `json:"before"`  // another PC that earlier had its name in the team, or null
}

// Before is a PC whose name in the team now belongs to another PC.
type Before struct {
	Fingerprint string            `json:"fingerprint"`
	Since       bridge.UnixMillis `json:"since"` // when this PC saw the change
}

// NetworkLists is the answer of GET /api/network/lists.
type NetworkLists struct {
	Peers []PCList `json:"peers"`
}

// PCList holds a paired PC's shared lists, read-only.
type PCList struct {
	Name     string             `json:"name"`
	ID       string             `json:"id"`
	Messages bool               `json:"messages"` // its sessions accept messages from here
	Sessions []PCSession        `json:"sessions"`
	Jobs     []PCJob            `json:"jobs"`
	AsOf     *bridge.UnixMillis `json:"asOf"`   // the time of the list; null for never
	Failed   string             `json:"failed"` // why there is no newer list, or ""
}

// PCSession is a session of a paired PC, named <host>/<session>.
type PCSession struct {
	Name  string            `json:"name"`
	Agent bridge.AgentKind  `json:"agent"`
	State string            `json:"state"` // busy or idle
	Cwd   string            `json:"cwd"`   // "" if its owner hides it
	Since bridge.UnixMillis `json:"since"`
}

// PCJob is a delegated job of a paired PC, named <host>/<job>.
type PCJob struct {
	Name   string            `json:"name"`
	Agent  bridge.AgentKind  `json:"agent"`
	Status string            `json:"status"`
	Title  string            `json:"title"`
	Cwd    string            `json:"cwd"`
	Since  bridge.UnixMillis `json:"since"`
}

// Paired is the answer of POST /api/network/link.
type Paired struct {
	PCName
	May string `json:"may"`
}

// PCAllowed holds a PC's permissions in config.json; they have no effect without links.
type PCAllowed struct {
	Jobs      bool `json:"jobs"`
	Messages  bool `json:"messages"`
	Decisions bool `json:"decisions"`
	Dashboard bool `json:"dashboard"`
	Files     bool `json:"files"`
}

// NetworkPolicy holds the settings in config.json that are the same for all other
// PCs.
type NetworkPolicy struct {
	// Revision is the revision of config.json: a change is based on exactly this file.
	Revision string   `json:"revision"`
	Listen   []string `json:"listen"` // addresses; none is loopback only
	Port     int      `json:"port"`
	// Own lists the addresses of this PC on which it could listen.
	Own []string `json:"own"`
	// JobsEnabled is off if no other PC may run jobs here, whatever names are listed.
	JobsEnabled bool               `json:"jobsEnabled"`
	Roots       []JobRoot          `json:"allowRoots"`
	Agents      []bridge.AgentKind `json:"agents"`
	Kinds       []bridge.AgentKind `json:"kinds"` // allowed kinds
	MaxAccess   job.Access         `json:"maxAccess"`
	// JobsOff is a sentence if jobs are disabled on this PC, or "".
	JobsOff string `json:"jobsOff"`
	// Unpaired lists names with permissions but without a paired PC.
	Unpaired []string `json:"unpaired"`
	// OtherTeams lists teams with shared decisions that this PC is not in.
	OtherTeams []string `json:"otherTeams"`
}

// JobRoot is a folder below which paired PCs may run jobs.
type JobRoot struct {
	Path    string `json:"path"`
	Warning string `json:"warning"` // a sentence, or ""
}

// NetworkPlan is the answer of PUT /api/network/policy: the changes as text, and
// the resulting network.
type NetworkPlan struct {
	Saved    bool            `json:"saved"`
	Changes  []NetworkChange `json:"changes"`
	Warnings []string        `json:"warnings"` // sentences about the resulting permissions
	Network  Network         `json:"network"`
}

// NetworkChange describes a change for this PC (""), a paired one or a team ("@"
// before its name).
type NetworkChange struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}
