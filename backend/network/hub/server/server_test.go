package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"bridge/backend/network/hub/join"
	"bridge/backend/network/hub/provision"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/testing/testkit"
)

// journal is a log that can be waited for.
type journal struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and made new with each line
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.changed)
	j.changed = make(chan struct{})
	return j.text.Write(line)
}

// await waits for a line that has all the words.
func (j *journal) await(t *testing.T, words ...string) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	for {
		j.mu.Lock()
		text, changed := j.text.String(), j.changed
		j.mu.Unlock()
		for line := range strings.Lines(text) {
			all := true
			for _, word := range words {
				all = all && strings.Contains(line, word)
			}
			if all {
				return
			}
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("no line of the log has all of %q:\n%s", words, text)
		}
	}
}

// hub is a hub of a test, on loopback.
type hub struct {
	*Server
	t    *testing.T
	home Home
	log  *journal
}

func settings() Settings {
	set := Usual()
	set.Team, set.Listen, set.Port, set.NATSPort, set.MaxBytes = "crew", "127.0.0.1", 0, 0, 1<<30
	return set
}

func openHub(t *testing.T, change func(*Options)) *hub {
	t.Helper()
	home, err := At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return reopenHub(t, home, change)
}

func reopenHub(t *testing.T, home Home, change func(*Options)) *hub {
	t.Helper()
	h := &hub{t: t, home: home, log: newJournal()}
	opts := Options{Home: home, Settings: settings(), Now: time.Now, Log: slog.New(slog.NewTextHandler(h.log, nil))}
	if change != nil {
		change(&opts)
	}
	var err error
	if h.Server, err = Open(t.Context(), opts); err != nil {
		t.Fatalf("%v\n%s", err, h.log.text.String())
	}
	t.Cleanup(h.Close)
	return h
}

func (h *hub) dial() *Client {
	h.t.Helper()
	client, err := Dial(h.home)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(client.Close)
	return client
}

// pc is a PC of the team, as a hostile one would be written: nothing of it checks
// anything.
type pc struct {
	t        *testing.T
	name     string
	identity link.Identity
	member   join.Membership
	conn     *nats.Conn
	js       jetstream.JetStream
	errs     chan error
	closed   chan struct{}
}

// join enrols a PC and connects it.
func (h *hub) join(name string) *pc {
	h.t.Helper()
	p := h.enrol(name)
	p.connect(true)
	return p
}

func (h *hub) enrol(name string) *pc {
	h.t.Helper()
	identity, err := link.OpenIdentity(h.t.TempDir())
	if err != nil {
		h.t.Fatal(err)
	}
	p := &pc{t: h.t, name: name, identity: identity}
	if err := p.joinBy(h.Addresses()[0], h.dialInvite()); err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *hub) dialInvite() string {
	h.t.Helper()
	client, err := Dial(h.home)
	if err != nil {
		h.t.Fatal(err)
	}
	defer client.Close()
	invited, err := client.Invite(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return invited.Code
}

func (p *pc) joinBy(address, code string) error {
	return join.Join(p.t.Context(), p.identity, p.name, address, code, func(m join.Membership) error { p.member = m; return nil })
}

func (p *pc) options() []nats.Option {
	pair, err := nkeys.FromSeed([]byte(p.member.Seed))
	if err != nil {
		p.t.Fatal(err)
	}
	key, err := pair.PublicKey()
	if err != nil {
		p.t.Fatal(err)
	}
	errs, closed := make(chan error, 1000), make(chan struct{})
	p.errs, p.closed = errs, closed
	return []nats.Option{
		nats.Secure(link.Pinned(p.member.Hub)), nats.TLSHandshakeFirst(), nats.Nkey(key, pair.Sign), nats.CustomInboxPrefix(subject.InboxPrefix(p.identity.ID)),
		nats.Timeout(testkit.Patience), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err }),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
		nats.NoReconnect(),
	}
}

