package server

import (
	"encoding/base64"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/join"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
)

// The hub keeps who belongs to the team in an account of its own, where nothing of a PC's
// can come, not even as the answer to a question (see package subject). What it says of
// that to the team, it signs. No team can be called like that account.
const (
	registryAccount = "HUB"
	registryLogin   = "registry"
	registryBucket  = "members"
)

// PC is one that belongs to the team, as the registry keeps it.
type PC struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Key        string            `json:"key"` // its public key for NATS
	EnrolledAt bridge.UnixMillis `json:"enrolledAt"`
	Box        string            `json:"box,omitempty"` // as subject.Member has it
}

// Former is a PC that belongs to the team no more.
type Former struct {
	ID        string `json:"id"`
	RemovedAt int64  `json:"removedAt"` // milliseconds since 1970
}

// member is what the team is told of it.
func (pc PC) member() subject.Member { return subject.Member{Name: pc.Name, Box: pc.Box} }

const (
	// MaxPCs bounds a team.
	MaxPCs = 2000
	// maxConnections is how many one PC may have: one, and what it left behind when it
	// lost the network.
	maxConnections = 4
	// knownWithin is how long somebody waits who comes before the registry was read: less
	// than the engine gives a login.
	knownWithin = 4 * time.Second
)

// roster is who belongs to the team and who of them is connected. The engine asks it
// about every connection.
type roster struct {
	team     string
	adminKey string
	log      *slog.Logger
	engine   func() *natsserver.Server
	known    chan struct{} // closed when the registry was read

	mu     sync.Mutex
	pcs    map[string]PC     // by identity
	byKey  map[string]string // identity by public key
	online map[uint64]string // identity by connection; it may have ended
	banned map[string]banned // by identity
	came   map[string]bool   // identities that connected since arrived was asked
	// former are the last that were removed, by name.
	former map[string]Former

	// names are the PCs of connections, as the log calls them. The engine logs while it holds locks
	// of its own, which mu must not wait for.
	names sync.Map
}

func newRoster(team, adminKey string, log *slog.Logger, engine func() *natsserver.Server) *roster {
	return &roster{
		team: team, adminKey: adminKey, log: log, engine: engine,
		known: make(chan struct{}), pcs: map[string]PC{}, byKey: map[string]string{}, online: map[uint64]string{}, banned: map[string]banned{}, came: map[string]bool{}, former: map[string]Former{},
	}
}

// Check says whether a connection may be, and as whom (HUB-02). It is the engine's
// question before anything else is heard.
func (r *roster) Check(c natsserver.ClientAuthentication) bool {
	opts := c.GetOpts()
	if c.Kind() != natsserver.CLIENT || !signedBy(opts.Nkey, opts.Sig, c.GetNonce()) {
		r.log.Warn("somebody without a key of the team was refused", "from", addressOf(c))
		return false
	}
	name := r.team
	if opts.Nkey == r.adminKey && opts.Name == registryLogin {
		name = registryAccount
	}
	account, err := r.engine().LookupAccount(name)
	if err != nil {
		r.log.Error("an account is not there", "account", name, "err", err)
		return false
	}
	if opts.Nkey == r.adminKey {
		c.RegisterUser(&natsserver.User{Username: "hub", Account: account})
		return true
	}
	select {
	case <-r.known:
	case <-time.After(knownWithin):
	}
	pc, err := r.admit(opts.Nkey, c.GetID())
	if err != nil {
		r.log.Warn("a PC was refused", "err", err, "pc", pc.Name, "from", addressOf(c))
		return false
	}
	allowed := subject.ByHub(r.team, pc.ID)
	c.RegisterUser(&natsserver.User{
		Username: pc.Name, Account: account,
		Permissions: &natsserver.Permissions{
			Publish:   &natsserver.SubjectPermission{Allow: allowed.Publish},
			Subscribe: &natsserver.SubjectPermission{Allow: allowed.Subscribe},
		},
	})
	return true
}

func addressOf(c natsserver.ClientAuthentication) string {
	if at := c.RemoteAddress(); at != nil {
		return at.String()
	}
	return "this process"
}

// signedBy reports whether the holder of the key has signed what the server asked for on
// this very connection.
func signedBy(key, signature string, nonce []byte) bool {
	if len(nonce) == 0 || !nkeys.IsValidPublicUserKey(key) {
		return false
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		if sig, err = base64.StdEncoding.DecodeString(signature); err != nil {
			return false
		}
	}
	public, err := nkeys.FromPublicKey(key)
	return err == nil && public.Verify(nonce, sig) == nil
}

