package externalnats_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/network/hub/provision"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var clock = time.Now //nolint:forbidigo // of real connections

func identity(t *testing.T) link.Identity {
	t.Helper()
	identity, err := link.OpenIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// userKey is a user's credentials, a seed, and the key that the server is told.
func userKey(t *testing.T) (creds, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err == nil {
		public, err = pair.PublicKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(seed) + "\n", public
}

// permissions are what an administrator sets for a user.
func permissions(p subject.Permissions) string {
	return fmt.Sprintf("permissions: { publish: { allow: [\"%s\"] }, subscribe: { allow: [\"%s\"] } }", strings.Join(p.Publish, `","`), strings.Join(p.Subscribe, `","`))
}

// run runs a server with that configuration until the end of the test.
func run(t *testing.T, config string) (url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := natsserver.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, config)
	}
	opts.NoLog, opts.NoSigs = true, true
	server, err := natsserver.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
	server.Start()
	if !server.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server does not come up")
	}
	return server.ClientURL()
}

func jetStream(t *testing.T) string {
	return fmt.Sprintf("jetstream { store_dir: %q, sync_interval: always }\n", t.TempDir())
}

// team is one on a server of its own, with the owner's roster, and a PC that may join.
type team struct {
	*provision.Roster
	t     *testing.T
	place externalnats.Place
	owner externalnats.Access
}

const listen = "host: 127.0.0.1, port: -1, max_payload: 1064960\n"

