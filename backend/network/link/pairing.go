package link

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/link/cpace"
	"bridge/backend/platform/wire"
)

// Two PCs pair over a TLS connection on which each shows its certificate:
//
//	inviter: greeting   the invitation's id, its name
//	joiner:  request    the same id, random bytes, its name, its share
//	inviter: answer     its share
//	joiner:  proof      that it holds the key
//	inviter: proof      that it does, and has recorded the pair
//	joiner:  done       it has recorded the pair, too
//
// The key depends on the code, on both certificates and on this connection. A man in the
// middle shows other certificates and gets another key.
const (
	pairVersion     = 1
	pairTimeout     = 20 * time.Second // of one exchange
	maxPairBytes    = 4 << 10          // of one message
	pairRandomBytes = 16
	maxOfferBytes   = 2 << 10 // of what goes along with a proof

	// RFC 9266.
	exporterLabel = "EXPORTER-Channel-Binding"
	exporterBytes = 32
)

// purpose is the reason for which two sides meet by a code. A code for one purpose is not
// valid for another.
type purpose struct {
	protocol string // of the connection
	label    string // of the channel and of the proofs

	// Texts for people: the other side, what it does and what this side does, how to open
	// an invitation there, and what to check if it does not answer.
	other, does, doing, invite, absent string
}

var pairing = purpose{
	protocol: "bridge-pair/1", label: "bridge-pair-v1", other: "the other PC", does: "pairs", doing: "pairing",
	invite: "run `bridge pair` on the other PC",
}

func (p purpose) joinerProof() string  { return p.label + " joiner" }
func (p purpose) inviterProof() string { return p.label + " inviter" }

type pairMessage struct {
	Version    int    `json:"version,omitempty"`
	Invitation string `json:"invitation,omitempty"`
	Name       string `json:"name,omitempty"`
	Session    []byte `json:"session,omitempty"`
	Share      []byte `json:"share,omitempty"`
	Proof      []byte `json:"proof,omitempty"`
	Offer      []byte `json:"offer,omitempty"` // sent with the proof, for the step after it
	Done       bool   `json:"done,omitempty"`
	// Refused ends the exchange. It is a full sentence only for a side that has proved
	// knowledge of the code.
	Refused string `json:"refused,omitempty"`
}

// exchange is one pairing, for either side.
type exchange struct {
	purpose purpose
	conn    *tls.Conn
	in      *bufio.Reader
	self    string // this side's id
	peer    string // the other side's id, proved by its certificate
	binding []byte // the channel binding of this connection
}

// startExchange starts an exchange on a connection after its handshake.
func startExchange(conn *tls.Conn, self string, purpose purpose) (*exchange, error) {
	state := conn.ConnectionState()
	binding, err := state.ExportKeyingMaterial(exporterLabel, nil, exporterBytes)
	if err != nil {
		return nil, err
	}
	return &exchange{
		purpose: purpose, conn: conn, in: bufio.NewReaderSize(conn, maxPairBytes), self: self, peer: peerID(state.PeerCertificates[0]), binding: binding,
	}, nil
}

func (x *exchange) send(message pairMessage) error {
	frame, err := wire.AppendFrame(nil, maxPairBytes, func(buf []byte) ([]byte, error) {
		text, err := json.Marshal(message)
		return append(buf, text...), err
	})
	if err == nil {
		_, err = x.conn.Write(frame)
	}
	return err
}

func (x *exchange) receive() (message pairMessage, err error) {
	payload, err := wire.ReadFrame(x.in, maxPairBytes)
	if err != nil {
		return message, err
	}
	if err := bridge.DecodeAdditive(payload, maxPairBytes, &message); err != nil {
		return message, err
	}
	if message.Refused != "" {
		return message, bridge.Errorf(bridge.Denied, "%s refused: %s", x.purpose.other, message.Refused)
	}
	return message, nil
}

// setting returns the values on which both sides must agree.
func (x *exchange) setting(code, invitation string, session []byte, joiner, joinerName, inviter, inviterName string) cpace.Setting {
	list := func(parts ...string) []byte {
		text, _ := json.Marshal(parts) // strings can always be encoded
		return text
	}
	return cpace.Setting{
		Code: []byte(code), Session: session,
		Channel:   list(x.purpose.label, joiner, inviter, invitation),
		Initiator: append(list(joinerName), x.binding...),
		Responder: append(list(inviterName), x.binding...),
	}
}

func proof(key []byte, label string) []byte {
	mac := hmac.New(sha512.New, key)
	mac.Write([]byte(label))
	return mac.Sum(nil)
}

