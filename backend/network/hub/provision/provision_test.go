package provision_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/network/hub/provision"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var clock = time.Now //nolint:forbidigo // of real connections

// ownServer is a NATS server that knows the owner's key.
type ownServer struct {
	t      *testing.T
	server *natsserver.Server
	store  string
	access externalnats.Access
	public string
	port   int
}

func start(t *testing.T) *ownServer {
	t.Helper()
	s := &ownServer{t: t, store: t.TempDir(), port: natsserver.RANDOM_PORT}
	pair, err := nkeys.CreateUser()
	var seed []byte
	if err == nil {
		seed, err = pair.Seed()
	}
	if err == nil {
		s.public, err = pair.PublicKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.access.Creds = string(seed)
	t.Cleanup(s.stop)
	s.resume()
	return s
}

func (s *ownServer) resume() {
	s.t.Helper()
	server, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: s.port, JetStream: true, StoreDir: s.store, SyncAlways: true, NoLog: true, NoSigs: true,
		MaxPayload: subject.MaxPayloadBytes, Nkeys: []*natsserver.NkeyUser{{Nkey: s.public}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = server
	server.Start()
	if !server.ReadyForConnections(testkit.Patience) {
		s.t.Fatal("the server does not come up")
	}
	s.port = server.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert,errcheck // it listens on tcp
}

func (s *ownServer) stop() { s.server.Shutdown(); s.server.WaitForShutdown() }

func (s *ownServer) settings() provision.Settings {
	return provision.Settings{Team: "crew", URLs: []string{s.server.ClientURL()}, Access: s.access, MaxBytes: 1 << 30, Replicas: 1}
}

func (s *ownServer) js(do func(context.Context, jetstream.JetStream)) {
	s.t.Helper()
	conn, err := externalnats.Connect([]string{s.server.ClientURL()}, s.access)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		s.t.Fatal(err)
	}
	do(s.t.Context(), js)
}

// shown is what the server shows of a PC, where the team's key has sealed it.
func (s *ownServer) shown(key, pc string) (member subject.Member, number int64) {
	s.t.Helper()
	s.js(func(ctx context.Context, js jetstream.JetStream) {
		bucket, err := js.KeyValue(ctx, subject.RosterBucket("crew"))
		if err != nil {
			s.t.Fatal(err)
		}
		entry, err := bucket.Get(ctx, pc)
		if err != nil {
			s.t.Fatal(err)
		}
		body, n, err := subject.Open(key, subject.BucketKey(subject.RosterBucket("crew"), pc), entry.Value())
		if err == nil {
			member, err = subject.ParseMember(body)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		number = n
	})
	return member, number
}

// hasInbox reports whether something is kept for a PC.
func (s *ownServer) hasInbox(pc string) (has bool) {
	s.t.Helper()
	s.js(func(ctx context.Context, js jetstream.JetStream) {
		_, err := js.Consumer(ctx, subject.MessageStream("crew"), subject.Consumer(pc))
		has = err == nil
	})
	return has
}

func idOf(digit string) string { return strings.Repeat(digit, 64) }

func TestHUB_01_TheOwnersRosterIsSealedAndShown(t *testing.T) {
	s := start(t)
	dir := filepath.Join(t.TempDir(), "roster")
	r, err := provision.Init(t.Context(), dir, s.settings(), clock)
	if err != nil {
		t.Fatal(err)
	}
	key := r.Key()
	laptop, err := r.Add(t.Context(), "laptop", idOf("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(t.Context(), "desk", idOf("2")); err != nil {
		t.Fatal(err)
	}
	// By its key it is the PC of that identity, to which others can seal, under another name, too.
	sealed, err := link.OpenIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, by string }{{"vault", seal.Text(sealed.Key())}, {"safe", sealed.ID}} {
		pc, err := r.Add(t.Context(), test.name, test.by)
		if shown, _ := s.shown(key, sealed.ID); err != nil || pc.ID != sealed.ID || shown != (subject.Member{Name: test.name, Box: seal.Text(sealed.Key())}) {
			t.Errorf("by %s it is %+v, %+v, %v", test.by, pc, shown, err)
		}
	}
	if _, err := r.Remove(t.Context(), "safe"); err != nil {
		t.Fatal(err)
	}
	if member, number := s.shown(key, idOf("1")); member != (subject.Member{Name: "laptop"}) || number != laptop.Number || !s.hasInbox(idOf("1")) {
		t.Errorf("the server shows %+v, %d", member, number)
	}
	for _, bad := range []struct{ name, id, words string }{
		{"laptop", idOf("3"), `another PC named "laptop" belongs to the team`}, {"nas", "3f", "is no PC's identity"}, {"a b", idOf("3"), "name"},
	} {
		if _, err := r.Add(t.Context(), bad.name, bad.id); err == nil || !strings.Contains(err.Error(), bad.words) {
			t.Errorf("%s %s is added: %v", bad.name, bad.id, err)
		}
	}
	if _, err := provision.Open(t.Context(), dir, clock); bridge.CodeOf(err) != bridge.Conflict {
		t.Errorf("two have it at once: %v", err)
	}
	r.Close()
	// The key stays here, and nobody else reads it.
	for _, name := range []string{"roster.json", "identity.pem"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v, %v", name, info, err)
		}
	}
	if r, err = provision.Open(t.Context(), dir, clock); err != nil || r.Key() != key || len(r.PCs()) != 2 {
		t.Fatalf("opened again it is %+v, %v", r, err)
	}
	defer r.Close()
	gone, err := r.Remove(t.Context(), "laptop")
	if err != nil || gone.ID != idOf("1") || gone.Number <= laptop.Number {
		t.Fatalf("removed %+v, %v", gone, err)
	}
	if member, number := s.shown(key, idOf("1")); !member.Removed || number != gone.Number || s.hasInbox(idOf("1")) {
		t.Errorf("the server shows %+v, %d of who was removed", member, number)
	}
	if _, err := r.Remove(t.Context(), "laptop"); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("removed twice: %v", err)
	}
}

