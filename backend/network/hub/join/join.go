// Package join lets a PC join a team (HUB-03). The PC proves the hub's one-time code
// without revealing it, on a connection of two verified identities. It sends the key for
// its NATS logins, and gets the team's addresses and its name. Both sides are here;
// package link defines the messages, and why a code of eight characters suffices.
package join

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strconv"

	"github.com/nats-io/nkeys"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
)

const (
	// Port is the default port for enrolment, NATSPort that for NATS.
	Port     = 4779
	NATSPort = 4780

	maxURLs      = 8
	maxURLChars  = 200
	maxWordBytes = 2 << 10
)

// request is what a PC sends with its proof.
type request struct {
	Key string `json:"key"` // the public one of NATS: U and 55 letters and digits
	// Opens is set if it can open what is sealed to its certificate's key.
	Opens bool `json:"opens,omitempty"`
}

// Answer is the hub's answer to an admitted PC.
type Answer struct {
	Team string `json:"team"`
	Name string `json:"name"` // of this PC in the team
	// URLs are the addresses of NATS, tls://host:port. Without any, NATS is at Port of
	// the machine where the PC enrolled.
	URLs []string `json:"urls,omitempty"`
	Port int      `json:"port,omitempty"`
}

// Membership is what a PC stores of its team. The seed is secret.
type Membership struct {
	Team     string            `json:"team"`
	Name     string            `json:"name"`
	Hub      string            `json:"hub"`               // the identity that every URL must prove: link.Pinned
	Address  string            `json:"address,omitempty"` // where it joined
	URLs     []string          `json:"urls"`
	Seed     string            `json:"seed,omitempty"` // its key for NATS
	JoinedAt bridge.UnixMillis `json:"joinedAt"`
	// Access replaces Seed for the team's own NATS server. Hub is then the identity of
	// the key that seals the roster, and the URLs do not prove it. Access holds a secret,
	// too.
	Access *externalnats.Access `json:"access,omitempty"`
}

// Key returns this PC's public key for NATS. It fails with Storage if the seed is damaged.
func (m Membership) Key() (string, error) {
	if m.Access != nil {
		return m.Access.Key()
	}
	pair, err := nkeys.FromSeed([]byte(m.Seed))
	if err != nil {
		return "", bridge.Errorf(bridge.Storage, "the key for the team's hub, in network/team.json, is damaged")
	}
	return pair.PublicKey()
}

// PC is a PC that knew the code.
type PC struct {
	ID   string // proved by its certificate
	Name string // its own name
	Key  string // its public key for NATS
	Box  string // as in subject.Member
}

// Join makes this PC a member of the team whose hub is at that address, by the hub's
// code. When Join returns, the hub has recorded it and record has returned. After an
// error this PC knows no team. The hub may know the PC already, and admits it again by
// another code.
func Join(ctx context.Context, identity link.Identity, name, address, code string, record func(Membership) error) error {
	address, err := withPort(address)
	if err != nil {
		return err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return err
	}
	offer, err := json.Marshal(request{Key: public, Opens: true})
	if err != nil {
		return err
	}
	return link.Enrol(ctx, identity, name, address, code, offer, func(hub link.Pair, answer []byte) error {
		m, err := parseAnswer(answer, address)
		if err != nil {
			return bridge.WithCause(bridge.CodeOf(err), err, "what the hub answers cannot be used: "+err.Error())
		}
		m.Hub, m.Seed, m.JoinedAt = hub.ID, string(seed), hub.PairedAt
		return record(m)
	})
}

// withPort adds the default port to an address without one. It fails with Invalid for a bad one.
func withPort(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	var wrong *net.AddrError
	if errors.As(err, &wrong) && wrong.Err == "missing port in address" {
		host, port, err = address, strconv.Itoa(Port), nil
	}
	number, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || number == 0 || host == "" {
		return "", bridge.Errorf(bridge.Invalid, "%q is no address of a hub: that is host:port, as in hub.example:%d", address, Port)
	}
	return net.JoinHostPort(host, port), nil
}

func parseAnswer(data []byte, address string) (Membership, error) {
	var answer Answer
	if err := bridge.DecodeAdditive(data, maxWordBytes, &answer); err != nil {
		return Membership{}, err
	}
	if err := subject.CheckTeam(answer.Team); err != nil {
		return Membership{}, err
	}
	if err := remote.CheckName(answer.Name); err != nil {
		return Membership{}, err
	}
	m := Membership{Team: answer.Team, Name: answer.Name, Address: address, URLs: answer.URLs}
	if len(m.URLs) == 0 {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return Membership{}, err
		}
		m.URLs = []string{"tls://" + net.JoinHostPort(host, strconv.Itoa(answer.Port))}
	}
	return m, CheckURLs(m.URLs)
}

// CheckURLs fails for URLs at which no NATS of a team can be.
func CheckURLs(urls []string) error {
	if len(urls) > maxURLs {
		return bridge.Errorf(bridge.TooLarge, "a team has at most %d URLs", maxURLs)
	}
	for _, text := range urls {
		at, err := url.Parse(text)
		if err == nil {
			_, err = strconv.ParseUint(at.Port(), 10, 16)
		}
		if err != nil || len(text) > maxURLChars || at.Scheme != "tls" || at.Hostname() == "" || at.Port() == "0" || text != "tls://"+at.Host {
			return bridge.Errorf(bridge.Invalid, "%q is no URL of a team's NATS: that is tls://host:port", text)
		}
	}
	return nil
}

// Serve admits a PC that knows the invitation's code, on a connection verified by a link
// listener with Hub set. accept records the membership durably and returns the answer. If
// accept fails, its error is sent to the PC, which is not admitted.
func Serve(conn *tls.Conn, identity link.Identity, team string, invitation *link.Invitation, accept func(PC) (Answer, error)) (PC, error) {
	var joiner PC
	_, err := invitation.AdmitPC(conn, identity, team, func(pair link.Pair, offer []byte) ([]byte, error) {
		var message request
		if err := bridge.DecodeAdditive(offer, maxWordBytes, &message); err != nil {
			return nil, err
		}
		if !nkeys.IsValidPublicUserKey(message.Key) {
			return nil, bridge.Errorf(bridge.Invalid, "the PC shows no key for NATS")
		}
		pc := PC{ID: pair.ID, Name: pair.Name, Key: message.Key}
		if message.Opens {
			pc.Box = seal.Text(conn.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
		}
		answer, err := accept(pc)
		if err != nil {
			return nil, err
		}
		joiner = pc
		return json.Marshal(answer)
	})
	return joiner, err
}
