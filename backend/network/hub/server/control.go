package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/network/link"
	"bridge/backend/platform/disk"
)

// A hub is administered through its NATS, from its home and with the key there: no PC may
// publish to these subjects.
const (
	controlRoot  = "bridge.hub."
	opInvite     = "invite"
	opInvitation = "invitation"
	opWithdraw   = "withdraw"
	opPCs        = "pcs"
	opRemove     = "remove"
	opStatus     = "status"

	controlTimeout  = 20 * time.Second
	maxControlBytes = 1 << 20
)

// Member is a PC of the team, for people.
type Member struct {
	PC
	Up bool `json:"up"` // connected to this node, or announced by the PC itself at another
	// Before is a removed PC that had its name before; omitted if there is none.
	Before *Former `json:"before,omitempty"`
}

// BeforeWords describes for people that another PC had its name.
func (m Member) BeforeWords() string {
	return fmt.Sprintf("%s (%s) is another PC than the %s (%s) that was removed on %s",
		m.Name, link.Fingerprint(m.ID), m.Name, link.Fingerprint(m.Before.ID), time.UnixMilli(m.Before.RemovedAt).UTC().Format("2006-01-02 15:04 MST"))
}

// Invited is an invitation with its code.
type Invited struct {
	ID        string            `json:"id"`
	Code      string            `json:"code"`
	Addresses []string          `json:"addresses"`
	ExpiresAt bridge.UnixMillis `json:"expiresAt"`
}

// Invitation is the outcome of an invitation.
type Invitation struct {
	State      link.InvitationState `json:"state"`
	WrongCodes int                  `json:"wrongCodes"`
	PC         string               `json:"pc,omitempty"` // the name of the PC that used it
}