// newTeam has a server where the PC has those of its permissions that change leaves it.
func newTeam(t *testing.T, change func(*subject.Permissions)) *team {
	t.Helper()
	self := identity(t)
	ownerCreds, owner := userKey(t)
	creds, pc := userKey(t)
	allowed := subject.For("crew", self.ID)
	if change != nil {
		change(&allowed)
	}
	url := run(t, listen+jetStream(t)+fmt.Sprintf("authorization { users: [ { nkey: %s }, { nkey: %s, %s } ] }\n", owner, pc, permissions(allowed)))
	r, err := provision.Init(t.Context(), filepath.Join(t.TempDir(), "roster"), provision.Settings{
		Team: "crew", URLs: []string{url}, Access: externalnats.Access{Creds: ownerCreds}, MaxBytes: 1 << 30, Replicas: 1,
	}, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &team{Roster: r, t: t, owner: externalnats.Access{Creds: ownerCreds}, place: externalnats.Place{Team: "crew", Self: self.ID, Roster: r.Key(), URLs: []string{url}, Access: externalnats.Access{Creds: creds}}}
}

func (m *team) add(name, id string) provision.PC {
	m.t.Helper()
	pc, err := m.Add(m.t.Context(), name, id)
	if err != nil {
		m.t.Fatal(err)
	}
	return pc
}

// does has the server's administrator do something there.
func (m *team) does(what func(context.Context, jetstream.JetStream) error) {
	m.t.Helper()
	conn, err := externalnats.Connect(m.place.URLs, m.owner)
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err == nil {
		err = what(m.t.Context(), js)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// refused expects a sentence.
func refused(t *testing.T, place externalnats.Place, seen int64, code bridge.Code, words string) {
	t.Helper()
	name, err := place.Check(t.Context(), seen)
	if bridge.CodeOf(err) != code || err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("it answers %q, %v (%s), want %q (%s)", name, err, bridge.CodeOf(err), words, code)
	}
}

func TestHUB_01_APCJoinsByWhatTheTeamsKeyHasSealed(t *testing.T) {
	m := newTeam(t, nil)
	roster := subject.BucketKey(subject.RosterBucket("crew"), m.place.Self)
	refused(t, m.place, 0, bridge.NotFound, "the NATS server has not got this PC's inbox in bridge-crew-msg: the team's owner makes it")
	m.does(func(ctx context.Context, js jetstream.JetStream) error {
		_, err := js.CreateConsumer(ctx, subject.MessageStream("crew"), provision.Inbox("crew", m.place.Self))
		return err
	})
	refused(t, m.place, 0, bridge.NotFound, "the team's roster is empty")
	m.add("desk", identity(t).ID)
	refused(t, m.place, 0, bridge.Denied, "this PC is not in the team's roster: the team's owner runs `bridge-hub roster add NAME "+m.place.Self+"`")
	first := m.add("laptop", m.place.Self)
	if name, err := m.place.Check(t.Context(), 0); err != nil || name != "laptop" {
		t.Fatalf("it joins as %q, %v", name, err)
	}
	stranger := m.place
	stranger.Roster = identity(t).ID
	refused(t, stranger, 0, bridge.Denied, "the roster is signed by another key ("+link.Fingerprint(m.Key())+") than the one given as --roster ("+link.Fingerprint(stranger.Roster)+")")
	stranger.Roster = "3f2a"
	refused(t, stranger, 0, bridge.Invalid, `"3f2a" is no fingerprint of a team's key`)

	// What the server shows instead is refused: changed, of another, older, none at all.
	show := func(body []byte) {
		m.does(func(ctx context.Context, js jetstream.JetStream) error {
			_, err := js.Publish(ctx, roster, body)
			return err
		})
	}
	var sealed []byte
	m.does(func(ctx context.Context, js jetstream.JetStream) error {
		bucket, err := js.KeyValue(ctx, subject.RosterBucket("crew"))
		if err != nil {
			return err
		}
		entry, err := bucket.Get(ctx, m.place.Self)
		sealed = entry.Value()
		return err
	})
	show([]byte(strings.Replace(string(sealed), fmt.Sprint(first.Number), fmt.Sprint(first.Number+1), 1)))
	refused(t, m.place, 0, bridge.Denied, "the roster's signature is wrong")
	show([]byte(`{"name":"laptop"}`))
	refused(t, m.place, 0, bridge.Denied, "the roster's signature is wrong")
	second := m.add("notebook", m.place.Self)
	show(sealed)
	refused(t, m.place, second.Number, bridge.Conflict, "the NATS server shows an older roster than this PC has seen")
	if err := m.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name, err := m.place.Check(t.Context(), second.Number); err != nil || name != "notebook" {
		t.Errorf("with the roster put right it joins as %q, %v", name, err)
	}
	if _, err := m.Remove(t.Context(), "notebook"); err != nil {
		t.Fatal(err)
	}
	m.does(func(ctx context.Context, js jetstream.JetStream) error { // as one who means to let it in would
		_, err := js.CreateConsumer(ctx, subject.MessageStream("crew"), provision.Inbox("crew", m.place.Self))
		return err
	})
	refused(t, m.place, second.Number, bridge.Denied, "this PC was removed from the team crew")
	m.does(func(ctx context.Context, js jetstream.JetStream) error {
		return js.DeleteKeyValue(ctx, subject.RosterBucket("crew"))
	})
	refused(t, m.place, 0, bridge.NotFound, "the NATS server has not got the team's roster, KV_bridge-crew-pcs")
}

func TestHUB_01_WhatJoiningTriesLeavesNothingOnTheServer(t *testing.T) {
	m := newTeam(t, nil)
	m.add("laptop", m.place.Self)
	if _, err := m.place.Check(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	m.does(func(ctx context.Context, js jetstream.JetStream) error {
		for _, name := range []string{subject.MessageStream("crew"), subject.DecisionStream("crew"), subject.BucketStream(subject.PresenceBucket("crew"))} {
			stream, err := js.Stream(ctx, name)
			if err != nil {
				return err
			}
			if n := stream.CachedInfo().State.LastSeq; n != 0 {
				t.Errorf("%s has stored %d", name, n)
			}
		}
		return nil
	})
}

// TestHUB_02_EachPermissionThatIsMissingIsNamed takes one away after the other.
func TestHUB_02_EachPermissionThatIsMissingIsNamed(t *testing.T) {
	whole := subject.For("crew", strings.Repeat("a", 64))
	for i, at := range whole.Publish {
		t.Run("publish "+at, func(t *testing.T) {
			t.Parallel()
			missing := ""
			m := newTeam(t, func(p *subject.Permissions) {
				missing = p.Publish[i]
				p.Publish = slices.Delete(p.Publish, i, i+1)
			})
			m.add("laptop", m.place.Self)
			missing = strings.Replace(strings.TrimSuffix(missing, ">"), ".*.", "."+m.place.Self+".", 1)
			refused(t, m.place, 0, bridge.Denied, "the NATS server does not let this PC publish to "+missing)
		})
	}
	for i, at := range whole.Subscribe {
		t.Run("subscribe "+at, func(t *testing.T) {
			t.Parallel()
			missing := ""
			m := newTeam(t, func(p *subject.Permissions) {
				missing = p.Subscribe[i]
				p.Subscribe = slices.Delete(p.Subscribe, i, i+1)
			})
			m.add("laptop", m.place.Self)
			refused(t, m.place, 0, bridge.Denied, "the NATS server does not let this PC subscribe to "+missing)
		})
	}
}

func TestHUB_02_APermissionThatNoPCMayHaveIsNamed(t *testing.T) {
	nobody := strings.Repeat("0", 64)
	for _, more := range []subject.Permissions{
		{Publish: []string{"bridge.v1.crew.*.*.frame"}},
		{Publish: []string{"bridge.v1.crew.*.*.msg"}},
		{Publish: []string{"bridge.v1.crew.*.dec"}},
		{Publish: []string{"$KV.bridge-crew-presence.*"}},
		{Publish: []string{"$KV.bridge-crew-pcs.>"}},
		{Subscribe: []string{"_INBOX_" + nobody + ".>"}},
		{Subscribe: []string{">"}},
		{Subscribe: []string{"bridge.v1.crew.*.*.frame"}},
	} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			t.Parallel()
			m := newTeam(t, func(p *subject.Permissions) {
				p.Publish, p.Subscribe = append(p.Publish, more.Publish...), append(p.Subscribe, more.Subscribe...)
			})
			m.add("laptop", m.place.Self)
			_, err := m.place.Check(t.Context(), 0)
			if bridge.CodeOf(err) != bridge.Denied || !strings.Contains(err.Error(), "which no PC may") || !strings.Contains(err.Error(), nobody) && !strings.Contains(err.Error(), "pcs."+m.place.Self) {
				t.Errorf("it answers %v", err)
			}
		})
	}
}

