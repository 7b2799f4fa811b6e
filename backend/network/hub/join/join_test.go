package join

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/link"
	"bridge/backend/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hub is a hub's door, without the rest of it.
type hub struct {
	identity   link.Identity
	invitation *link.Invitation
	address    string
	accept     func(PC) (Answer, error)

	mu    sync.Mutex
	taken []PC
	ended chan error
}

func identityOf(t *testing.T) link.Identity {
	t.Helper()
	identity, err := link.OpenIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func openHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{identity: identityOf(t), invitation: link.NewInvitation(time.Now), ended: make(chan error, 100)}
	h.accept = func(pc PC) (Answer, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.taken = append(h.taken, pc)
		return Answer{Team: "crew", Name: pc.Name, Port: 4780}, nil
	}
	listener, err := link.Listen(t.Context(), h.identity, []string{"127.0.0.1"}, 0, link.Doors{
		Known: func(string) error { return errors.New("no links here") }, Hub: true,
		Invitation: func() *link.Invitation { return h.invitation },
		Joining: func(conn *tls.Conn, invitation *link.Invitation) {
			_, err := Serve(conn, h.identity, "crew", invitation, h.accept)
			h.ended <- err
		},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Close)
	h.address = listener.Addresses()[0]
	return h
}

func (h *hub) join(t *testing.T, pc link.Identity, code string) (m Membership, err error) {
	t.Helper()
	err = Join(t.Context(), pc, "laptop", h.address, code, func(got Membership) error { m = got; return nil })
	return m, err
}

func (h *hub) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-h.ended:
		return err
	case <-t.Context().Done():
	case <-time.After(testkit.Patience):
	}
	t.Fatal("the hub never came to an end")
	return nil
}

func TestHUB_03_APCJoinsByTheCodeOnce(t *testing.T) {
	h, pc := openHub(t), identityOf(t)
	m, err := h.join(t, pc, strings.ToLower(h.invitation.Code))
	if err != nil || h.end(t) != nil {
		t.Fatal(err)
	}
	pair, err := nkeys.FromSeed([]byte(m.Seed))
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.PublicKey()
	want := PC{ID: pc.ID, Name: "laptop", Key: key, Box: seal.Text(pc.Key())}
	if err != nil || !slices.Equal(h.taken, []PC{want}) {
		t.Errorf("the hub took %+v, want %+v (%v)", h.taken, want, err)
	}
	if m.Team != "crew" || m.Name != "laptop" || m.Hub != h.identity.ID || m.Address != h.address || !slices.Equal(m.URLs, []string{"tls://127.0.0.1:4780"}) {
		t.Errorf("the PC keeps %+v", m)
	}
	if _, err := h.join(t, identityOf(t), h.invitation.Code); err == nil || !strings.Contains(err.Error(), "run `bridge-hub invite` on the hub first") {
		t.Errorf("the code again: %v", err)
	}
}

func TestHUB_03_ThreeWrongCodesBurnTheInvitation(t *testing.T) {
	h, pc := openHub(t), identityOf(t)
	for range 3 {
		if _, err := h.join(t, pc, "0000-0000"); err == nil || !strings.Contains(err.Error(), "the code is wrong, was used, or has expired") {
			t.Fatalf("a wrong code: %v", err)
		}
		_ = h.end(t)
	}
	if _, err := h.join(t, pc, h.invitation.Code); err == nil || h.invitation.State() != link.InvitationBurnt || len(h.taken) != 0 {
		t.Errorf("after three wrong codes: %v, %s, taken %v", err, h.invitation.State(), h.taken)
	}
}

func TestHUB_03_ARefusalIsToldToWhomKnewTheCode(t *testing.T) {
	h := openHub(t)
	h.accept = func(PC) (Answer, error) { return Answer{}, bridge.Errorf(bridge.Conflict, "the team is full") }
	_, err := h.join(t, identityOf(t), h.invitation.Code)
	if err == nil || !strings.Contains(err.Error(), "the team is full") || h.invitation.State() != link.InvitationOpen {
		t.Errorf("a full team: %v, the invitation is %s", err, h.invitation.State())
	}
	_ = h.end(t)
}

