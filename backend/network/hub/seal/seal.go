// Package seal encrypts messages from one PC of a team to another, so that carriers
// cannot read them (network.hub.seal). It uses NaCl's anonymous box, to the X25519 key
// that belongs to the receiver's Ed25519 key. The SHA-256 of that Ed25519 key is the PC's
// identity, so the key cannot be replaced. A box does not identify its sender: the
// signature over it does.
package seal

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"

	"golang.org/x/crypto/nacl/box"

	"bridge/backend/core/bridge"
)

// mark begins sealed data. No frame begins with it: as a frame's length it would be 4 GB.
const mark = "\xffbox1"

// Overhead is how many bytes sealing adds.
const Overhead = len(mark) + sha256.Size + box.AnonymousOverhead

// IsSealed reports whether body has the mark of sealed data.
func IsSealed(body []byte) bool {
	return strings.HasPrefix(string(body[:min(len(body), len(mark))]), mark)
}

// Seal encrypts a body to the PC with that public key, as certificates hold it, for one
// subject. It cannot be opened under another subject, so a PC that cannot read it cannot
// republish it as its own. Seal fails with Invalid for a bad key.
func Seal(key []byte, subject string, body []byte) ([]byte, error) {
	public, err := exchange(key)
	if err != nil {
		return nil, err
	}
	under := sha256.Sum256([]byte(subject))
	sealed := append(make([]byte, 0, len(body)+Overhead), mark...)
	return box.SealAnonymous(sealed, slices.Concat(under[:], body), public, rand.Reader)
}

// Open decrypts data sealed to that key under that subject. It fails with Invalid for any other.
func Open(private ed25519.PrivateKey, subject string, sealed []byte) ([]byte, error) {
	key, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	public, err := exchange(key)
	if err != nil {
		return nil, err
	}
	digest := sha512.Sum512(private.Seed()) // from which Ed25519 derives its secret, too
	secret := [32]byte(digest[:])           // X25519 clamps it as Ed25519 does
	under := sha256.Sum256([]byte(subject))
	if IsSealed(sealed) {
		if opened, ok := box.OpenAnonymous(nil, sealed[len(mark):], public, &secret); ok && len(opened) >= len(under) && [sha256.Size]byte(opened) == under {
			return opened[len(under):], nil
		}
	}
	return nil, bridge.Errorf(bridge.Invalid, "it is not sealed to this PC's key, or was said under another subject")
}

// exchange returns the X25519 key of an Ed25519 key: u = (1+y)/(1-y), see RFC 7748.
func exchange(key []byte) (*[32]byte, error) {
	parsed, err := x509.ParsePKIXPublicKey(key)
	public, right := parsed.(ed25519.PublicKey)
	if err != nil || !right {
		return nil, errKey
	}
	point := slices.Clone(public)
	point[31] &= 0x7f // the sign of x
	slices.Reverse(point)
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	y, item := new(big.Int).SetBytes(point), big.NewInt(1)
	below := new(big.Int).ModInverse(new(big.Int).Mod(new(big.Int).Sub(item, y), p), p)
	if y.Cmp(p) >= 0 || below == nil {
		return nil, errKey
	}
	u := new(big.Int).Mul(new(big.Int).Add(item, y), below)
	var found [32]byte
	u.Mod(u, p).FillBytes(found[:])
	slices.Reverse(found[:])
	return &found, nil
}

var errKey = bridge.Errorf(bridge.Invalid, "that is no key of a PC")

// Text returns the written form of a key.
func Text(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// KeyOf decodes a key written by Text. is reports whether it belongs to the PC with that id.
func KeyOf(id, text string) (key []byte, is bool) {
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	sum := sha256.Sum256(key)
	return key, err == nil && hex.EncodeToString(sum[:]) == id
}

// Parse decodes a key written by [Text], and returns it with its PC's id. It fails with Invalid
// for a bad key.
func Parse(text string) (key []byte, id string, err error) {
	key, err = base64.StdEncoding.Strict().DecodeString(text)
	if err == nil {
		_, err = exchange(key)
	}
	if err != nil {
		return nil, "", errKey
	}
	sum := sha256.Sum256(key)
	return key, hex.EncodeToString(sum[:]), nil
}