// Join pairs with the PC at that address by its code. When it returns, the pair is durable in
// the book on both sides. If the last message was lost, the other side drops its unconfirmed
// pair after a day. Join fails with Invalid for a bad code or this PC's own address. It fails
// with Denied if the other side refuses the code, and with Unauthorized if that side does not
// know it. It fails with Storage if the book cannot be written.
func Join(ctx context.Context, identity Identity, book *PairList, name, address, code string) (Pair, error) {
	pair, err := meet(ctx, identity, address, code, joining{
		purpose: pairing, name: name, now: book.now, check: book.Check,
		record: func(pair Pair, _ []byte) error { return book.Add(pair) },
	})
	if err != nil {
		return Pair{}, err
	}
	return pair, book.Update(pair.ID, func(p *Pair) { p.Address = address })
}

// joining configures the side that enters the code.
type joining struct {
	purpose purpose
	name    string // this side's
	offer   []byte // data that the other side gets with this side's proof
	now     func() time.Time
	// check may refuse the other side before it gets a proof. record stores the result
	// durably, with the data that came with the other side's proof.
	check  func(Pair) error
	record func(pair Pair, offer []byte) error
}

// meet runs the exchange with the PC at that address.
func meet(ctx context.Context, identity Identity, address, code string, j joining) (Pair, error) {
	clean, err := CleanCode(code)
	if err == nil {
		err = remote.CheckName(j.name)
	}
	if err != nil {
		return Pair{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, pairTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: identity.config(j.purpose.protocol, func(id string) error {
		if id == identity.ID {
			return bridge.Errorf(bridge.Invalid, "%s is this very PC", address)
		}
		return nil
	})}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return Pair{}, j.purpose.noWay(address, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	x, err := startExchange(conn.(*tls.Conn), identity.ID, j.purpose) //nolint:errcheck // tls dialed it
	if err != nil {
		return Pair{}, err
	}
	pair, err := x.join(j, clean)
	if err != nil {
		return Pair{}, j.purpose.explain(address, err)
	}
	return pair, nil
}

func (x *exchange) join(j joining, code string) (Pair, error) {
	greeting, err := x.receive()
	if err != nil {
		return Pair{}, err
	}
	if greeting.Version != pairVersion {
		return Pair{}, x.purpose.otherVersion(greeting.Version)
	}
	pair := Pair{ID: x.peer, Name: greeting.Name, PairedAt: j.now().UnixMilli(), Confirmed: true}
	if err := j.check(pair); err != nil {
		return Pair{}, err
	}
	session := make([]byte, pairRandomBytes)
	_, _ = rand.Read(session) // it never fails
	side, err := cpace.New(x.setting(code, greeting.Invitation, session, x.self, j.name, x.peer, greeting.Name), true)
	if err != nil {
		return Pair{}, err
	}
	err = x.send(pairMessage{Version: pairVersion, Invitation: greeting.Invitation, Name: j.name, Session: session, Share: side.Share()})
	if err != nil {
		return Pair{}, err
	}
	answer, err := x.receive()
	if err != nil {
		return Pair{}, err
	}
	key, err := side.Key(answer.Share)
	if err == nil {
		err = x.send(pairMessage{Proof: proof(key, x.purpose.joinerProof()), Offer: j.offer})
	}
	if err != nil {
		return Pair{}, err
	}
	accepted, err := x.receive()
	if err != nil {
		return Pair{}, err
	}
	if !hmac.Equal(accepted.Proof, proof(key, x.purpose.inviterProof())) {
		return Pair{}, bridge.Errorf(bridge.Unauthorized, "%s refused: %s", x.purpose.other, wrongCode)
	}
	if err := j.record(pair, accepted.Offer); err != nil {
		return Pair{}, err
	}
	_ = x.send(pairMessage{Done: true}) // if it is lost, the first link confirms the pair
	return pair, nil
}

// noWay returns the error for people of a connection that could not be made.
func (p purpose) noWay(address string, err error) error {
	var cause *bridge.Error
	var named *net.DNSError
	var network net.Error
	var garbled tls.RecordHeaderError
	var failed *net.OpError
	away := errors.As(err, &failed) && failed.Op == "dial"
	strange := errors.As(err, &garbled) || failed != nil && failed.Op == "remote error" && failed.Err.Error() == "tls: no application protocol"
	why := "no invitation is open at " + address + ", and a code is good once, for ten minutes: " + p.invite + " first"
	switch {
	case errors.As(err, &cause):
		if cause.Code == bridge.Unsupported { // it speaks another protocol
			return bridge.WithCause(cause.Code, err, fmt.Sprintf("what answers at %s is not where %s %s: is the port right?", address, p.other, p.does))
		}
		return cause
	case errors.As(err, &named):
		why = fmt.Sprintf("no machine named %s can be found: is %s the right address?", named.Name, address)
	case errors.As(err, &network) && network.Timeout():
		why = address + " does not answer: is " + p.other + " on, and is the port open?"
	case strange:
		why = fmt.Sprintf("what answers at %s is not where %s %s: is the port right?", address, p.other, p.does)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		why = address + " closed the connection before it answered. Too many others may be connecting to it: try again"
	case away && p.absent != "":
		why = fmt.Sprintf("nothing answers at %s: %s", address, p.absent)
	}
	return bridge.WithCause(bridge.Unavailable, err, why)
}

// explain returns a bridge error unchanged, and describes a lost connection. A side that
// closes in the middle has proved nothing, so this may also be a wrong code.
func (p purpose) explain(address string, err error) error {
	var cause *bridge.Error
	if errors.As(err, &cause) {
		return cause
	}
	return bridge.WithCause(bridge.Unavailable, err, "the connection to "+address+" was lost in the middle of "+p.doing+": try it again")
}

// otherVersion returns the error for a side of another release, and names the older one.
func (p purpose) otherVersion(peerVersion int) error {
	older := "Bridge on this PC"
	if peerVersion < pairVersion {
		older = p.other
	}
	return bridge.Errorf(bridge.Unsupported, "%s %s by version %d, this Bridge by %d: update %s", p.other, p.does, peerVersion, pairVersion, older)
}

// Admit pairs with a PC that knows the invitation's code, on a connection after its handshake.
// A PC without the code learns only that it is wrong. Admit fails with Unauthorized for a wrong
// code, with Conflict if another pair has the name, and if the connection or the book fails.
func (i *Invitation) Admit(conn *tls.Conn, identity Identity, book *PairList, name string) (Pair, error) {
	return i.admit(conn, identity, admission{
		purpose: pairing, name: name, now: book.now,
		record:  func(pair Pair, _ []byte) ([]byte, error) { return nil, book.Add(pair) },
		confirm: func(pair Pair) error { return book.Update(pair.ID, func(p *Pair) { p.Confirmed = true }) },
	})
}

// admission configures the side that issued the code.
type admission struct {
	purpose purpose
	name    string // this side's
	now     func() time.Time
	// record stores the result durably, with the data that came with the other side's
	// proof. It returns the data to send with this side's proof.
	record  func(pair Pair, offer []byte) (answer []byte, err error)
	confirm func(Pair) error // after the other side has recorded it too
}

func (i *Invitation) admit(conn *tls.Conn, identity Identity, a admission) (Pair, error) {
	_ = conn.SetDeadline(time.Now().Add(pairTimeout)) //nolint:forbidigo // the socket goes by the machine's clock
	x, err := startExchange(conn, identity.ID, a.purpose)
	if err != nil {
		return Pair{}, err
	}
	pair, err := x.admit(i, a)
	if err != nil {
		_ = x.send(pairMessage{Refused: refusal(err)})
		return Pair{}, err
	}
	return pair, nil
}

// refusal returns what the joiner may learn of an error.
func refusal(err error) string {
	if knows := (*afterProof)(nil); errors.As(err, &knows) {
		return knows.Error()
	}
	return wrongCode
}

// afterProof is an error that a side with the right code may read.
type afterProof struct{ error }

// Unwrap returns the wrapped error.
func (e *afterProof) Unwrap() error { return e.error }

func (x *exchange) admit(i *Invitation, a admission) (Pair, error) {
	if i.State() != InvitationOpen {
		return Pair{}, errRefused
	}
	if err := x.send(pairMessage{Version: pairVersion, Invitation: i.ID, Name: a.name}); err != nil {
		return Pair{}, err
	}
	request, err := x.receive()
	if err != nil {
		return Pair{}, err
	}
	if request.Version != pairVersion || request.Invitation != i.ID || len(request.Session) != pairRandomBytes || remote.CheckName(request.Name) != nil {
		return Pair{}, errRefused
	}
	code, err := CleanCode(i.Code)
	if err != nil {
		return Pair{}, err
	}
	side, err := cpace.New(x.setting(code, i.ID, request.Session, x.peer, request.Name, x.self, a.name), false)
	if err != nil {
		return Pair{}, err
	}
	key, err := side.Key(request.Share)
	if err == nil {
		err = x.send(pairMessage{Share: side.Share()})
	}
	if err != nil {
		return Pair{}, err
	}
	received, err := x.receive()
	if err != nil {
		return Pair{}, err
	}
	pair := Pair{ID: x.peer, Name: request.Name, PairedAt: a.now().UnixMilli()}
	var answer []byte
	err = i.try(pair.ID,
		func() bool { return hmac.Equal(received.Proof, proof(key, x.purpose.joinerProof())) },
		func() (err error) {
			if answer, err = a.record(pair, received.Offer); err != nil {
				return &afterProof{err}
			}
			return nil
		})
	if err != nil {
		return Pair{}, err
	}
	return x.finish(a, pair, pairMessage{Proof: proof(key, x.purpose.inviterProof()), Offer: answer})
}

// finish informs the joiner that the pair is recorded, and waits for its confirmation.
func (x *exchange) finish(a admission, pair Pair, accepted pairMessage) (Pair, error) {
	if err := x.send(accepted); err != nil {
		return pair, nil //nolint:nilerr // it is recorded here: half-made, until a link is up
	}
	if last, err := x.receive(); err != nil || !last.Done {
		return pair, nil //nolint:nilerr // as above
	}
	pair.Confirmed = true
	return pair, a.confirm(pair)
}