// TestHUB_03_WhoCannotJoinReadsWhy: each sentence names what was wrong, and the hub where
// that is on the other side.
func TestHUB_03_WhoCannotJoinReadsWhy(t *testing.T) {
	open := func(change func(*hub)) func(t *testing.T) (string, string) {
		return func(t *testing.T) (string, string) {
			h := openHub(t)
			change(h)
			return h.address, h.invitation.Code
		}
	}
	answers := func(conf func() *tls.Config, says string) func(t *testing.T) (string, string) {
		return func(t *testing.T) (string, string) { return answering(t, conf, says), "0000-0000" }
	}
	enrols := func() *tls.Config {
		config := identityOf(t).ServerConfig()
		config.NextProtos = []string{"bridge-enrol/1"}
		return config
	}
	for name, tt := range map[string]struct {
		at   func(t *testing.T) (address, code string)
		want string
		code bridge.Code
	}{
		"wrong code": {func(t *testing.T) (string, string) { return openHub(t).address, "0000-0000" }, "the hub refused: the code is wrong, was used, or has expired", bridge.Denied},
		"no code":    {func(t *testing.T) (string, string) { return openHub(t).address, "7K3M" }, "that is no code: a code has 8 letters and digits, as in 7K3M-QX9T", bridge.Invalid},
		"no address": {func(*testing.T) (string, string) { return "http://hub/", "0000-0000" }, `"http://hub/" is no address of a hub: that is host:port, as in hub.example:4779`, bridge.Invalid},
		"code ended": {open(func(h *hub) { h.invitation.Withdraw() }), "no invitation is open at HUB, and a code is good once, for ten minutes: run `bridge-hub invite` on the hub first", bridge.Unavailable},
		"hub gone": {
			func(t *testing.T) (string, string) { return closed(t), "0000-0000" },
			"nothing answers at HUB: does `bridge-hub serve` run there, and is it the address that `bridge-hub invite` shows?", bridge.Unavailable,
		},
		"no such machine": {func(*testing.T) (string, string) { return "hub.invalid", "0000-0000" }, "no machine named hub.invalid can be found: is hub.invalid:4779 the right address?", bridge.Unavailable},
		"its port of NATS": {
			answers(func() *tls.Config { return identityOf(t).ServerConfig() }, ""),
			"what answers at HUB is not where the hub takes PCs into its team: is the port right?", bridge.Unsupported,
		},
		"a page on the web": {
			answers(func() *tls.Config { c := enrols(); c.NextProtos = []string{"http/1.1"}; return c }, ""),
			"what answers at HUB is not where the hub takes PCs into its team: is the port right?", bridge.Unavailable,
		},
		"no TLS":    {answers(nil, "HTTP/1.1 400 Bad Request\r\n\r\n"), "what answers at HUB is not where the hub takes PCs into its team: is the port right?", bridge.Unavailable},
		"later hub": {answers(enrols, framed(`{"version":2,"invitation":"x","name":"crew"}`)), "the hub takes PCs into its team by version 2, this Bridge by 1: update Bridge on this PC", bridge.Unsupported},
		"older hub": {answers(enrols, framed(`{"invitation":"x","name":"crew"}`)), "the hub takes PCs into its team by version 0, this Bridge by 1: update the hub", bridge.Unsupported},
		"cut":       {answers(enrols, ""), "the connection to HUB was lost in the middle of joining: try it again", bridge.Unavailable},
		"name taken": {
			open(func(h *hub) {
				h.accept = func(PC) (Answer, error) {
					return Answer{}, bridge.Errorf(bridge.Conflict, `another PC named "laptop" belongs to the team`)
				}
			}),
			`the hub refused: another PC named "laptop" belongs to the team`, bridge.Denied,
		},
		"no team": {
			open(func(h *hub) { h.accept = func(PC) (Answer, error) { return Answer{Team: "crew"}, nil } }),
			"what the hub answers cannot be used: ", bridge.Invalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, code := tt.at(t)
			err := Join(t.Context(), identityOf(t), "laptop", address, code, func(Membership) error { t.Error("it joined"); return nil })
			want := strings.ReplaceAll(tt.want, "HUB", address)
			if bridge.CodeOf(err) != tt.code || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(want, ": ") && err.Error() != want {
				t.Errorf("it says %q (%s), want %q (%s)", err, bridge.CodeOf(err), want, tt.code)
			}
			if strings.Contains(err.Error(), "the other PC") || strings.Contains(err.Error(), "pair") {
				t.Errorf("it speaks of a pair: %q", err)
			}
		})
	}
}

