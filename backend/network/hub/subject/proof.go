package subject

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"strconv"

	"bridge/backend/core/bridge"
)

// The headers of a [Proof].
const (
	HeaderKey       = "Bridge-Key"
	HeaderNumber    = "Bridge-Number"
	HeaderSignature = "Bridge-Signature"
)

const signedLabel = "bridge-hub-v1"

// Proof shows that a PC itself published something under a subject.
type Proof struct {
	Key []byte // the PC's public key as certificates hold it; its SHA-256 is the id
	// Number grows with every message of the PC, across restarts too: its clock in
	// nanoseconds, or the last number plus one. A receiver of frames ignores numbers that
	// are not above the last.
	Number    int64
	Signature []byte
}

// Signed returns the data that a PC signs: the subject, so that the message is valid
// under no other, the number, and the body's hash.
func Signed(subject string, number int64, body []byte) []byte {
	sum := sha256.Sum256(body)
	text := signedLabel + "\n" + subject + "\n" + strconv.FormatInt(number, 10) + "\n" + hex.EncodeToString(sum[:])
	return []byte(text)
}

// Check fails with Unauthorized if the PC did not publish body under that subject.
func (p Proof) Check(pc, subject string, body []byte) error {
	sum := sha256.Sum256(p.Key)
	if hex.EncodeToString(sum[:]) != pc {
		return bridge.Errorf(bridge.Unauthorized, "what came under %s was not signed with the key of that PC", shown(subject))
	}
	public, err := x509.ParsePKIXPublicKey(p.Key)
	key, isEd25519 := public.(ed25519.PublicKey)
	if err != nil || !isEd25519 || !ed25519.Verify(key, Signed(subject, p.Number, body), p.Signature) {
		return bridge.Errorf(bridge.Unauthorized, "the signature of what came under %s is wrong", shown(subject))
	}
	return nil
}

// Headers returns the proof as headers.
func (p Proof) Headers() map[string]string {
	return map[string]string{
		HeaderKey:       base64.StdEncoding.EncodeToString(p.Key),
		HeaderNumber:    strconv.FormatInt(p.Number, 10),
		HeaderSignature: base64.StdEncoding.EncodeToString(p.Signature),
	}
}

// ParseProof reads a proof from headers; get returns "" for a missing one. It fails with
// Unauthorized if a header is missing or malformed.
func ParseProof(get func(header string) string) (p Proof, err error) {
	if p.Key, err = base64.StdEncoding.Strict().DecodeString(get(HeaderKey)); err == nil {
		p.Signature, err = base64.StdEncoding.Strict().DecodeString(get(HeaderSignature))
	}
	if err == nil {
		p.Number, err = strconv.ParseInt(get(HeaderNumber), 10, 64)
	}
	if err != nil || len(p.Key) == 0 || len(p.Signature) != ed25519.SignatureSize || p.Number <= 0 {
		return Proof{}, bridge.Errorf(bridge.Unauthorized, "what came is not signed")
	}
	return p, nil
}