func TestHUB_01_WhatDidNotReachTheServerIsPublishedLater(t *testing.T) {
	s := start(t)
	r, err := provision.Init(t.Context(), t.TempDir(), s.settings(), clock)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Add(t.Context(), "laptop", idOf("1")); err != nil {
		t.Fatal(err)
	}
	s.stop()
	desk, err := r.Add(t.Context(), "desk", idOf("2"))
	if err == nil || !strings.Contains(err.Error(), "it is recorded here, but the team may not know it yet (no NATS server answers at nats://127.0.0.1:") {
		t.Errorf("while the server is away: %v", err)
	}
	s.store = t.TempDir() // it comes back with nothing
	s.resume()
	if err := r.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if member, number := s.shown(r.Key(), idOf("2")); member.Name != "desk" || number != desk.Number || !s.hasInbox(idOf("1")) || !s.hasInbox(idOf("2")) {
		t.Errorf("the server shows %+v, %d", member, number)
	}
}

func TestHUB_01_ARosterIsOfOneTeam(t *testing.T) {
	s := start(t)
	dir := t.TempDir()
	if _, err := provision.Open(t.Context(), dir, clock); bridge.CodeOf(err) != bridge.NotFound {
		t.Errorf("there is none, and it opens: %v", err)
	}
	set := s.settings()
	set.URLs = []string{"nats://127.0.0.1:1"}
	if _, err := provision.Init(t.Context(), dir, set, clock); bridge.CodeOf(err) != bridge.Unavailable {
		t.Errorf("without a server: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "roster.json")); err == nil {
		t.Error("what could not be made is recorded")
	}
	r, err := provision.Init(t.Context(), dir, s.settings(), clock)
	if err != nil {
		t.Fatal(err)
	}
	key := r.Key()
	r.Close()
	if r, err = provision.Init(t.Context(), dir, s.settings(), clock); err != nil || r.Key() != key {
		t.Fatalf("again: %v", err)
	}
	r.Close()
	for words, change := range map[string]func(*provision.Settings){
		"has the roster of the team crew": func(set *provision.Settings) { set.Team = "other" }, "a team's name": func(set *provision.Settings) { set.Team = "A" },
		"--max-bytes": func(set *provision.Settings) { set.MaxBytes = 1 }, "--replicas": func(set *provision.Settings) { set.Replicas = 0 },
		"is not encrypted": func(set *provision.Settings) { set.URLs = []string{"nats://10.0.0.1:4222"} },
	} {
		set := s.settings()
		change(&set)
		if _, err := provision.Init(t.Context(), dir, set, clock); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

func TestHUB_01_SettingsAtTheirBounds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end() // what is not refused fails before it reaches a server
	for name, tt := range map[string]struct {
		change  func(*provision.Settings)
		refused bool
	}{
		"the least room":  {func(set *provision.Settings) { set.MaxBytes = 64 << 20 }, false},
		"a byte less":     {func(set *provision.Settings) { set.MaxBytes = 64<<20 - 1 }, true},
		"five nodes":      {func(set *provision.Settings) { set.Replicas = 5 }, false},
		"six nodes":       {func(set *provision.Settings) { set.Replicas = 6 }, true},
		"fewer than none": {func(set *provision.Settings) { set.Replicas = -1 }, true},
	} {
		set := provision.Settings{Team: "crew", URLs: []string{"nats://127.0.0.1:1"}, MaxBytes: 1 << 30, Replicas: 1}
		if pair, err := nkeys.CreateUser(); err != nil {
			t.Fatal(err)
		} else if seed, err := pair.Seed(); err != nil {
			t.Fatal(err)
		} else {
			set.Access.Creds = string(seed)
		}
		tt.change(&set)
		_, err := provision.Init(ended, t.TempDir(), set, clock)
		if err == nil || (bridge.CodeOf(err) == bridge.Invalid) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHUB_01_ARosterThatCannotBeReadIsLeftAsItIs(t *testing.T) {
	for text, code := range map[string]bridge.Code{`{"version":99}`: bridge.Unsupported, `{"version":0}`: bridge.Unsupported, `{`: bridge.Storage} {
		dir := t.TempDir()
		file := filepath.Join(dir, "roster.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := provision.Open(t.Context(), dir, clock); bridge.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", text, err, code)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != text {
			t.Errorf("%s: it is %s, %v", text, after, err)
		}
	}
}

// TestHUB_07_WhatSeveralNodesKeepIsOnTheirDisks: presence, too, and a bucket of an earlier
// hub gives way to it.
func TestHUB_07_WhatSeveralNodesKeepIsOnTheirDisks(t *testing.T) {
	for replicas, want := range map[int]jetstream.StorageType{1: jetstream.MemoryStorage, 3: jetstream.FileStorage} {
		for _, bucket := range (provision.Engine{Team: "crew", Replicas: replicas}).Buckets() {
			if bucket.TTL > 0 && bucket.Storage != want || bucket.TTL == 0 && bucket.Storage != jetstream.FileStorage {
				t.Errorf("of %d nodes each has %s in its %s", replicas, bucket.Bucket, bucket.Storage)
			}
		}
	}
	s := start(t)
	login, err := s.access.Options()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(s.server.ClientURL(), login...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	engine := provision.Engine{JS: js, Team: "crew", MaxBytes: 1 << 30, Replicas: 1}
	before := engine.Buckets()[1]
	before.Storage = jetstream.FileStorage // in place of memory where there are three
	if _, err := js.CreateKeyValue(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := engine.Make(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(t.Context(), subject.BucketStream(before.Bucket))
		if err != nil || stream.CachedInfo().Config.Storage != jetstream.MemoryStorage {
			t.Errorf("presence is in %v, %v", stream.CachedInfo().Config.Storage, err)
		}
	}
}
