// Package server is a team's hub (rows HUB): NATS JetStream in this process, with sync
// before each acknowledgement, one account for the team and one key per PC. It admits PCs
// by a code, allows each to publish under its own id only, and disconnects removed ones
// at once. It does not interpret what passes through it.
//
// The members of the team are in a bucket of the engine itself. So every node of a
// three-node hub has them, and an enrolment is as durable as a message.
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

// Home is the folder of one node of a hub. All of it is private.
type Home struct{ dir string }

// At returns the home in that folder; "" means ~/.bridge-hub. It creates nothing. It fails with
// Invalid if the folder cannot be used, or if "" is given and the user has no home folder.
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

// Dir returns the folder itself.
func (h Home) Dir() string { return h.dir }

func (h Home) settings() string { return filepath.Join(h.dir, "hub.json") }
func (h Home) admin() string    { return filepath.Join(h.dir, "admin.nk") }
func (h Home) network() string  { return filepath.Join(h.dir, "network") }
func (h Home) lock() string     { return filepath.Join(h.dir, "hub.lock") }
func (h Home) running() string  { return filepath.Join(h.dir, "running.json") }
func (h Home) store() string    { return filepath.Join(h.dir, "store") }

// Logs returns the folder of the hub's logs.
func (h Home) Logs() string { return filepath.Join(h.dir, "logs") }

// Log returns the newest log file.
func (h Home) Log() string { return filepath.Join(h.Logs(), "hub.log") }

const (
	settingsVersion  = 1
	maxSettingsBytes = 1 << 20
	maxSeedBytes     = 200
)

// Settings are the settings of a hub, hub.json.
type Settings struct {
	Version int    `json:"version"`
	Team    string `json:"team"`
	// Node is this node's name; each node of a hub has its own.
	Node string `json:"node"`
	// Listen is the address of both ports; "" means all addresses of the machine.
	Listen string `json:"listen"`
	// Port is where PCs enrol, NATSPort where they connect to NATS. 0 takes a free one.
	Port     int `json:"port"`
	NATSPort int `json:"natsPort"`
	// URLs are given to PCs; without any, PCs use the machine where they enrolled.
	URLs []string `json:"urls,omitempty"`
	// MaxBytes limits what the hub stores. Beyond it the hub refuses messages, and
	// senders keep them.
	MaxBytes int64 `json:"maxBytes"`
	// Cluster is host:port where the other nodes connect; "" for a hub of one node. Peers
	// are those addresses of the others.
	Cluster string   `json:"cluster,omitempty"`
	Peers   []string `json:"peers,omitempty"`
}

// Usual returns the default settings of a hub.
func Usual() Settings {
	return Settings{
		Version: settingsVersion, Team: "team", Node: "hub-1", Port: join.Port, NATSPort: join.NATSPort, MaxBytes: 16 << 30,
	}
}

// replicas returns how many nodes keep each message.
func (s Settings) replicas() int {
	if s.Cluster == "" {
		return 1
	}
	return 3
}

// minBytes is the minimum storage of a hub.
const minBytes = 64 << 20

// check fails for settings that no hub can run with.
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

// Load reads the hub's settings. It fails with fs.ErrNotExist if it never ran.
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

// save stores the hub's settings. It fails with Conflict for another team.
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
	text, _ := json.Marshal(s) // it can always be encoded
	return text
}

// keys are the hub's secrets.
type keys struct {
	identity link.Identity // pinned by PCs
	admin    nkeys.KeyPair // of the administrator in this home
	adminKey string        // its public half
}

// openKeys reads the hub's keys, or creates them.
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

// acquire locks the home for this process. It fails with Conflict if a hub runs in it.
func (h Home) acquire(ctx context.Context) (*sqlitex.Lock, error) {
	if err := disk.MakeDir(h.dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(h.dir, disk.PrivateDir); err != nil { // it may have existed before
		return nil, bridge.WithCause(bridge.Storage, err, "the home folder "+h.dir+" cannot be closed to others: "+disk.Reason(err))
	}
	lock, err := sqlitex.AcquireLock(ctx, h.lock())
	if errors.Is(err, sqlitex.ErrLocked) {
		return nil, bridge.Errorf(bridge.Conflict, "a hub runs in %s already", h.dir)
	}
	return lock, err
}

// Running states where the running hub of a home is. Data of an earlier run may point to
// nothing, or to a process that cannot prove the hub's identity.
type Running struct {
	PID       int      `json:"pid"`
	Addresses []string `json:"addresses"` // where PCs enrol
	NATS      string   `json:"nats"`      // the hub's address on this machine
}
