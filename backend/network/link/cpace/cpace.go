// Package cpace derives a strong secret key from a short code that two people share
// (RMT-01). It is CPace as draft-irtf-cfrg-cpace-21 describes it, in its setting with an
// initiator and a responder, over ristretto255 with SHA-512. An eavesdropper learns nothing
// about the code, and a participant has one guess.
//
// The caller confirms the key on both sides, and limits the number of attempts.
package cpace

import (
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"

	"github.com/gtank/ristretto255"

	"bridge/backend/core/bridge"
)

const (
	// ShareBytes is the length of what one side sends to the other.
	ShareBytes = 32
	// KeyBytes is the length of the key that comes of it.
	KeyBytes = sha512.Size

	domain    = "CPaceRistretto255"
	keyDomain = domain + "_ISK"
)

// Setting is what both sides must agree on, or they get different keys. All of it
// but the code may be known to everybody.
type Setting struct {
	Code    []byte // the secret that people carry from one to the other; must not be empty
	Channel []byte // who talks to whom, and over what
	Session []byte // random, new each time
	// Initiator and Responder are what each side says with its share.
	Initiator, Responder []byte
}

// Exchange is one side of one exchange.
type Exchange struct {
	setting   Setting
	initiates bool
	secret    *ristretto255.Scalar
	share     []byte
}

// New begins an exchange as its initiator or as its responder. It fails with Invalid if the
// code is empty.
func New(setting Setting, initiates bool) (*Exchange, error) {
	if len(setting.Code) == 0 {
		return nil, bridge.Errorf(bridge.Invalid, "the code is empty")
	}
	random := make([]byte, 64)
	_, _ = rand.Read(random) // it never fails
	return begin(setting, initiates, ristretto255.NewScalar().FromUniformBytes(random)), nil
}

func begin(setting Setting, initiates bool, secret *ristretto255.Scalar) *Exchange {
	share := ristretto255.NewElement().ScalarMult(secret, generator(setting))
	return &Exchange{setting: setting, initiates: initiates, secret: secret, share: share.Encode(nil)}
}

// Share is what the other side needs, ShareBytes long.
func (e *Exchange) Share() []byte { return e.share }

// Key makes the key of the other side's share, KeyBytes long. It fails with Invalid if the
// share is the identity, or no group element in its only encoding.
func (e *Exchange) Key(peerShare []byte) ([]byte, error) {
	element, identity := ristretto255.NewElement(), ristretto255.NewElement()
	if len(peerShare) != ShareBytes || element.Decode(peerShare) != nil {
		return nil, bridge.Errorf(bridge.Invalid, "the other side's share is no element of the group")
	}
	common := ristretto255.NewElement().ScalarMult(e.secret, element)
	if common.Equal(identity) == 1 {
		return nil, bridge.Errorf(bridge.Invalid, "the other side's share is the identity")
	}
	first, second := e.share, peerShare
	if !e.initiates {
		first, second = second, first
	}
	hash := sha512.New()
	hash.Write(join([]byte(keyDomain), e.setting.Session, common.Encode(nil)))
	hash.Write(join(first, e.setting.Initiator))
	hash.Write(join(second, e.setting.Responder))
	return hash.Sum(nil), nil
}

// generator makes the group element that the code stands for.
func generator(setting Setting) *ristretto255.Element {
	sum := sha512.Sum512(generatorString(setting))
	return ristretto255.NewElement().FromUniformBytes(sum[:])
}

// generatorString fills the hash's first block with the domain and the code, so that
// hashing takes the same time whatever the code is.
func generatorString(setting Setting) []byte {
	head := join([]byte(domain), setting.Code)
	padding := make([]byte, max(0, sha512.BlockSize-1-len(head)))
	return append(head, join(padding, setting.Channel, setting.Session)...)
}

// join puts each part behind its length, as LEB128 has it.
func join(parts ...[]byte) []byte {
	var joined []byte
	for _, part := range parts {
		joined = binary.AppendUvarint(joined, uint64(len(part)))
		joined = append(joined, part...)
	}
	return joined
}