func (p *pc) connect(must bool, more ...nats.Option) error {
	p.t.Helper()
	conn, err := nats.Connect(strings.Join(p.member.URLs, ","), append(p.options(), more...)...)
	if err != nil {
		if must {
			p.t.Fatal(err)
		}
		return err
	}
	p.conn = conn
	p.t.Cleanup(conn.Close)
	if p.js, err = jetstream.New(conn); err != nil {
		p.t.Fatal(err)
	}
	return nil
}

// subject is that of something to another PC.
func (p *pc) subject(to *pc, sort subject.Sort) string {
	return subject.Subject{Team: "crew", From: p.identity.ID, To: to.identity.ID, Sort: sort}.String()
}

func next[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case came := <-from:
		return came
	case <-time.After(testkit.Patience):
		t.Fatalf("waited for %s, and nothing came", what)
		panic("unreachable")
	}
}

// send publishes a durable message.
func (p *pc) send(to *pc, body string) error {
	ctx, cancel := context.WithTimeout(p.t.Context(), testkit.Patience)
	defer cancel()
	_, err := p.js.Publish(ctx, p.subject(to, subject.Message), []byte(body))
	return err
}

// take fetches messages out of the PC's own inbox and acknowledges them.
func (p *pc) take(count int) []jetstream.Msg {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testkit.Patience)
	defer cancel()
	consumer, err := p.js.Consumer(ctx, subject.MessageStream("crew"), subject.Consumer(p.identity.ID))
	if err != nil {
		p.t.Fatal(err)
	}
	var taken []jetstream.Msg
	for len(taken) < count {
		batch, err := consumer.Fetch(count-len(taken), jetstream.FetchMaxWait(testkit.Patience))
		if err != nil {
			p.t.Fatal(err)
		}
		for msg := range batch.Messages() {
			if err := msg.DoubleAck(ctx); err != nil {
				p.t.Fatal(err)
			}
			taken = append(taken, msg)
		}
		if batch.Error() != nil || ctx.Err() != nil {
			p.t.Fatalf("%d of %d messages came: %v", len(taken), count, batch.Error())
		}
	}
	return taken
}

func TestHUB_01_AMessageWaitsInTheInboxOfItsPC(t *testing.T) {
	h := openHub(t, nil)
	anna, bert := h.join("anna"), h.join("bert")
	for i := range 3 {
		if err := anna.send(bert, fmt.Sprint("hello ", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, msg := range bert.take(3) {
		from, err := subject.Parse(msg.Subject())
		if err != nil || from.From != anna.identity.ID || string(msg.Data()) != fmt.Sprint("hello ", i) {
			t.Errorf("message %d is %q under %s (%v)", i, msg.Data(), msg.Subject(), err)
		}
	}
	status, err := h.dial().Status(t.Context())
	if err != nil || status.Waiting != 0 || status.PCs != 2 || status.Up != 2 || status.Team != "crew" {
		t.Errorf("status = %+v, %v", status, err)
	}
}

// A hub whose inboxes were made by an earlier release sets them as it makes its own: what
// was sent before waits in them as before.
func TestHUB_05_InboxesOfAnEarlierHubAreBroughtUpToDate(t *testing.T) {
	h := openHub(t, nil)
	anna, bert := h.join("anna"), h.join("bert")
	before := provision.Inbox("crew", bert.identity.ID)
	before.MaxAckPending, before.AckWait = 256, 2*before.AckWait
	if _, err := h.js.UpdateConsumer(t.Context(), subject.MessageStream("crew"), before); err != nil {
		t.Fatal(err)
	}
	if err := anna.send(bert, "hello"); err != nil {
		t.Fatal(err)
	}
	again := reopen(h)
	consumer, err := again.js.Consumer(t.Context(), subject.MessageStream("crew"), subject.Consumer(bert.identity.ID))
	if err != nil {
		t.Fatal(err)
	}
	if is := consumer.CachedInfo().Config; is.MaxAckPending != 1 || !provision.IsInbox(is, "crew", bert.identity.ID) {
		t.Errorf("the inbox is set to %+v", is)
	}
	if waits := consumer.CachedInfo().NumPending; waits != 1 {
		t.Errorf("%d messages wait", waits)
	}
}
