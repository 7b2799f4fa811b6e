package subject

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
)

// Member is what the roster says of one PC of the team. The hub seals it with its own key
// under the PC's BucketKey: what lies there and Open refuses, somebody has slipped in by
// the engine's answers, and says nothing.
type Member struct {
	Name string `json:"name"` // unique in the team
	// Removed says that it belongs to the team no more. The hub writes that in place of
	// deleting the key: a deletion cannot be signed.
	Removed bool `json:"removed,omitempty"`
	// Box is its public key, as box.Text writes it, where it opens what is sealed to it. It
	// need not be believed: its SHA-256 is the PC's identity.
	Box string `json:"box,omitempty"`
}

const maxMemberBytes = 1 << 10

// ParseMember reads an entry of the roster.
func ParseMember(data []byte) (m Member, err error) {
	if err := bridge.DecodeAdditive(data, maxMemberBytes, &m); err != nil {
		return Member{}, err
	}
	if err := remote.CheckName(m.Name); err != nil {
		return Member{}, err
	}
	return m, nil
}

// Encode is the entry as it is written.
func (m Member) Encode() ([]byte, error) { return json.Marshal(m) }

// sealed is an entry as it lies in the bucket. Its proof is within: the engine's own
// client for buckets hands on no headers.
type sealed struct {
	Body      []byte `json:"body"`
	Key       []byte `json:"key"`
	Number    int64  `json:"number"`
	Signature []byte `json:"signature"`
}

// Seal makes an entry of the roster that the holder of the key has said under that
// subject. Of two entries the one with the larger number counts.
func Seal(sign func(message []byte) (key, signature []byte), subject string, number int64, body []byte) ([]byte, error) {
	s := sealed{Body: body, Number: number}
	s.Key, s.Signature = sign(Signed(subject, number, body))
	return json.Marshal(s)
}

// SealedBy is the identity of the key that an entry claims to be sealed with; "" for what
// is no entry. It is no proof: Open is.
func SealedBy(data []byte) string {
	var s sealed
	if err := bridge.DecodeAdditive(data, 4*maxMemberBytes, &s); err != nil || len(s.Key) == 0 {
		return ""
	}
	sum := sha256.Sum256(s.Key)
	return hex.EncodeToString(sum[:])
}

// Open reads an entry that the hub of that identity has sealed under that subject.
func Open(hub, subject string, data []byte) (body []byte, number int64, err error) {
	var s sealed
	if err := bridge.DecodeAdditive(data, 4*maxMemberBytes, &s); err != nil {
		return nil, 0, err
	}
	proof := Proof{Key: s.Key, Number: s.Number, Signature: s.Signature}
	if err := proof.Check(hub, subject, s.Body); err != nil {
		return nil, 0, err
	}
	return s.Body, s.Number, nil
}

// Left is what the hub says under a PC's key of presence when the PC's connections have
// ended without a goodbye. It is sealed like an entry of the roster.
type Left struct {
	Gone bool `json:"gone"`
	// Number is that of the PC's last word: what it says with a larger one, it says after.
	Number int64 `json:"number"`
}

// ParseLeft reads the hub's word.
func ParseLeft(data []byte) (l Left, err error) {
	if err := bridge.DecodeAdditive(data, maxMemberBytes, &l); err != nil {
		return Left{}, err
	}
	if !l.Gone || l.Number <= 0 {
		return Left{}, bridge.Errorf(bridge.Invalid, "the hub's word about a PC does not say which word of the PC has ended")
	}
	return l, nil
}

// minPrefix is how much of an identity names a PC.
const minPrefix = 12

// FindPC is the one of a team's PCs that people mean: by its name, by its identity or
// at least the first 12 digits of it, spaced as they are shown. NotFound where none or
// several are meant.
func FindPC[PC any](all []PC, text string, of func(PC) (name, id string)) (PC, error) {
	var found []PC
	start := strings.ReplaceAll(text, " ", "")
	for _, pc := range all {
		name, id := of(pc)
		if name == text {
			return pc, nil
		}
		if len(start) >= minPrefix && strings.HasPrefix(id, start) {
			found = append(found, pc)
		}
	}
	if len(found) != 1 {
		var none PC
		return none, bridge.Errorf(bridge.NotFound, "no PC %q belongs to the team", text)
	}
	return found[0], nil
}
