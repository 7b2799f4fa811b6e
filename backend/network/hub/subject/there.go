package subject

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// A hub that has a program beside its NATS tells who is there in lines, many at once and
// with one signature: a PC that comes would otherwise read, and prove, two words of each
// other one, and each of these a word of it. A NATS server alone has nobody who does that.

// There is where one node of a hub tells the PCs that are connected to it what is
// different.
func There(team, node string) string { return "bridge.there.v1." + team + "." + node }

// AskThere is where a PC asks a node for all lines. The answers are signed under the
// subject that the PC has chosen for them, so that no earlier ones pass for them.
func AskThere(team, node, pc string) string { return There(team, node) + "." + pc }

// Refused is where a node tells the others what it has refused a PC, sealed like an entry
// of the roster: a PC can have the engine's answers go there.
func Refused(team, node, pc string) string { return refusedIn(team) + node + "." + pc }

func refusedIn(team string) string { return "bridge.refused.v1." + team + "." }

// ParseRefused reads Refused; ok is false for another subject.
func ParseRefused(team, at string) (node, pc string, ok bool) {
	rest, ok := strings.CutPrefix(at, refusedIn(team))
	node, pc, _ = strings.Cut(rest, ".")
	return node, pc, ok
}

// Why something was refused.
const (
	RefusedForbidden = "forbidden" // the PC may not say or hear that
	RefusedTooLarge  = "too large"
	RefusedFlooding  = "flooding" // and it was thrown out for a while
)

// Refusal is what the hub has refused a PC for one reason since its nodes run. Last is in
// Unix milliseconds, by the clock of a node.
type Refusal struct {
	Why   string            `json:"why"`
	Count int64             `json:"count"`
	Last  bridge.UnixMillis `json:"last"`
}

// ByHub is For with what a hub's own program has besides.
func ByHub(team, pc string) Permissions {
	p := For(team, pc)
	p.Publish = append(p.Publish, AskThere(team, "*", pc))
	p.Subscribe = append(p.Subscribe, There(team, "*"))
	return p
}

// Line is what a hub tells of one PC.
type Line struct {
	PC string
	// Entry is the number of what the roster says; Name, Removed and Box are that.
	Entry   int64
	Name    string
	Removed bool
	Box     string
	// Number is that of the PC's last word that it is there; 0 for none. At is when it
	// came, by the clock of the hub's node, in Unix milliseconds.
	Number int64
	At     int64
	// Left says that it is not there any more, without a goodbye.
	Left bool
	// Word is what it said, as it signed it; empty where that is what it had said before.
	Word, Key, Signature []byte
	// Refusals are all that there were; none says nothing.
	Refusals []Refusal
}

// Told are lines that come together. Now is the node's clock in Unix milliseconds; More
// says that the answer goes on.
type Told struct {
	Now   int64
	More  bool
	Lines []Line
}

// The marks of a line.
const (
	lineRemoved = 1 << iota
	lineLeft
)

const toldVersion = 1

// Append is the line as it travels, behind what is there already.
func (l Line) Append(to []byte) ([]byte, error) {
	id, err := hex.DecodeString(l.PC)
	if err != nil || len(id) != idDigits/2 {
		return to, bridge.Errorf(bridge.Invalid, "%s is no PC's identity", shown(l.PC))
	}
	marks := byte(0)
	if l.Removed {
		marks |= lineRemoved
	}
	if l.Left {
		marks |= lineLeft
	}
	to = append(append(to, marks), id...)
	for _, number := range []int64{l.Entry, l.Number, l.At} {
		to = binary.AppendVarint(to, number)
	}
	for _, part := range [][]byte{[]byte(l.Name), []byte(l.Box), l.Word, l.Key, l.Signature} {
		to = append(binary.AppendUvarint(to, uint64(len(part))), part...)
	}
	to = binary.AppendVarint(to, int64(len(l.Refusals)))
	for _, one := range l.Refusals {
		to = append(binary.AppendUvarint(to, uint64(len(one.Why))), one.Why...)
		to = binary.AppendVarint(binary.AppendVarint(to, one.Count), one.Last)
	}
	return to, nil
}

// EncodeTold puts lines together that Append has made.
func EncodeTold(now time.Time, more bool, lines []byte) []byte {
	head := []byte{toldVersion, 0}
	if more {
		head[1] = 1
	}
	return append(binary.AppendVarint(head, now.UnixMilli()), lines...)
}

// ParseTold reads lines; their words and keys share data's memory.
func ParseTold(data []byte) (t Told, err error) {
	if len(data) < 2 || data[0] != toldVersion {
		return t, bridge.Errorf(bridge.Unsupported, "the hub tells who is there in a form that this Bridge does not know")
	}
	t.More = data[1] == 1
	r := reader{rest: data[2:]}
	for t.Now = r.number(); len(r.rest) > 0 && !r.short; {
		t.Lines = append(t.Lines, r.line())
	}
	if r.short {
		return Told{}, bridge.Errorf(bridge.Invalid, "what the hub tells of who is there is cut short")
	}
	return t, nil
}

// reader takes parts off the front of what is left.
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
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
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
