// Package server is a team's hub (rows HUB): NATS JetStream in this process, set to sync
// before it acknowledges, with one account for the team and one key a PC. It takes PCs in
// by a code, lets each speak under its own identity only, and throws out what is removed,
// at once. What passes through it and whom it is for is its clients' matter.
//
// Who belongs to the team stands in a bucket of the engine itself: every node of a hub of
// three has it, and what was enrolled is as durable as what was sent.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nkeys"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/join"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
)

// Home is the folder of one node of a hub. Nothing in it is for others' eyes.
type Home struct{ dir string }

// At is the home in that folder; "" is ~/.bridge-hub. It touches nothing.
func At(folder string) (Home, error) {
	if folder == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return Home{}, bridge.Errorf(bridge.Invalid, "there is no user home folder: name one for the hub with --home")
		}
		folder = filepath.Join(user, ".bridge-hub")
	}
	dir, err := disk.CanonicalTarget(folder)
	if err != nil {
		return Home{}, bridge.Errorf(bridge.Invalid, "the home folder %s cannot be used: %w", folder, err)
	}
	return Home{dir: dir}, nil
}

// Dir is the folder itself.
func (h Home) Dir() string { return h.dir }

func (h Home) settings() string { return filepath.Join(h.dir, "hub.json") }
func (h Home) admin() string    { return filepath.Join(h.dir, "admin.nk") }
func (h Home) network() string  { return filepath.Join(h.dir, "network") }
func (h Home) lock() string     { return filepath.Join(h.dir, "hub.lock") }
func (h Home) running() string  { return filepath.Join(h.dir, "running.json") }
func (h Home) store() string    { return filepath.Join(h.dir, "store") }

// Logs is the folder of Log, where the hub writes what it did.
func (h Home) Logs() string { return filepath.Join(h.dir, "logs") }

// Log is the newest of them.
func (h Home) Log() string { return filepath.Join(h.Logs(), "hub.log") }

const (
	settingsVersion  = 1
	maxSettingsBytes = 1 << 20
	maxSeedBytes     = 200
)

// Settings are what a hub is set to, hub.json.
type Settings struct {
	Version int    `json:"version"`
	Team    string `json:"team"`
	// Node is this node's name; the nodes of one hub have different ones.
	Node string `json:"node"`
	// Listen is the address of both ports; "" is all of the machine's.
	Listen string `json:"listen"`
	// Port is where PCs are taken in, NATSPort where they talk to it. 0 takes a free one.
	Port     int `json:"port"`
	NATSPort int `json:"natsPort"`
	// URLs are what PCs are told; without any they come to the machine where they enrolled.
	URLs []string `json:"urls,omitempty"`
	// MaxBytes bounds what the hub stores; beyond it the hub refuses, and senders keep
	// theirs.
	MaxBytes int64 `json:"maxBytes"`
	// Cluster is host:port where the other nodes come in; "" for a hub of one node. Peers
	// are those of the others.
	Cluster string   `json:"cluster,omitempty"`
	Peers   []string `json:"peers,omitempty"`
}

// Usual are the settings of a hub that nobody has set.
func Usual() Settings {
	return Settings{
		Version: settingsVersion, Team: "team", Node: "hub-1", Port: join.Port, NATSPort: join.NATSPort, MaxBytes: 16 << 30,
	}
}

// replicas is how many nodes keep each message.
func (s Settings) replicas() int {
	if s.Cluster == "" {
		return 1
	}
	return 3
}

// minBytes is what a hub needs for anything at all.
const minBytes = 64 << 20

