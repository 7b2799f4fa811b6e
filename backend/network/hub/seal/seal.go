// Package seal seals what one PC of a team says to another, so that whoever carries it
// cannot read it (network.hub.seal): NaCl's anonymous box, to the X25519 key that belongs
// to the receiver's Ed25519 key. That is the key whose SHA-256 is the PC's identity, so
// nobody can put another one in its place. Who said it a box does not tell: the signature
// over it does.
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

// mark begins what is sealed. No frame begins so: as its length it would be 4 GB.
const mark = "\xffbox1"

// Overhead is how many bytes longer something is when it is sealed.
const Overhead = len(mark) + sha256.Size + box.AnonymousOverhead

// IsSealed reports whether that claims to be sealed.
func IsSealed(body []byte) bool {
	return strings.HasPrefix(string(body[:min(len(body), len(mark))]), mark)
}

// Seal seals a body to the PC with that public key, as certificates carry it, for what is
// said under that subject: under another it cannot be opened, so nobody who cannot read it
// says it as the own.
func Seal(key []byte, subject string, body []byte) ([]byte, error) {
	public, err := exchange(key)
	if err != nil {
		return nil, err
	}
	under := sha256.Sum256([]byte(subject))
	sealed := append(make([]byte, 0, len(body)+Overhead), mark...)
	return box.SealAnonymous(sealed, slices.Concat(under[:], body), public, rand.Reader)
}

// Open opens what was sealed to that key and said under that subject.
func Open(private ed25519.PrivateKey, subject string, sealed []byte) ([]byte, error) {
	key, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	public, err := exchange(key)
	if err != nil {
		return nil, err
	}
	digest := sha512.Sum512(private.Seed()) // of which Ed25519, too, makes its secret
	secret := [32]byte(digest[:])           // X25519 clamps it as Ed25519 does
	under := sha256.Sum256([]byte(subject))
	if IsSealed(sealed) {
		if opened, ok := box.OpenAnonymous(nil, sealed[len(mark):], public, &secret); ok && len(opened) >= len(under) && [sha256.Size]byte(opened) == under {
			return opened[len(under):], nil
		}
	}
	return nil, bridge.Errorf(bridge.Invalid, "it is not sealed to this PC's key, or was said under another subject")
}

// exchange is the X25519 key that belongs to an Ed25519 key: u = (1+y)/(1-y), of RFC 7748.
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
	y, one := new(big.Int).SetBytes(point), big.NewInt(1)
	below := new(big.Int).ModInverse(new(big.Int).Mod(new(big.Int).Sub(one, y), p), p)
	if y.Cmp(p) >= 0 || below == nil {
		return nil, errKey
	}
	u := new(big.Int).Mul(new(big.Int).Add(one, y), below)
	var found [32]byte
	u.Mod(u, p).FillBytes(found[:])
	slices.Reverse(found[:])
	return &found, nil
}

var errKey = bridge.Errorf(bridge.Invalid, "that is no key of a PC")

// Text is a key as it is written.
func Text(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// KeyOf is the key of the PC of that identity, as Text writes it, where that is its own.
func KeyOf(id, text string) (key []byte, is bool) {
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	sum := sha256.Sum256(key)
	return key, err == nil && hex.EncodeToString(sum[:]) == id
}

// Parse reads a key as Text writes it, and says whose it is.
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
