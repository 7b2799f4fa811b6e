package subject

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
)

// Member is the roster's entry of one PC of the team. The hub seals it with its own key
// under the PC's BucketKey. An entry that Open refuses was injected by the engine's
// answers, and is ignored.
type Member struct {
	Name string `json:"name"` // unique in the team
	// Removed is set if it is no longer in the team. The hub writes that instead of
	// deleting the key, because a deletion cannot be signed.
	Removed bool `json:"removed,omitempty"`
	// Box is its public key, as box.Text writes it, if it can open what is sealed to that
	// key. Its SHA-256 must be the PC's id.
	Box string `json:"box,omitempty"`
}

const maxMemberBytes = 1 << 10

// ParseMember decodes an entry of the roster. It fails with TooLarge over the limit, and with
// Invalid for malformed JSON or a bad name.
func ParseMember(data []byte) (m Member, err error) {
	if err := bridge.DecodeAdditive(data, maxMemberBytes, &m); err != nil {
		return Member{}, err
	}
	if err := remote.CheckName(m.Name); err != nil {
		return Member{}, err
	}
	return m, nil
}

// Encode returns the entry as JSON. It fails only if the JSON encoder does.
func (m Member) Encode() ([]byte, error) { return json.Marshal(m) }

// sealed is an entry as stored in the bucket. It contains its proof, because the engine's
// own client for buckets drops headers.
type sealed struct {
	Body      []byte `json:"body"`
	Key       []byte `json:"key"`
	Number    int64  `json:"number"`
	Signature []byte `json:"signature"`
}

// Seal returns an entry of the roster, signed under that subject. Of two entries, the one with
// the larger number is valid. Seal fails only if the JSON encoder does.
func Seal(sign func(message []byte) (key, signature []byte), subject string, number int64, body []byte) ([]byte, error) {
	s := sealed{Body: body, Number: number}
	s.Key, s.Signature = sign(Signed(subject, number, body))
	return json.Marshal(s)
}

// SealedBy returns the id of the key that an entry claims to be sealed with; "" if it is
// no entry. Only [Open] verifies it.
func SealedBy(data []byte) string {
	var s sealed
	if err := bridge.DecodeAdditive(data, 4*maxMemberBytes, &s); err != nil || len(s.Key) == 0 {
		return ""
	}
	sum := sha256.Sum256(s.Key)
	return hex.EncodeToString(sum[:])
}

// Open returns the content of an entry that the hub with that id has sealed under that subject.
// It fails with Invalid for malformed JSON, and with Unauthorized if the key is another one or
// the signature is wrong.
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

// Left is the hub's entry under a PC's presence key after the PC disconnected without
// announcing it. It is sealed like an entry of the roster.
type Left struct {
	Gone bool `json:"gone"`
	// Number is that of the PC's last announcement: a larger number is a later announcement.
	Number int64 `json:"number"`
}

// ParseLeft decodes the hub's entry. It fails with Invalid if the entry is malformed or has no
// number.
func ParseLeft(data []byte) (l Left, err error) {
	if err := bridge.DecodeAdditive(data, maxMemberBytes, &l); err != nil {
		return Left{}, err
	}
	if !l.Gone || l.Number <= 0 {
		return Left{}, bridge.Errorf(bridge.Invalid, "the hub's word about a PC does not say which word of the PC has ended")
	}
	return l, nil
}

// minPrefix is the minimum length of an id's prefix that names a PC.
const minPrefix = 12

// FindPC returns the PC of a team with that name, id, or id prefix of at least 12 digits,
// with or without spaces. It fails with NotFound if there is none or more than one.
func FindPC[PC any](all []PC, text string, describe func(PC) (name, id string)) (PC, error) {
	var found []PC
	start := strings.ReplaceAll(text, " ", "")
	for _, pc := range all {
		name, id := describe(pc)
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