// framed is a message as the exchange has it: its length in four bytes before it.
func framed(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text //nolint:gosec // a few bytes
}

// closed is an address at which nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// answering listens, over TLS where config is not nil, and says the same to everybody.
func answering(t *testing.T, config func() *tls.Config, says string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if config != nil {
		listener = tls.NewListener(listener, config())
	}
	var tasks sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); tasks.Wait() })
	tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
			if _, err := conn.Write([]byte(says)); err == nil && says != "" { // a TLS one shakes hands first
				_, _ = io.Copy(io.Discard, conn)
			}
			_ = conn.Close()
		}
	})
	return address
}

func TestHUB_03_ACodeForPairingEnrolsNobody(t *testing.T) {
	h, pc := openHub(t), identityOf(t)
	book, err := link.OpenPairList(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := link.Join(t.Context(), pc, book, "laptop", h.address, h.invitation.Code); err == nil {
		t.Error("a PC paired with a hub")
	}
	if h.invitation.State() != link.InvitationOpen || h.invitation.WrongCodes() != 0 {
		t.Errorf("the invitation is %s after %d wrong codes", h.invitation.State(), h.invitation.WrongCodes())
	}
}

func TestHUB_03_APCKeepsNothingThatCannotBe(t *testing.T) {
	for _, answer := range []Answer{
		{Team: "no team", Name: "laptop", Port: 1},
		{Team: "crew", Name: "", Port: 1},
		{Team: "crew", Name: "a/b", Port: 1},
		{Team: "crew", Name: "laptop"},
		{Team: "crew", Name: "laptop", URLs: []string{"nats://host:1"}},
		{Team: "crew", Name: "laptop", URLs: []string{"tls://user@host:1"}},
		{Team: "crew", Name: "laptop", URLs: []string{"tls://host:1/x"}},
		{Team: "crew", Name: "laptop", URLs: []string{"tls://host"}},
		{Team: "crew", Name: "laptop", URLs: []string{"tls://:1"}},
		{Team: "crew", Name: "laptop", URLs: slices.Repeat([]string{"tls://h:1"}, 9)},
	} {
		h := openHub(t)
		h.accept = func(PC) (Answer, error) { return answer, nil }
		if m, err := h.join(t, identityOf(t), h.invitation.Code); err == nil || m.Team != "" {
			t.Errorf("%+v was kept as %+v", answer, m)
		}
		_ = h.end(t)
	}
}

func TestHUB_03_Addresses(t *testing.T) {
	for typed, want := range map[string]string{
		"hub.example": "hub.example:4779", "hub.example:1": "hub.example:1", "10.0.0.1": "10.0.0.1:4779", "[::1]:7": "[::1]:7",
		"": "", ":7": "", "hub:x": "", "hub:0": "", "hub:70000": "", "a:b:c": "",
	} {
		if got, err := withPort(typed); got != want || (err == nil) != (want != "") {
			t.Errorf("withPort(%q) = %q, %v; want %q", typed, got, err, want)
		}
	}
}

func TestHUB_02_APinIsOfOneHub(t *testing.T) {
	hubs := []link.Identity{identityOf(t), identityOf(t)}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", hubs[0].ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); tasks.Wait() })
	tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	})
	for i, hub := range hubs {
		raw, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		err = tls.Client(raw, link.Pinned(hub.ID)).HandshakeContext(t.Context())
		_ = raw.Close()
		if (err == nil) != (i == 0) {
			t.Errorf("hub %d: %v", i, err)
		}
	}
}
