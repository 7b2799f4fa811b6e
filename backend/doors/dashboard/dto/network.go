package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// Network is the answer of GET /api/network, and of whatever changes it.
type Network struct {
	Name        string   `json:"name"`
	ID          string   `json:"id"`          // "" before the first pairing
	Fingerprint string   `json:"fingerprint"` // what people compare of the id
	Enabled     bool     `json:"enabled"`
	Listening   []string `json:"listening"` // host:port
	Failed      string   `json:"failed"`    // why nobody can come in, or ""
	// Invitation is the last one, also when it is open no more; null for none.
	Invitation *Invitation   `json:"invitation"`
	Peers      []PairedPC    `json:"peers"`
	Policy     NetworkPolicy `json:"policy"`
	Team       *Team         `json:"team"` // null where this PC belongs to none
}

// Team is the team that this PC belongs to; its PCs stand among the Peers.
type Team struct {
	Team        string             `json:"team"`        // "" where it cannot be read
	Name        string             `json:"name"`        // that the team has for this PC
	ID          string             `json:"id"`          // of the hub
	Fingerprint string             `json:"fingerprint"` // of the hub
	Own         bool               `json:"own"`         // the server is a NATS server of the team's own, and no hub
	Up          bool               `json:"up"`
	Since       *bridge.UnixMillis `json:"since"`  // null while it is not up
	Server      string             `json:"server"` // that this PC talks to, or ""
	Failed      string             `json:"failed"` // why the hub is not reached, or ""
	// Decisions says that the whole team shares them, May what that means: a sentence.
	Decisions bool   `json:"decisions"`
	May       string `json:"may"`
	// Unheard are PCs of the team that are not heard: each has the name of a pair.
	Unheard []string `json:"unheard"`
	Sees    string   `json:"sees"`    // what whoever runs the hub sees, in sentences
	Carried string   `json:"carried"` // whether it can read what this PC says to another
	Seal    bool     `json:"seal"`    // config.json has this PC seal what it says to another
	// Dropped is what came from the team and was not taken since Watched, the last first.
	Dropped []Dropped          `json:"dropped"`
	Watched *bridge.UnixMillis `json:"watched"`
	// Waits are decisions that the hub does not take; null for none.
	Waits *Waits `json:"waits"`
}

// Waits are decisions that wait for the team's hub, which is reached.
type Waits struct {
	Words string            `json:"words"` // how many, and why: a sentence without its end
	Since bridge.UnixMillis `json:"since"`
}

// Dropped is what came under one PC's name and was not taken for one reason.
type Dropped struct {
	Words   string            `json:"words"` // "3 × " can stand before it
	Count   int64             `json:"count"`
	Last    bridge.UnixMillis `json:"last"`
	Hostile bool              `json:"hostile"` // no right Bridge does that by itself
}

// Invitation is what another PC pairs by.
type Invitation struct {
	ID         string            `json:"id"`
	State      string            `json:"state"` // open, used, burnt or expired
	Code       string            `json:"code"`  // "" unless it is open
	Addresses  []string          `json:"addresses"`
	LocalOnly  bool              `json:"localOnly"` // no other PC can reach these
	ExpiresAt  bridge.UnixMillis `json:"expiresAt"`
	WrongCodes int               `json:"wrongCodes"`
	BurntAt    int               `json:"burntAt"` // by so many
	Peer       *PCName           `json:"peer"`    // who used it, or null
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
	Update       string             `json:"update"`  // why it has to be updated, a sentence, or ""
	Failed       string             `json:"failed"`  // why the last call came to nothing, or ""
	Allowed      PCAllowed          `json:"allowed"` // by its own name
	May          string             `json:"may"`     // what it may do here, a sentence
	Member       bool               `json:"member"`  // of the team
	Paired       bool               `json:"paired"`  // with this PC
	Before       *Before            `json:"before"`  // another PC that had its name in the team before, or null
}

// Before is a PC whose name in the team is another one's now.
type Before struct {
	Fingerprint string            `json:"fingerprint"`
	Since       bridge.UnixMillis `json:"since"` // when this PC saw that
}

// NetworkLists is the answer of GET /api/network/lists.
type NetworkLists struct {
	Peers []PCList `json:"peers"`
}

// PCList is what a paired PC shows of itself, read-only.
type PCList struct {
	Name     string             `json:"name"`
	ID       string             `json:"id"`
	Messages bool               `json:"messages"` // its sessions take messages from here
	Sessions []PCSession        `json:"sessions"`
	Jobs     []PCJob            `json:"jobs"`
	AsOf     *bridge.UnixMillis `json:"asOf"`   // when it said so; null for never
	Failed   string             `json:"failed"` // why there is nothing newer, or ""
}

// PCSession is a session of a paired PC, by the name <host>/<session>.
type PCSession struct {
	Name  string            `json:"name"`
	Agent bridge.AgentKind  `json:"agent"`
	State string            `json:"state"` // busy or idle
	Cwd   string            `json:"cwd"`   // "" where its owner does not show it
	Since bridge.UnixMillis `json:"since"`
}

// PCJob is a delegated job of a paired PC, by the name <host>/<job>.
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

// PCAllowed is what config.json allows a PC; without links it is nothing yet.
type PCAllowed struct {
	Jobs      bool `json:"jobs"`
	Messages  bool `json:"messages"`
	Decisions bool `json:"decisions"`
	Dashboard bool `json:"dashboard"`
	Files     bool `json:"files"`
}

// NetworkPolicy is what config.json says about other PCs, as far as it is the same for
// all of them.
type NetworkPolicy struct {
	// Revision of config.json: a change is one of exactly this file.
	Revision string   `json:"revision"`
	Listen   []string `json:"listen"` // addresses; none is loopback only
	Port     int      `json:"port"`
	// Own are the addresses of this PC that it could listen at.
	Own []string `json:"own"`
	// JobsEnabled is off while nobody may have jobs here, whoever is named.
	JobsEnabled bool               `json:"jobsEnabled"`
	Roots       []JobRoot          `json:"allowRoots"`
	Agents      []bridge.AgentKind `json:"agents"`
	Kinds       []bridge.AgentKind `json:"kinds"` // that could be allowed
	MaxAccess   job.Access         `json:"maxAccess"`
	// JobsOff says that jobs are off on this PC altogether, a sentence, or "".
	JobsOff string `json:"jobsOff"`
	// Unpaired are names that are allowed something and that no paired PC has.
	Unpaired []string `json:"unpaired"`
	// OtherTeams are those that share decisions as a whole and that this PC is not in.
	OtherTeams []string `json:"otherTeams"`
}

// JobRoot is a folder below which paired PCs may have jobs.
type JobRoot struct {
	Path    string `json:"path"`
	Warning string `json:"warning"` // a sentence, or ""
}

// NetworkPlan is the answer of PUT /api/network/policy: what it changes for people,
// and the network as it is then, or would be.
type NetworkPlan struct {
	Saved    bool            `json:"saved"`
	Changes  []NetworkChange `json:"changes"`
	Warnings []string        `json:"warnings"` // sentences about what would be allowed
	Network  Network         `json:"network"`
}

// NetworkChange is a sentence about this PC (""), a paired one or a team ("@" before its
// name), and what it becomes.
type NetworkChange struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}
