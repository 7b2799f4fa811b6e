package subject

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// A hub program publishes presence in lines, many in one signed message. Otherwise each
// new PC would have to read and verify two messages of each other PC, and each of these
// one of it. A plain NATS server has no such program.

// Presence returns the subject where a hub's node publishes presence changes to its PCs.
func Presence(team, node string) string { return "bridge.there.v1." + team + "." + node }

// PresenceRequest returns the subject where a PC requests all lines from a node. The answers are
// signed under the PC's reply subject, so that earlier answers cannot replace them.
func PresenceRequest(team, node, pc string) string { return Presence(team, node) + "." + pc }

// Refused returns the subject where a node reports what it refused a PC. Reports are
// sealed like an entry of the roster, because a PC can direct the engine's answers there.
func Refused(team, node, pc string) string { return refusedIn(team) + node + "." + pc }

func refusedIn(team string) string { return "bridge.refused.v1." + team + "." }

// ParseRefused parses a Refused subject; ok is false for another subject.
func ParseRefused(team, at string) (node, pc string, ok bool) {
	rest, ok := strings.CutPrefix(at, refusedIn(team))
	node, pc, _ = strings.Cut(rest, ".")
	return node, pc, ok
}

// The reasons of a refusal.
const (
	RefusedForbidden = "forbidden" // the PC may not publish or subscribe there
	RefusedTooLarge  = "too large"
	RefusedFlooding  = "flooding" // and it was banned for a while
)

// Refusal counts what the hub refused a PC for one reason since its nodes started. Last
// is in Unix milliseconds, by a node's clock.
type Refusal struct {
	Why   string            `json:"why"`
	Count int64             `json:"count"`
	Last  bridge.UnixMillis `json:"last"`
}

// ByHub returns the permissions of For and those for a hub's own program.
func ByHub(team, pc string) Permissions {
	p := For(team, pc)
	p.Publish = append(p.Publish, PresenceRequest(team, "*", pc))
	p.Subscribe = append(p.Subscribe, Presence(team, "*"))
	return p
}

// Line is a hub's state of one PC.
type Line struct {
	PC string
	// Entry is the number of the roster's entry; Name, Removed and Box are its content.
	Entry   int64
	Name    string
	Removed bool
	Box     string
	// Number is that of the PC's last presence announcement; 0 for none. At is its
	// arrival by the node's clock, in Unix milliseconds.
	Number int64
	At     int64
	// Left is set if it disconnected without announcing it.
	Left bool
	// Word is the announcement as it was signed; empty if it is unchanged.
	Word, Key, Signature []byte
	// Refusals are all refusals; an empty list has no meaning.
	Refusals []Refusal
}

// PresenceMessage is a message of lines. Now is the node's clock in Unix milliseconds; More is set
// if another message follows.
type PresenceMessage struct {
	Now   int64
	More  bool
	Lines []Line
}

// The flags of a line.
const (
	lineRemoved = 1 << iota
	lineLeft
)

const toldVersion = 1

// Append appends the encoded line to data. It fails with Invalid for a wrong id.
func (l Line) Append(data []byte) ([]byte, error) {
	id, err := hex.DecodeString(l.PC)
	if err != nil || len(id) != idDigits/2 {
		return data, bridge.Errorf(bridge.Invalid, "%s is no PC's identity", shown(l.PC))
	}
	marks := byte(0)
	if l.Removed {
		marks |= lineRemoved
	}
	if l.Left {
		marks |= lineLeft
	}
	data = append(append(data, marks), id...)
	for _, number := range []int64{l.Entry, l.Number, l.At} {
		data = binary.AppendVarint(data, number)
	}
	for _, part := range [][]byte{[]byte(l.Name), []byte(l.Box), l.Word, l.Key, l.Signature} {
		data = append(binary.AppendUvarint(data, uint64(len(part))), part...)
	}
	data = binary.AppendVarint(data, int64(len(l.Refusals)))
	for _, refusal := range l.Refusals {
		data = append(binary.AppendUvarint(data, uint64(len(refusal.Why))), refusal.Why...)
		data = binary.AppendVarint(binary.AppendVarint(data, refusal.Count), refusal.Last)
	}
	return data, nil
}

// EncodePresence returns a message of lines that Append has encoded.
func EncodePresence(now time.Time, more bool, lines []byte) []byte {
	head := []byte{toldVersion, 0}
	if more {
		head[1] = 1
	}
	return append(binary.AppendVarint(head, now.UnixMilli()), lines...)
}

// ParsePresence decodes a message of lines; their words and keys share data's memory. It fails with
// Unsupported for another version, and with Invalid if the message is incomplete.
func ParsePresence(data []byte) (t PresenceMessage, err error) {
	if len(data) < 2 || data[0] != toldVersion {
		return t, bridge.Errorf(bridge.Unsupported, "the hub tells who is there in a form that this Bridge does not know")
	}
	t.More = data[1] == 1
	r := reader{rest: data[2:]}
	for t.Now = r.number(); len(r.rest) > 0 && !r.short; {
		t.Lines = append(t.Lines, r.line())
	}
	if r.short {
		return PresenceMessage{}, bridge.Errorf(bridge.Invalid, "what the hub tells of who is there is cut short")
	}
	return t, nil
}

// reader reads values from the front of the rest.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) line() (l Line) {
	marks := r.take(1)
	id := r.take(idDigits / 2)
	if r.short {
		return l
	}
	l.Removed, l.Left = marks[0]&lineRemoved != 0, marks[0]&lineLeft != 0
	l.PC = hex.EncodeToString(id)
	l.Entry, l.Number, l.At = r.number(), r.number(), r.number()
	l.Name, l.Box, l.Word, l.Key, l.Signature = string(r.part()), string(r.part()), r.part(), r.part(), r.part()
	for count := r.number(); count > 0 && !r.short; count-- {
		l.Refusals = append(l.Refusals, Refusal{Why: string(r.part()), Count: r.number(), Last: r.number()})
	}
	return l
}

func (r *reader) take(n uint64) []byte {
	if r.short = r.short || n > uint64(len(r.rest)); r.short {
		return nil
	}
	chunk := r.rest[:n:n]
	r.rest = r.rest[n:]
	return chunk
}

func (r *reader) part() []byte {
	size, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.short = true
		return nil
	}
	r.rest = r.rest[n:]
	return r.take(size)
}

func (r *reader) number() int64 {
	number, n := binary.Varint(r.rest)
	if n <= 0 {
		r.short = true
		return 0
	}
	r.rest = r.rest[n:]
	return number
}
