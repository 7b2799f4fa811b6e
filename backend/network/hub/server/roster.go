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

// The hub keeps the members of the team in a separate account. Nothing of a PC can get
// there, not even as the answer to a request (see package subject). The hub signs what it
// announces of them. No team can have the name of that account.
const (
	registryAccount = "HUB"
	registryLogin   = "registry"
	registryBucket  = "members"
)

// PC is a member of the team, as the registry stores it.
type PC struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Key        string            `json:"key"` // its public key for NATS
	EnrolledAt bridge.UnixMillis `json:"enrolledAt"`
	Box        string            `json:"box,omitempty"` // as in subject.Member
}

// Former is a PC that was removed from the team.
type Former struct {
	ID        string `json:"id"`
	RemovedAt int64  `json:"removedAt"` // milliseconds since 1970
}

// member returns the PC's roster entry.
func (pc PC) member() subject.Member { return subject.Member{Name: pc.Name, Box: pc.Box} }

const (
	// MaxPCs limits the PCs of a team.
	MaxPCs = 2000
	// maxConnections limits the connections of one PC: one, and those left over after it
	// lost the network.
	maxConnections = 4
	// knownWithin is how long a login waits for the registry to be read: less than the
	// engine's login timeout.
	knownWithin = 4 * time.Second
)

// roster tracks the members of the team and their connections. The engine queries it for
// every connection.
type roster struct {
	team     string
	adminKey string
	log      *slog.Logger
	engine   func() *natsserver.Server
	known    chan struct{} // closed when the registry has been read

	mu     sync.Mutex
	pcs    map[string]PC     // by id
	byKey  map[string]string // id by public key
	online map[uint64]string // id by connection; the connection may have ended
	banned map[string]banned // by id
	came   map[string]bool   // ids that connected since the last call of arrived
	// former holds the last removed PC for each name.
	former map[string]Former

	// names holds the PC of each connection, as logged. The engine logs while it holds
	// locks that mu must not wait for.
	names sync.Map
}

func newRoster(team, adminKey string, log *slog.Logger, engine func() *natsserver.Server) *roster {
	return &roster{
		team: team, adminKey: adminKey, log: log, engine: engine,
		known: make(chan struct{}), pcs: map[string]PC{}, byKey: map[string]string{}, online: map[uint64]string{}, banned: map[string]banned{}, came: map[string]bool{}, former: map[string]Former{},
	}
}

// Check reports whether a connection is allowed, and registers its user (HUB-02). The
// engine calls it before it processes anything else.
func (r *roster) Check(c natsserver.ClientAuthentication) bool {
	opts := c.GetOpts()
	if c.Kind() != natsserver.CLIENT || !signedBy(opts.Nkey, opts.Sig, c.GetNonce()) {
		r.log.Warn("a connection without a key of the team was refused", "from", addressOf(c))
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

// signedBy reports whether the holder of the key has signed the server's nonce for this
// connection.
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

// admit registers a connection of a PC, so that a later removal of the PC finds it.
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
		return pc, bridge.Errorf(bridge.Busy, "it has %s already, which is the most", bridge.Counted(len(own), "connection"))
	}
	r.online[connection], r.came[pc.ID] = pc.ID, true
	r.names.Store(connection, [2]string{pc.ID, pc.Name + " (" + link.Fingerprint(pc.ID) + ")"})
	return pc, nil
}

// connectionsLocked returns the open connections of one PC.
func (r *roster) connectionsLocked(id string) []uint64 {
	var own []uint64
	for connection, pc := range r.online {
		if r.engine().GetClient(connection) == nil {
			delete(r.online, connection)
			r.names.Delete(connection)
		} else if pc == id {
			own = append(own, connection)
		}
	}
	return own
}

// named returns the PC of a connection and its name in the log; "" for none.
func (r *roster) named(connection uint64) (id, name string) {
	stored, _ := r.names.Load(connection)
	pc, _ := stored.([2]string)
	return pc[0], pc[1]
}

// put applies a PC's entry of the registry.
func (r *roster) put(pc PC) {
	r.mu.Lock()
	var stale []uint64
	if before, known := r.pcs[pc.ID]; known && before.Key != pc.Key {
		delete(r.byKey, before.Key) // it joined again: the earlier key is invalid
		stale = r.connectionsLocked(pc.ID)
	}
	r.pcs[pc.ID], r.byKey[pc.Key] = pc, pc.ID
	r.mu.Unlock()
	r.disconnect(stale)
}

// drop ends a PC's membership and its connections.
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
	r.disconnect(stale)
}

// disconnect ends connections. The caller must hold no lock, because the engine logs meanwhile.
func (r *roster) disconnect(connections []uint64) {
	for _, connection := range connections {
		_ = r.engine().DisconnectClientByID(connection) // it may have ended already
	}
}

// disconnectAll ends the connections of all PCs to this node.
func (r *roster) disconnectAll() {
	r.mu.Lock()
	var all []uint64
	for connection := range r.online {
		all = append(all, connection)
	}
	r.mu.Unlock()
	r.disconnect(all)
}

// wasRemoved records a PC that the roster marks as removed. number is the time of that
// announcement, in nanoseconds.
func (r *roster) wasRemoved(id, name string, number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := time.Unix(0, number).UnixMilli(); at >= r.former[name].RemovedAt {
		r.former[name] = Former{ID: id, RemovedAt: at}
	}
}

// before returns the removed PC that had the name of a PC before; nil if there is none,
// or if it is that PC itself, which joined again.
func (r *roster) before(pc PC) *Former {
	r.mu.Lock()
	defer r.mu.Unlock()
	if former, known := r.former[pc.Name]; known && former.ID != pc.ID {
		return &former
	}
	return nil
}

// list returns all PCs of the team, sorted by name.
func (r *roster) list() []PC {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.pcs), func(a, z PC) int { return strings.Compare(a.Name, z.Name) })
}

// up returns the PCs that are connected to this node.
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

// arrived returns the PCs that connected to this node since its last call, even if they
// have disconnected.
func (r *roster) arrived() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	came := r.came
	r.came = map[string]bool{}
	return came
}

// find returns the PC with that name or id.
func (r *roster) find(text string) (PC, error) {
	return subject.FindPC(r.list(), text, func(pc PC) (name, id string) { return pc.Name, pc.ID })
}

// judge fails with Conflict or TooLarge for a PC that cannot join.
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
	if _, exists := r.pcs[asks.ID]; !exists && len(r.pcs) >= MaxPCs {
		return bridge.Errorf(bridge.TooLarge, "the team has %d PCs already, which is the most", MaxPCs)
	}
	return nil
}
