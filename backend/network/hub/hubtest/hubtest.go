// Package hubtest runs a team's NATS within a test, with the permissions that a real one
// has, for tests of what its PCs do.
package hubtest

import (
	"encoding/base64"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/testing/testkit"
)

// Team is the name of every team here.
const Team = "crew"

// Room is how many messages of one PC may wait here for another.
const Room = 200

// AckWait is how long the engine waits for an acknowledgement: longer than any test.
const AckWait = time.Hour

// NATS is the team's server, and the hub's part in it.
type NATS struct {
	ID string // of the hub, which signs the roster

	t        *testing.T
	change   []func(*natsserver.Options)
	identity link.Identity
	store    string
	port     int
	admin    *nats.Conn
	number   int64

	mu     sync.Mutex
	server *natsserver.Server
	keys   map[string]string // identity by public key
	deaf   map[string]bool   // by identity
}

// PC is one of the team: its identity, and how it logs in.
type PC struct {
	link.Identity
	Name    string
	Login   []nats.Option
	Seed    string // of Login
	Numbers string // a file that is not there yet
}

const patience = testkit.Patience

// Start runs a server until the end of the test; change may set it up otherwise.
func Start(t *testing.T, change ...func(*natsserver.Options)) *NATS {
	t.Helper()
	n := &NATS{t: t, change: change, store: t.TempDir(), port: natsserver.RANDOM_PORT, keys: map[string]string{}, deaf: map[string]bool{}}
	var err error
	if n.identity, err = link.OpenIdentity(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	n.ID = n.identity.ID
	t.Cleanup(n.Stop)
	n.Resume()
	n.make()
	return n
}

// URL is where it listens.
func (n *NATS) URL() string { return "nats://127.0.0.1:" + strconv.Itoa(n.port) }

// Stop ends the server; what it has stored stays.
func (n *NATS) Stop() {
	n.mu.Lock()
	server := n.server
	n.server = nil
	n.mu.Unlock()
	if server == nil {
		return
	}
	n.admin.Close()
	server.Shutdown()
	server.WaitForShutdown()
}

// Resume starts it again where it was.
func (n *NATS) Resume() {
	n.t.Helper()
	opts := &natsserver.Options{
		ServerName: "hub-1", Host: "127.0.0.1", Port: n.port, JetStream: true, StoreDir: n.store, SyncAlways: true, NoLog: true, NoSigs: true,
		MaxPayload: subject.MaxPayloadBytes, CustomClientAuthentication: n, AlwaysEnableNonce: true,
	}
	for _, change := range n.change {
		change(opts)
	}
	server, err := natsserver.NewServer(opts)
	if err != nil {
		n.t.Fatal(err)
	}
	n.mu.Lock()
	n.server = server
	n.mu.Unlock()
	server.Start()
	if !server.ReadyForConnections(patience) {
		n.t.Fatal("the server does not come up")
	}
	n.port = server.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert,errcheck // it listens on tcp
	if n.admin, err = nats.Connect("", nats.InProcessServer(server)); err != nil {
		n.t.Fatal(err)
	}
}

// Check says who a connection is, as the engine asks.
func (n *NATS) Check(c natsserver.ClientAuthentication) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	opts := c.GetOpts()
	if opts.Nkey == "" {
		c.RegisterUser(&natsserver.User{Username: "hub"})
		return true
	}
	id, known := n.keys[opts.Nkey]
	signature, err := base64.RawURLEncoding.DecodeString(opts.Sig)
	public, keyErr := nkeys.FromPublicKey(opts.Nkey)
	if !known || err != nil || keyErr != nil || public.Verify(c.GetNonce(), signature) != nil {
		return false
	}
	allowed := subject.ByHub(Team, id)
	if n.deaf[id] {
		allowed.Subscribe = slices.DeleteFunc(allowed.Subscribe, func(at string) bool { return at == subject.BucketKey(subject.RosterBucket(Team), "*") })
	}
	c.RegisterUser(&natsserver.User{Username: id, Permissions: &natsserver.Permissions{
		Publish: &natsserver.SubjectPermission{Allow: allowed.Publish}, Subscribe: &natsserver.SubjectPermission{Allow: allowed.Subscribe},
	}})
	return true
}

// make makes what a team's engine keeps.
func (n *NATS) make() {
	n.t.Helper()
	js, err := jetstream.New(n.admin)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, config := range []jetstream.StreamConfig{
		decisions(),
		{
			Name: subject.MessageStream(Team), Subjects: []string{subject.MessageSubjects(Team)}, Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: Room,
		},
	} {
		if _, err := js.CreateStream(n.t.Context(), config); err != nil {
			n.t.Fatal(err)
		}
	}
	for _, config := range []jetstream.KeyValueConfig{
		{Bucket: subject.PresenceBucket(Team), TTL: subject.LongestPresence},
		{Bucket: subject.RosterBucket(Team)},
	} {
		if _, err := js.CreateKeyValue(n.t.Context(), config); err != nil {
			n.t.Fatal(err)
		}
	}
}

// Store is the folder in which the server keeps what it stores; to be copied or put back
// while it is stopped.
func (n *NATS) Store() string { return n.store }