func TestHUB_01_AServerThatCannotCarryATeamIsNamed(t *testing.T) {
	creds, public := userKey(t)
	place := externalnats.Place{Team: "crew", Self: identity(t).ID, Roster: identity(t).ID, Access: externalnats.Access{Creds: creds}}
	users := fmt.Sprintf("authorization { users: [ { nkey: %s, %s } ] }\n", public, permissions(subject.For("crew", place.Self)))
	at := func(url string) externalnats.Place {
		place.URLs = []string{url}
		return place
	}
	refused(t, at(run(t, listen+users)), 0, bridge.Unsupported, "the NATS server has no JetStream for this PC's account")
	refused(t, at(run(t, listen+jetStream(t)+users)), 0, bridge.NotFound, "the NATS server has not got the team's roster, KV_bridge-crew-pcs: the team's owner makes it")
	_, other := userKey(t)
	refused(t, at(run(t, listen+jetStream(t)+strings.Replace(users, public, other, 1))), 0, bridge.Denied, "refuses these credentials")
	refused(t, at(oldServer(t, "2.11.9")), 0, bridge.Unsupported, "the NATS server is of version 2.11.9: a team needs 2.12 or newer")
	refused(t, at("nats://127.0.0.1:1"), 0, bridge.Unavailable, "no NATS server answers at nats://127.0.0.1:1")
	m := newTeamWith(t, "max_payload: 1064960", "max_payload: 1048576")
	refused(t, m, 0, bridge.Unsupported, "takes messages of 1048576 bytes at most: its administrator has to set max_payload to 1064960")
}