// answer is the answer to a request.
type answer struct {
	Code  bridge.Code     `json:"code,omitempty"`
	Error string          `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// serveControl serves the requests of administrators.
func (s *Server) serveControl() error {
	operations := map[string]func(context.Context, []byte) (any, error){
		opInvite:     func(context.Context, []byte) (any, error) { return s.invite(), nil },
		opInvitation: func(_ context.Context, id []byte) (any, error) { return s.state(string(id)), nil },
		opWithdraw:   func(_ context.Context, id []byte) (any, error) { s.withdraw(string(id)); return nil, nil },
		opPCs:        func(ctx context.Context, _ []byte) (any, error) { return s.members(ctx) },
		opRemove:     func(ctx context.Context, name []byte) (any, error) { return s.remove(ctx, string(name), false) },
		opStatus:     func(ctx context.Context, _ []byte) (any, error) { return s.status(ctx), nil },
	}
	for operation, run := range operations {
		_, err := s.conn.Subscribe(controlRoot+s.opts.Settings.Node+"."+operation, func(msg *nats.Msg) {
			s.tasks.Go(func() {
				ctx, cancel := context.WithTimeout(s.tasks.Context(), controlTimeout)
				defer cancel()
				_ = msg.Respond(encode(run(ctx, msg.Data))) // the requester may have gone
			})
		})
		if err != nil {
			return err
		}
	}
	return s.conn.Flush()
}

func encode(value any, err error) []byte {
	var a answer
	if err == nil {
		a.Value, err = json.Marshal(value)
	}
	if err != nil {
		a = answer{Code: bridge.CodeOf(err), Error: err.Error()}
	}
	data, _ := json.Marshal(a) // it can always be encoded
	return data
}

// invite opens an invitation and ends an earlier one.
func (s *Server) invite() Invited {
	invitation := link.NewInvitation(s.opts.Now)
	s.mu.Lock()
	before := s.invitation
	s.invitation = invitation
	s.mu.Unlock()
	if before != nil {
		before.Withdraw()
	}
	return Invited{ID: invitation.ID, Code: invitation.Code, Addresses: link.Reachable(s.Addresses()), ExpiresAt: invitation.ExpiresAt.UnixMilli()}
}

func (s *Server) withdraw(id string) {
	if invitation := s.openInvitation(); invitation != nil && invitation.ID == id {
		invitation.Withdraw()
	}
}

func (s *Server) state(id string) Invitation {
	invitation := s.openInvitation()
	if invitation == nil || invitation.ID != id { // another one replaced it
		return Invitation{State: link.InvitationExpired}
	}
	state := Invitation{State: invitation.State(), WrongCodes: invitation.WrongCodes()}
	for _, pc := range s.roster.list() {
		if pc.ID == invitation.PairedID() {
			state.PC = pc.Name
		}
	}
	return state
}

func (s *Server) members(ctx context.Context) ([]Member, error) {
	up := s.roster.up()
	if err := addPresent(ctx, s, up); err != nil {
		return nil, err
	}
	members := []Member{}
	for _, pc := range s.roster.list() {
		members = append(members, Member{PC: pc, Up: up[pc.ID], Before: s.roster.before(pc)})
	}
	return members, nil
}

// Client administers the running hub of a home.
type Client struct {
	home    Home
	set     Settings
	keys    keys
	running Running
	conn    *nats.Conn
	js      jetstream.JetStream
}

// ErrNotRunning reports that no hub runs in that home.
var ErrNotRunning = bridge.Errorf(bridge.Unavailable, "no hub runs there: start it with `bridge-hub serve`")

// Dial connects to the hub that runs in a home. It fails with ErrNotRunning if there is none.
func Dial(h Home) (*Client, error) {
	set, err := h.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	var running Running
	if err := disk.ReadJSON(h.running(), maxSettingsBytes, &running); err != nil {
		return nil, ErrNotRunning
	}
	k, err := h.openKeys()
	if err != nil {
		return nil, err
	}
	c := &Client{home: h, set: set, keys: k, running: running}
	if c.conn, err = c.login(teamLogin); err != nil {
		return nil, err
	}
	if c.js, err = jetstream.New(c.conn); err != nil {
		c.conn.Close()
		return nil, err
	}
	return c, nil
}

// login opens a connection with the hub's own key.
func (c *Client) login(login string) (*nats.Conn, error) {
	conn, err := nats.Connect(c.running.NATS, nats.Secure(link.Pinned(c.keys.identity.ID)), nats.TLSHandshakeFirst(), c.keys.login(), nats.NoReconnect(), nats.Timeout(controlTimeout), nats.Name(login))
	if err != nil {
		return nil, bridge.WithCause(bridge.Unavailable, err, "no hub runs there, or it does not answer: start it with `bridge-hub serve`")
	}
	return conn, nil
}

// Close ends the connection.
func (c *Client) Close() { c.conn.Close() }

// ask sends one request and decodes the answer into value.
func (c *Client) ask(ctx context.Context, operation, text string, value any) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	msg, err := c.conn.RequestWithContext(ctx, controlRoot+c.set.Node+"."+operation, []byte(text))
	if err != nil {
		return bridge.WithCause(bridge.Unavailable, err, "the hub does not answer: whether it did it is not known, `bridge-hub status` may tell")
	}
	var got answer
	if err := json.Unmarshal(msg.Data, &got); err != nil {
		return bridge.Errorf(bridge.Internal, "the hub's answer cannot be read: %v", err)
	}
	if got.Error != "" {
		return bridge.Errorf(got.Code, "%s", strings.TrimSpace(got.Error))
	}
	return json.Unmarshal(got.Value, value)
}

// Invite opens an invitation. Invitation returns its outcome; Withdraw ends it. Like all
// operations of Client, it fails with the code of the hub's refusal, and with Unavailable if
// the hub does not answer.
func (c *Client) Invite(ctx context.Context) (invited Invited, err error) {
	return invited, c.ask(ctx, opInvite, "", &invited)
}

// Invitation returns the outcome of an invitation. It fails as Invite does.
func (c *Client) Invitation(ctx context.Context, id string) (state Invitation, err error) {
	return state, c.ask(ctx, opInvitation, id, &state)
}

// Withdraw ends an unused invitation. It fails as Invite does.
func (c *Client) Withdraw(ctx context.Context, id string) error {
	return c.ask(ctx, opWithdraw, id, new(any))
}

// PCs returns the PCs of the team. It fails as Invite does.
func (c *Client) PCs(ctx context.Context) (members []Member, err error) {
	return members, c.ask(ctx, opPCs, "", &members)
}

// Remove ends a PC's membership at once. It fails with NotFound if no PC of the team has that
// name, and otherwise as Invite does.
func (c *Client) Remove(ctx context.Context, name string) (pc PC, err error) {
	return pc, c.ask(ctx, opRemove, name, &pc)
}

// Status returns the status of the hub. It fails as Invite does.
func (c *Client) Status(ctx context.Context) (status Status, err error) {
	return status, c.ask(ctx, opStatus, "", &status)
}
