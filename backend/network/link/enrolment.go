package link

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/seal"
)

// enrolment is the purpose of a PC that joins a team's hub. The exchange is that of two
// pairing PCs, with data along with the proofs, and without a book.
var enrolment = purpose{
	protocol: "bridge-enrol/1", label: "bridge-enrol-v1", other: "the hub", does: "takes PCs into its team", doing: "joining",
	invite: "run `bridge-hub invite` on the hub", absent: "does `bridge-hub serve` run there, and is it the address that `bridge-hub invite` shows?",
}

// Enrol makes this PC a member of a team, by the code of the hub at that address. The hub gets
// the offer if the code is right; record stores the hub's answer durably. Enrol fails with
// TooLarge for a large offer, and with Denied if the hub refuses the code. It fails with
// Unauthorized if the hub does not know the code. It also fails with the error of record, and
// if the hub cannot be reached.
func Enrol(ctx context.Context, identity Identity, name, address, code string, offer []byte, record func(hub Pair, answer []byte) error) error {
	if len(offer) > maxOfferBytes {
		return bridge.Errorf(bridge.TooLarge, "an offer of %d bytes does not fit: at most %d do", len(offer), maxOfferBytes)
	}
	_, err := meet(ctx, identity, address, code, joining{
		purpose: enrolment, name: name, offer: offer, now: time.Now, //nolint:forbidigo // it is shown and compared with nothing
		check: func(Pair) error { return nil }, record: record,
	})
	return err
}

// AdmitPC admits a PC that knows the invitation's code to the team, on a connection after
// its handshake. accept records the membership durably and returns the answer for the PC.
// Its error is sent to the PC.
func (i *Invitation) AdmitPC(conn *tls.Conn, identity Identity, name string, accept func(pc Pair, offer []byte) (answer []byte, err error)) (Pair, error) {
	return i.admit(conn, identity, admission{
		purpose: enrolment, name: name, now: i.now, confirm: func(Pair) error { return nil },
		record: func(pc Pair, offer []byte) ([]byte, error) {
			answer, err := accept(pc, offer)
			if err == nil && len(answer) > maxOfferBytes {
				err = bridge.Errorf(bridge.TooLarge, "an answer of %d bytes does not fit: at most %d do", len(answer), maxOfferBytes)
			}
			return answer, err
		},
	})
}

// ServerConfig returns the TLS configuration by which a hub identifies itself to its PCs.
// TLS does not verify the PCs.
func (i Identity) ServerConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate}, SessionTicketsDisabled: true}
}

// Pinned returns the TLS configuration of a PC that accepts only the hub with that id.
func Pinned(hubID string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		InsecureSkipVerify:     true, //nolint:gosec // no authority stands between a PC and its hub: VerifyConnection compares the key itself
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) != 1 || peerID(state.PeerCertificates[0]) != hubID {
				return bridge.Errorf(bridge.Unauthorized, "what answers is not the hub that this PC joined: its key is another one")
			}
			return nil
		},
	}
}

// Key returns the public key of this PC as certificates hold it: its SHA-256 is the ID.
func (i Identity) Key() []byte { return i.certificate.Leaf.RawSubjectPublicKeyInfo }

// Open decrypts data that was sealed to this PC under that subject. It fails with Invalid if it
// was sealed to another key or under another subject.
func (i Identity) Open(subject string, sealed []byte) ([]byte, error) {
	private := i.certificate.PrivateKey.(ed25519.PrivateKey) //nolint:forcetypeassert,errcheck // OpenIdentity makes and takes no other
	return seal.Open(private, subject, sealed)
}

// Sign signs with this PC's key, and returns the public key: its SHA-256 is the ID.
func (i Identity) Sign(message []byte) (key, signature []byte) {
	private := i.certificate.PrivateKey.(ed25519.PrivateKey) //nolint:forcetypeassert,errcheck // OpenIdentity makes and takes no other
	key, _ = x509.MarshalPKIXPublicKey(private.Public())     // such a key can always be encoded
	return key, ed25519.Sign(private, message)
}