// WipeDecisions has another stream of decisions take the place of the team's.
func (n *NATS) WipeDecisions() {
	n.t.Helper()
	n.DropDecisions()
	js, err := jetstream.New(n.admin)
	if err == nil {
		_, err = js.CreateStream(n.t.Context(), decisions())
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// DropDecisions takes the team's stream of decisions away, where there is one.
func (n *NATS) DropDecisions() {
	n.t.Helper()
	js, err := jetstream.New(n.admin)
	if err == nil {
		err = js.DeleteStream(n.t.Context(), subject.DecisionStream(Team))
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		n.t.Fatal(err)
	}
}

func decisions() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: subject.DecisionStream(Team), Subjects: []string{subject.DecisionSubjects(Team)},
		MaxMsgSize: subject.MaxDecisionBytes, AllowDirect: true, DenyDelete: true, DenyPurge: true,
	}
}

// Enrol adds a new PC to the team.
func (n *NATS) Enrol(name string) PC {
	n.t.Helper()
	identity, err := link.OpenIdentity(n.t.TempDir())
	if err != nil {
		n.t.Fatal(err)
	}
	return n.Admit(identity, name)
}

// Fill has the server take nothing that is to be stored on the disk, as a hub does whose
// disk is full, or take it again. Who is there is in memory from then on, as a hub has it.
func (n *NATS) Fill(full bool) {
	n.t.Helper()
	js, err := jetstream.New(n.admin)
	if err == nil {
		err = js.DeleteKeyValue(n.t.Context(), subject.PresenceBucket(Team))
	}
	if err == nil {
		_, err = js.CreateKeyValue(n.t.Context(), jetstream.KeyValueConfig{Bucket: subject.PresenceBucket(Team), TTL: subject.LongestPresence, Storage: jetstream.MemoryStorage})
	}
	if err != nil {
		n.t.Fatal(err)
	}
	limits := natsserver.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
	if full {
		limits.MaxStore = 0
	}
	n.mu.Lock()
	account := n.server.GlobalAccount()
	n.mu.Unlock()
	if err := account.UpdateJetStreamLimits(map[string]natsserver.JetStreamAccountLimits{"": limits}); err != nil {
		n.t.Fatal(err)
	}
}

// Deafen keeps a PC from hearing what is said of the roster: it can read it only.
func (n *NATS) Deafen(pc PC) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deaf[pc.ID] = true
}

// Admit makes the PC of that identity one of the team.
func (n *NATS) Admit(identity link.Identity, name string) PC {
	n.t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		n.t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		n.t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		n.t.Fatal(err)
	}
	n.mu.Lock()
	n.keys[public] = identity.ID
	n.mu.Unlock()
	js, err := jetstream.New(n.admin)
	if err == nil {
		_, err = js.CreateOrUpdateConsumer(n.t.Context(), subject.MessageStream(Team), jetstream.ConsumerConfig{
			Durable: subject.Consumer(identity.ID), FilterSubject: subject.Inbox(Team, identity.ID), AckPolicy: jetstream.AckExplicitPolicy, AckWait: AckWait, MaxDeliver: -1, MaxAckPending: 1,
		})
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.Note(identity.ID, subject.Member{Name: name})
	return PC{Identity: identity, Name: name, Login: []nats.Option{nats.Nkey(public, pair.Sign)}, Seed: string(seed), Numbers: filepath.Join(n.t.TempDir(), "said.json")}
}

// Remove ends its membership, and its connections.
func (n *NATS) Remove(pc PC) {
	n.t.Helper()
	n.mu.Lock()
	for key, id := range n.keys {
		if id == pc.ID {
			delete(n.keys, key)
		}
	}
	n.mu.Unlock()
	n.Note(pc.ID, subject.Member{Name: pc.Name, Removed: true})
}

// Note writes the roster's entry of a PC, signed by the hub.
func (n *NATS) Note(id string, entry subject.Member) {
	n.t.Helper()
	data, err := entry.Encode()
	if err != nil {
		n.t.Fatal(err)
	}
	n.number = max(n.number+1, time.Now().UnixNano()) //nolint:forbidigo // of real connections
	n.Seal(n.identity, id, n.number, data)
}

// Seal writes the roster's entry of a PC, sealed by identity, past all permissions.
func (n *NATS) Seal(identity link.Identity, id string, number int64, body []byte) {
	n.t.Helper()
	at := subject.BucketKey(subject.RosterBucket(Team), id)
	data, err := subject.Seal(identity.Sign, at, number, body)
	if err == nil {
		_, err = n.admin.Request(at, data, patience)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// Admin is a connection that may do anything.
func (n *NATS) Admin() *nats.Conn { return n.admin }

// Signed is a message with the proof of that identity.
func Signed(identity link.Identity, at string, number int64, body []byte) *nats.Msg {
	proof := subject.Proof{Number: number}
	proof.Key, proof.Signature = identity.Sign(subject.Signed(at, number, body))
	msg := &nats.Msg{Subject: at, Data: body, Header: nats.Header{}}
	for name, value := range proof.Headers() {
		msg.Header.Set(name, value)
	}
	return msg
}