// newTeamWith is the place of a PC on a server with another line in its configuration.
func newTeamWith(t *testing.T, line, instead string) externalnats.Place {
	t.Helper()
	self := identity(t)
	ownerCreds, owner := userKey(t)
	creds, pc := userKey(t)
	url := run(t, strings.Replace(listen, line, instead, 1)+jetStream(t)+fmt.Sprintf("authorization { users: [ { nkey: %s }, { nkey: %s, %s } ] }\n", owner, pc, permissions(subject.For("crew", self.ID))))
	r, err := provision.Init(t.Context(), t.TempDir(), provision.Settings{Team: "crew", URLs: []string{url}, Access: externalnats.Access{Creds: ownerCreds}, MaxBytes: 1 << 30, Replicas: 1}, clock)
	if err == nil {
		defer r.Close()
		_, err = r.Add(t.Context(), "laptop", self.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return externalnats.Place{Team: "crew", Self: self.ID, Roster: r.Key(), URLs: []string{url}, Access: externalnats.Access{Creds: creds}}
}

// oldServer greets as a server of that version does, and answers pings.
func oldServer(t *testing.T, version string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err := fmt.Fprintf(conn, "INFO {\"server_id\":\"x\",\"version\":%q,\"max_payload\":1064960,\"headers\":true,\"proto\":1,\"jetstream\":true,\"nonce\":\"abc\"}\r\n", version); err != nil {
			return
		}
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "PING") {
				if _, err := fmt.Fprint(conn, "PONG\r\n"); err != nil {
					return
				}
			}
		}
	}()
	return "nats://" + listener.Addr().String()
}

// certificate makes one for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (certFile, keyFile, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a team's server"}, NotBefore: clock().Add(-time.Hour), NotAfter: clock().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, data := range map[string][]byte{certFile: cert, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, string(cert)
}

// TestHUB_01_AccountsOfAnOperatorAndTLS sets a server up as one with an operator is: JWTs
// in credentials files, and TLS.
func TestHUB_01_AccountsOfAnOperatorAndTLS(t *testing.T) {
	op, account := newKey(t, nkeys.CreateOperator), newKey(t, nkeys.CreateAccount)
	claims := jwt.NewAccountClaims(public(t, account))
	claims.Name = "crew"
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	accountToken, err := claims.Encode(op)
	if err != nil {
		t.Fatal(err)
	}
	system := newKey(t, nkeys.CreateAccount)
	systemToken, err := jwt.NewAccountClaims(public(t, system)).Encode(op)
	if err != nil {
		t.Fatal(err)
	}
	opClaims := jwt.NewOperatorClaims(public(t, op))
	opClaims.SystemAccount = public(t, system)
	opToken, err := opClaims.Encode(op)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, ca := certificate(t)
	url := run(t, listen+jetStream(t)+fmt.Sprintf("operator: %s\nresolver: MEMORY\nsystem_account: %s\nresolver_preload: { %s: %s, %s: %s }\ntls { cert_file: %q, key_file: %q }\n", opToken, public(t, system), public(t, account), accountToken, public(t, system), systemToken, certFile, keyFile))
	if !strings.HasPrefix(url, "tls://") {
		url = "tls://" + strings.TrimPrefix(url, "nats://")
	}
	self := identity(t)
	creds := func(allowed subject.Permissions) string {
		user := newKey(t, nkeys.CreateUser)
		claims := jwt.NewUserClaims(public(t, user))
		claims.Pub.Allow.Add(allowed.Publish...)
		claims.Sub.Allow.Add(allowed.Subscribe...)
		token, err := claims.Encode(account)
		if err != nil {
			t.Fatal(err)
		}
		seed, err := user.Seed()
		if err != nil {
			t.Fatal(err)
		}
		file, err := jwt.FormatUserConfig(token, seed)
		if err != nil {
			t.Fatal(err)
		}
		return string(file)
	}
	r, err := provision.Init(t.Context(), t.TempDir(), provision.Settings{Team: "crew", URLs: []string{url}, Access: externalnats.Access{Creds: creds(subject.Permissions{}), CA: ca}, MaxBytes: 1 << 30, Replicas: 1}, clock)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Add(t.Context(), "laptop", self.ID); err != nil {
		t.Fatal(err)
	}
	place := externalnats.Place{Team: "crew", Self: self.ID, Roster: r.Key(), URLs: []string{url}, Access: externalnats.Access{Creds: creds(subject.For("crew", self.ID)), CA: ca}}
	if name, err := place.Check(t.Context(), 0); err != nil || name != "laptop" {
		t.Fatalf("it joins as %q, %v", name, err)
	}
	if conn, err := externalnats.Connect([]string{url}, externalnats.Access{Creds: place.Access.Creds}); err == nil || !strings.Contains(err.Error(), "certificate") {
		conn.Close()
		t.Errorf("a certificate that the system does not trust: %v", err)
	}
	_, _, other := certificate(t)
	place.Access.CA = other
	refused(t, place, 0, bridge.Unavailable, "certificate")
	place.Access.CA = "none"
	refused(t, place, 0, bridge.Invalid, "--ca has no certificate in PEM")
	plain := newTeam(t, nil)
	plain.place.URLs[0] = "tls://" + strings.TrimPrefix(plain.place.URLs[0], "nats://")
	refused(t, plain.place, 0, bridge.Denied, "does not encrypt")
}

