// Package link implements the link between two paired PCs: the identity of this PC,
// pairing by a code (RMT-01), and connections. Each side proves its identity in every
// handshake (RMT-02). A link carries frames without interpreting them. The owner's policy
// above it decides what the other PC may do.
package link

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"path/filepath"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Identity is this PC's identity: one key, created once. ID is the SHA-256 of the public
// key as certificates hold it, in hexadecimal; names are for people.
type Identity struct {
	ID          string
	certificate tls.Certificate
}

const (
	identityFile     = "identity.pem"
	maxIdentityBytes = 64 << 10

	keyBlock         = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
)

// OpenIdentity reads the identity of the folder, or creates one. It fails for an
// unreadable one, which stays unchanged: another key would be another PC.
func OpenIdentity(folder string) (Identity, error) {
	path := filepath.Join(folder, identityFile)
	data, err := disk.ReadLimited(path, maxIdentityBytes)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = makeIdentity(folder, path)
	}
	if err != nil {
		return Identity{}, bridge.WithCause(bridge.Storage, err, "this PC's identity cannot be read or made: "+disk.Reason(err))
	}
	return parseIdentity(data)
}

func makeIdentity(folder, path string) ([]byte, error) {
	data, err := newIdentity()
	if err == nil {
		err = disk.MakeDir(folder)
	}
	if err == nil {
		err = disk.WriteNew(path, data, disk.PrivateFile)
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return disk.ReadLimited(path, maxIdentityBytes)
	}
	return data, err
}

// newIdentity creates a key and its certificate without expiry: the key proves the
// identity, the certificate's age proves nothing.
func newIdentity() ([]byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Bridge"},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no end
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, block := range []*pem.Block{{Type: keyBlock, Bytes: key}, {Type: certificateBlock, Bytes: certificate}} {
		if err := pem.Encode(&text, block); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func parseIdentity(data []byte) (Identity, error) {
	certificate, err := tls.X509KeyPair(data, data)
	if _, right := certificate.PrivateKey.(ed25519.PrivateKey); err == nil && !right {
		err = errors.New("its key is of another kind")
	}
	if err != nil {
		return Identity{}, bridge.WithCause(bridge.Storage, err, "this PC's identity, network/"+identityFile+", is damaged: put it back from a copy, or move it away and pair anew")
	}
	return Identity{ID: peerID(certificate.Leaf), certificate: certificate}, nil
}

// peerID returns the id that a certificate proves.
func peerID(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// shownBytes is how many characters of an id people compare.
const shownBytes = 12

// Fingerprint returns the part of an id that people compare by eye, in groups of four.
func Fingerprint(id string) string {
	text := []byte{}
	for i := range min(len(id), shownBytes) {
		if i > 0 && i%4 == 0 {
			text = append(text, ' ')
		}
		text = append(text, id[i])
	}
	return string(text)
}

// config returns the TLS settings that both protocols of this package share: TLS 1.3, a
// certificate on both sides, no session resumption. verify checks the id that the other
// side proved.
func (i Identity) config(protocol string, verify func(peerID string) error) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{protocol},
		Certificates:           []tls.Certificate{i.certificate},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, //nolint:gosec // no authority stands between two paired PCs: VerifyConnection compares the key itself
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.NegotiatedProtocol != protocol {
				return bridge.Errorf(bridge.Unsupported, "the other side does not speak %s", protocol)
			}
			if len(state.PeerCertificates) != 1 {
				return bridge.Errorf(bridge.Unauthorized, "the other side showed %s instead of one", bridge.Counted(len(state.PeerCertificates), "certificate"))
			}
			return verify(peerID(state.PeerCertificates[0]))
		},
	}
}