// admit takes a connection of a PC in. Whoever removes the PC afterwards finds it.
func (r *roster) admit(key string, connection uint64) (PC, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pc, known := r.pcs[r.byKey[key]]
	if !known {
		return PC{}, bridge.Errorf(bridge.Unauthorized, "its key belongs to no PC of the team: it never joined, or was removed")
	}
	if err := r.banned[pc.ID].err(); err != nil {
		return pc, err
	}
	if own := r.connectionsLocked(pc.ID); len(own) >= maxConnections {
		return pc, bridge.Errorf(bridge.Busy, "it has %d connections already, which is the most", len(own))
	}
	r.online[connection], r.came[pc.ID] = pc.ID, true
	r.names.Store(connection, [2]string{pc.ID, pc.Name + " (" + link.Fingerprint(pc.ID) + ")"})
	return pc, nil
}

// connectionsLocked are those of one PC that have not ended.
func (r *roster) connectionsLocked(id string) []uint64 {
	var own []uint64
	for connection, of := range r.online {
		if r.engine().GetClient(connection) == nil {
			delete(r.online, connection)
			r.names.Delete(connection)
		} else if of == id {
			own = append(own, connection)
		}
	}
	return own
}

// named is the PC that a connection belongs to, and what the log calls it; "" for none.
func (r *roster) named(connection uint64) (id, name string) {
	stored, _ := r.names.Load(connection)
	pc, _ := stored.([2]string)
	return pc[0], pc[1]
}

// put takes in what the bucket says of a PC.
func (r *roster) put(pc PC) {
	r.mu.Lock()
	var stale []uint64
	if before, known := r.pcs[pc.ID]; known && before.Key != pc.Key {
		delete(r.byKey, before.Key) // it joined again: the earlier key opens nothing
		stale = r.connectionsLocked(pc.ID)
	}
	r.pcs[pc.ID], r.byKey[pc.Key] = pc, pc.ID
	r.mu.Unlock()
	r.kick(stale)
}

// drop ends a PC's membership, its connections with it.
func (r *roster) drop(id string) {
	r.mu.Lock()
	pc, known := r.pcs[id]
	stale := r.connectionsLocked(id)
	delete(r.byKey, pc.Key)
	delete(r.pcs, id)
	r.mu.Unlock()
	if known {
		r.log.Info("a PC was removed", "pc", pc.Name, "id", id)
	}
	r.kick(stale)
}

// kick ends connections. It holds no lock: the engine logs as it does it.
func (r *roster) kick(connections []uint64) {
	for _, connection := range connections {
		_ = r.engine().DisconnectClientByID(connection) // it may have ended by itself
	}
}

// kickAll ends the connections of all PCs to this node.
func (r *roster) kickAll() {
	r.mu.Lock()
	var all []uint64
	for connection := range r.online {
		all = append(all, connection)
	}
	r.mu.Unlock()
	r.kick(all)
}

// wasRemoved notes whom the roster says to be in the team no more, with the number of
// that word: the time of it, in nanoseconds.
func (r *roster) wasRemoved(id, name string, number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := time.Unix(0, number).UnixMilli(); at >= r.former[name].RemovedAt {
		r.former[name] = Former{ID: id, RemovedAt: at}
	}
}

// before is who had the name of a PC before it and was removed; nil for nobody, and for
// that PC itself, which joined again.
func (r *roster) before(pc PC) *Former {
	r.mu.Lock()
	defer r.mu.Unlock()
	if former, known := r.former[pc.Name]; known && former.ID != pc.ID {
		return &former
	}
	return nil
}

// list is everybody of the team, by name.
func (r *roster) list() []PC {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.pcs), func(a, z PC) int { return strings.Compare(a.Name, z.Name) })
}

// up are the PCs that are connected to this node.
func (r *roster) up() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	up := map[string]bool{}
	for connection, id := range r.online {
		if r.engine().GetClient(connection) != nil {
			up[id] = true
		}
	}
	return up
}

// arrived are the PCs that connected to this node since this was asked last, also those
// that have gone again.
func (r *roster) arrived() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	came := r.came
	r.came = map[string]bool{}
	return came
}

// find is the PC that people mean.
func (r *roster) find(text string) (PC, error) {
	return subject.FindPC(r.list(), text, func(pc PC) (name, id string) { return pc.Name, pc.ID })
}

// judge refuses a PC that cannot be taken in.
func (r *roster) judge(asks join.PC) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.pcs {
		if other.Name == asks.Name && other.ID != asks.ID {
			return bridge.Errorf(bridge.Conflict, "another PC named %q belongs to the team: give this one another network.name, or remove the other", asks.Name)
		}
		if other.Key == asks.Key && other.ID != asks.ID {
			return bridge.Errorf(bridge.Conflict, "that key belongs to another PC of the team")
		}
	}
	if _, again := r.pcs[asks.ID]; !again && len(r.pcs) >= MaxPCs {
		return bridge.Errorf(bridge.TooLarge, "the team has %d PCs already, which is the most", MaxPCs)
	}
	return nil
}