func newKey(t *testing.T, make func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	pair, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func public(t *testing.T, pair nkeys.KeyPair) string {
	t.Helper()
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestHUB_01_URLsAndCredentialsThatCannotBe(t *testing.T) {
	creds, _ := userKey(t)
	for _, c := range []struct {
		name   string
		urls   []string
		access externalnats.Access
		code   bridge.Code
		words  string
	}{
		{"this machine in the clear", []string{"nats://127.0.0.1:4222", "nats://[::1]:4222", "nats://localhost:4222"}, externalnats.Access{Creds: creds}, "", ""},
		{"another one, encrypted", []string{"tls://nats.example:4222"}, externalnats.Access{Creds: creds}, "", ""},
		{"another one in the clear", []string{"tls://nats.example:4222", "nats://nats.example:4222"}, externalnats.Access{Creds: creds}, bridge.Denied, "nats://nats.example:4222 is not encrypted"},
		{"that is said to be safe", []string{"nats://10.0.0.1:4222"}, externalnats.Access{Creds: creds, Plain: true}, "", ""},
		{"none", nil, externalnats.Access{Creds: creds}, bridge.Invalid, "1 to 8 URLs"},
		{"too many", slices.Repeat([]string{"tls://a:1"}, 9), externalnats.Access{Creds: creds}, bridge.Invalid, "1 to 8 URLs"},
		{"another scheme", []string{"wss://nats.example:443"}, externalnats.Access{Creds: creds}, bridge.Invalid, "no URL of a NATS server"},
		{"no port", []string{"tls://nats.example"}, externalnats.Access{Creds: creds}, bridge.Invalid, "no URL of a NATS server"},
		{"a path", []string{"tls://nats.example:4222/x"}, externalnats.Access{Creds: creds}, bridge.Invalid, "no URL of a NATS server"},
		{"two in one", []string{"tls://a:1,nats://b:2"}, externalnats.Access{Creds: creds}, bridge.Invalid, "no URL of a NATS server"},
		{"a password, which is not repeated", []string{"tls://me:secret@nats.example:4222"}, externalnats.Access{Creds: creds}, bridge.Invalid, `"tls://...@nats.example:4222" is no URL`},
		{"no credentials", []string{"tls://a:1"}, externalnats.Access{Creds: "hello"}, bridge.Invalid, "the credentials file has neither"},
		{"an account's seed", []string{"tls://a:1"}, externalnats.Access{Creds: seedOf(t, nkeys.CreateAccount)}, bridge.Invalid, "the credentials file has neither"},
		{"a JWT that is none", []string{"tls://a:1"}, externalnats.Access{Creds: "-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + creds + "------END USER NKEY SEED------\n"}, bridge.Invalid, "the credentials file has neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.access.Check(c.urls)
			if bridge.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v (%s), want %q (%s)", err, bridge.CodeOf(err), c.words, c.code)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), strings.TrimSpace(creds))) {
				t.Errorf("it tells a secret: %v", err)
			}
		})
	}
}

func seedOf(t *testing.T, make func() (nkeys.KeyPair, error)) string {
	t.Helper()
	seed, err := newKey(t, make).Seed()
	if err != nil {
		t.Fatal(err)
	}
	return string(seed)
}
