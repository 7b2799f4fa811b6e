package hubcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
)

const late = 2 * time.Minute

// ownServer is a NATS server of a team's own, set up by its administrator from what
// `bridge-hub permissions` prints and nothing else.
type ownServer struct {
	t        *testing.T
	url      string
	identity link.Identity // that signs the roster
	admin    *nats.Conn
}

// user is a PC's part of the server's configuration.
type user struct {
	link.Identity
	key    nkeys.KeyPair
	public string
}

func newUser(t *testing.T) user {
	t.Helper()
	u := user{}
	var err error
	if u.Identity, err = link.OpenIdentity(t.TempDir()); err == nil {
		u.key, err = nkeys.CreateUser()
	}
	if err == nil {
		u.public, err = u.key.PublicKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (u user) login() nats.Option { return nats.Nkey(u.public, u.key.Sign) }

// printed is what the command says of a PC.
func printed(t *testing.T, id string) string {
	t.Helper()
	var out, errs bytes.Buffer
	app := &App{Args: []string{"permissions", "--team", "crew", id}, Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }, Now: time.Now, Version: "1.0"}
	if code := app.Run(t.Context()); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	return out.String()
}

func startOwn(t *testing.T, users ...user) *ownServer {
	t.Helper()
	admin := newUser(t)
	config := fmt.Sprintf("host: 127.0.0.1\nport: -1\nmax_payload: 1064960\njetstream { store_dir: %q, sync_interval: always }\nauthorization { users: [\n{ nkey: %s }\n", t.TempDir(), admin.public)
	for _, u := range users {
		config += fmt.Sprintf("{ nkey: %s\n%s}\n", u.public, printed(t, u.ID))
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(config+"] }\n"), 0o600); err != nil {
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
	if !server.ReadyForConnections(late) {
		t.Fatal("the server does not come up")
	}
	o := &ownServer{t: t, url: server.ClientURL()}
	if o.identity, err = link.OpenIdentity(t.TempDir()); err == nil {
		o.admin, err = nats.Connect(o.url, admin.login())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.admin.Close)
	o.make(users)
	return o
}

// make makes the streams that the command names, and the inboxes.
func (o *ownServer) make(users []user) {
	o.t.Helper()
	js, err := jetstream.New(o.admin)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, s := range streams("crew") {
		config := jetstream.StreamConfig{Name: s.Name, Subjects: []string{s.Subjects}, AllowDirect: true, Discard: jetstream.DiscardNew}
		if s.Retention == "workqueue" {
			config.Retention, config.MaxMsgsPerSubject, config.DiscardNewPerSubject = jetstream.WorkQueuePolicy, subject.MaxWaiting, true
		}
		if bucket, is := strings.CutPrefix(s.Name, "KV_"); is {
			_, err = js.CreateKeyValue(o.t.Context(), jetstream.KeyValueConfig{Bucket: bucket, History: 1})
		} else {
			_, err = js.CreateStream(o.t.Context(), config)
		}
		if err != nil {
			o.t.Fatal(s.Name, err)
		}
	}
	for _, u := range users {
		c := consumer("crew", u.ID)
		if _, err := js.CreateConsumer(o.t.Context(), c["stream"], jetstream.ConsumerConfig{Durable: c["name"], FilterSubject: c["filter"], AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
			o.t.Fatal(err)
		}
	}
}

// names writes a PC into the roster.
func (o *ownServer) names(u user, name string) {
	o.t.Helper()
	at := subject.BucketKey(subject.RosterBucket("crew"), u.ID)
	body, err := subject.Member{Name: name}.Encode()
	if err == nil {
		body, err = subject.Seal(o.identity.Sign, at, time.Now().UnixNano(), body)
	}
	if err == nil {
		_, err = o.admin.Request(at, body, late)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// open begins Bridge's own client of a PC. What NATS refuses it is a failure.
func (o *ownServer) open(u user, heard chan<- remote.Frame, changed chan struct{}) *hub.Hub {
	o.t.Helper()
	h, err := hub.Open(hub.Options{
		Team: "crew", Self: u.ID, Hub: o.identity.ID, URLs: []string{o.url}, Login: []nats.Option{u.login()}, Sign: u.Sign, Numbers: filepath.Join(o.t.TempDir(), "said.json"),
		Roster: filepath.Join(o.t.TempDir(), "roster.json"),
		Word:   func() hub.Announcement { return hub.Announcement{Release: "1.0"} },
		Handle: func(_ remote.PC, frame remote.Frame) { heard <- frame },
		Changed: func(remote.PC) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
		Stored: func(_ context.Context, _ remote.PC, frame remote.Frame, _ time.Time) error {
			heard <- frame
			return nil
		},
		Now: time.Now, Log: slog.New(refusals{o.t}),
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(h.Close)
	return h
}

// refusals fails the test for each permission that a client lacks.
type refusals struct{ t *testing.T }

func (l refusals) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (l refusals) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if strings.Contains(strings.ToLower(a.Value.String()), "permissions violation") {
			l.t.Errorf("the client lacks a permission: %s", a.Value)
		}
		return true
	})
	return nil
}

func (l refusals) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l refusals) WithGroup(string) slog.Handler { return l }

func TestHUB_01_WhatAnAdministratorIsToldToAllowIsEnough(t *testing.T) {
	anna, bert := newUser(t), newUser(t)
	o := startOwn(t, anna, bert)
	o.names(anna, "anna")
	o.names(bert, "bert")
	heard, changed := make(chan remote.Frame, 1), make(chan struct{}, 1)
	a := o.open(anna, make(chan remote.Frame, 1), changed)
	o.open(bert, heard, make(chan struct{}, 1))
	limit := time.After(late)
	for status, err := a.Of(bert.ID); err != nil || !status.Up; status, err = a.Of(bert.ID) {
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("bert did not come: %+v, %v, %+v", status, err, a.State())
		}
	}
	next := func(kind string, size int) {
		t.Helper()
		select {
		case frame := <-heard:
			if frame.Type != kind || len(frame.Body) != size {
				t.Errorf("it heard %s with %d bytes, want %s with %d", frame.Type, len(frame.Body), kind, size)
			}
		case <-limit:
			t.Fatalf("%s did not come", kind)
		}
	}
	if err := a.Send(t.Context(), bert.ID, remote.Frame{Type: "at-once", Body: make([]byte, 1_000_000)}); err != nil {
		t.Fatal(err)
	}
	next("at-once", 1_000_000)
	if err := a.Inbox.Store(t.Context(), bert.ID, remote.Frame{Type: "kept"}); err != nil {
		t.Fatal(err)
	}
	next("kept", 0)
	if _, err := a.Decisions().Stream(t.Context()); err != nil {
		t.Error(err)
	}
	if err := a.Decisions().Say(t.Context(), []byte("{}"), 0); err != nil {
		t.Error(err)
	}
	if said, _, err := a.Decisions().Read(t.Context(), 1); err != nil || len(said) != 1 {
		t.Errorf("the decisions are %+v, %v", said, err)
	}
}

func TestHUB_02_WhatAnAdministratorIsToldToAllowIsNoMore(t *testing.T) {
	anna, bert, eve := newUser(t), newUser(t), newUser(t)
	o := startOwn(t, anna, bert, eve)
	refused := make(chan error, 1)
	conn, err := nats.Connect(o.url, eve.login(), nats.CustomInboxPrefix(subject.InboxPrefix(eve.ID)), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	messages, decisions := subject.MessageStream("crew"), subject.DecisionStream("crew")
	expect := func(what string) {
		t.Helper()
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(late):
			t.Fatalf("%s is allowed", what)
		}
	}
	for _, at := range []string{
		subject.Subject{Team: "crew", From: anna.ID, To: bert.ID, Sort: subject.Frame}.String(),
		subject.Subject{Team: "crew", From: anna.ID, To: bert.ID, Sort: subject.Message}.String(),
		subject.Subject{Team: "crew", From: anna.ID, Sort: subject.Decision}.String(),
		subject.Subject{Team: "other", From: eve.ID, To: bert.ID, Sort: subject.Frame}.String(),
		subject.BucketKey(subject.PresenceBucket("crew"), anna.ID), subject.BucketKey(subject.RosterBucket("crew"), eve.ID),
		"$JS.API.CONSUMER.MSG.NEXT." + messages + "." + anna.ID, "$JS.API.CONSUMER.CREATE." + messages, "$JS.API.DIRECT.GET." + messages,
		"$JS.API.STREAM.MSG.GET." + messages, "$JS.API.STREAM.PURGE." + decisions, "$JS.API.STREAM.DELETE." + messages, "$JS.API.STREAM.CREATE.mine",
		"$JS.API.INFO", "_INBOX_" + anna.ID + ".x", "anything",
	} {
		if err := conn.Publish(at, []byte("mine")); err != nil {
			t.Fatal(err)
		}
		expect("to publish to " + at)
	}
	for _, at := range []string{">", "bridge.>", "$JS.>", "_INBOX.>", subject.Frames("crew", anna.ID), subject.Inbox("crew", anna.ID), subject.MessageSubjects("crew"), subject.InboxPrefix(anna.ID) + ".>"} {
		if _, err := conn.SubscribeSync(at); err != nil {
			t.Fatal(err)
		}
		expect("to subscribe to " + at)
	}
}