// check refuses settings that no hub can run with.
func (s Settings) check() error {
	if s.Version != settingsVersion {
		return bridge.Errorf(bridge.Unsupported, "hub.json is of version %d: this hub knows %d", s.Version, settingsVersion)
	}
	if err := subject.CheckTeam(s.Team); err != nil {
		return err
	}
	if err := subject.CheckTeam(s.Node); err != nil {
		return bridge.Errorf(bridge.Invalid, "%q cannot be a node's name: small letters, digits and - only", s.Node)
	}
	for _, port := range []int{s.Port, s.NATSPort} {
		if port < 0 || port > 65535 {
			return bridge.Errorf(bridge.Invalid, "%d is no port", port)
		}
	}
	if s.MaxBytes < minBytes {
		return bridge.Errorf(bridge.Invalid, "a hub needs room for %s at least (maxBytes)", bridge.Size(minBytes))
	}
	if s.Cluster == "" && len(s.Peers) > 0 || s.Cluster != "" && len(s.Peers) != 2 {
		return bridge.Errorf(bridge.Invalid, "a hub has one node or three: name this node's own cluster address and those of two others")
	}
	return join.CheckURLs(s.URLs)
}

// Load reads what the hub is set to; fs.ErrNotExist where it never ran.
func (h Home) Load() (Settings, error) {
	var s Settings
	err := disk.ReadJSON(h.settings(), maxSettingsBytes, &s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if err != nil {
		return s, bridge.WithCause(bridge.Storage, err, "hub.json cannot be read and is left as it is: "+disk.Reason(err))
	}
	return s, s.check()
}

// save keeps what the hub is set to. The team of a hub that has PCs is never another.
func (h Home) save(s Settings) error {
	if err := s.check(); err != nil {
		return err
	}
	before, err := h.Load()
	switch {
	case err == nil && before.Team != s.Team:
		return bridge.Errorf(bridge.Conflict, "this home is the hub of %q: another team needs another home", before.Team)
	case err == nil && slices.Equal(jsonOf(before), jsonOf(s)):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := disk.MakeDir(h.dir); err != nil {
		return err
	}
	return disk.WriteJSON(h.settings(), s)
}

func jsonOf(s Settings) []byte {
	text, _ := json.Marshal(s) // it always can be
	return text
}

// keys are the hub's secrets.
type keys struct {
	identity link.Identity // what PCs pin
	admin    nkeys.KeyPair // of who administers the hub from this home
	adminKey string        // its public half
}

// openKeys reads the hub's keys, or makes them.
func (h Home) openKeys() (keys, error) {
	identity, err := link.OpenIdentity(h.network())
	if err != nil {
		return keys{}, err
	}
	seed, err := disk.ReadLimited(h.admin(), maxSeedBytes)
	if errors.Is(err, fs.ErrNotExist) {
		seed, err = h.makeAdmin()
	}
	if err != nil {
		return keys{}, bridge.WithCause(bridge.Storage, err, "the hub's own key, admin.nk, cannot be read or made: "+disk.Reason(err))
	}
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return keys{}, bridge.Errorf(bridge.Storage, "the hub's own key, admin.nk, is damaged: put it back from a copy, or move it away and start the hub again")
	}
	public, err := pair.PublicKey()
	return keys{identity: identity, admin: pair, adminKey: public}, err
}

func (h Home) makeAdmin() ([]byte, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err == nil {
		err = disk.WriteNew(h.admin(), seed, disk.PrivateFile)
	}
	return seed, err
}

// acquire makes this process the only one that runs the hub of this home.
func (h Home) acquire(ctx context.Context) (*sqlitex.Lock, error) {
	if err := disk.MakeDir(h.dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(h.dir, disk.PrivateDir); err != nil { // it may have been there before
		return nil, bridge.WithCause(bridge.Storage, err, "the home folder "+h.dir+" cannot be closed to others: "+disk.Reason(err))
	}
	lock, err := sqlitex.AcquireLock(ctx, h.lock())
	if errors.Is(err, sqlitex.ErrLocked) {
		return nil, bridge.Errorf(bridge.Conflict, "a hub runs in %s already", h.dir)
	}
	return lock, err
}

// Running is where the hub of a home is while it runs. What an earlier run left says
// where nobody is, or where somebody is who cannot prove the hub's identity.
type Running struct {
	PID       int      `json:"pid"`
	Addresses []string `json:"addresses"` // where PCs enrol
	NATS      string   `json:"nats"`      // where the hub itself is reached from this machine
}
