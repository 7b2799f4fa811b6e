// Package subject has the names under which the PCs of a team meet on NATS (rows
// HUB): subjects, streams, buckets, consumers and headers, and what one PC may publish
// and subscribe to. The hub and its clients both take them from here, and from nowhere
// else.
//
//	bridge.v1.<team>.<from>.<to>.frame   a link's frame, at once or not at all
//	bridge.v1.<team>.<from>.<to>.msg     what waits in the inbox of <to> until it is acknowledged
//	bridge.v1.<team>.<from>.dec          a decision that its owner shares with the team
//	$KV.bridge-<team>-presence.<pc>      that a PC is there; gone after LongestPresence
//	$KV.bridge-<team>-pcs.<pc>           who belongs to the team; the hub alone writes it
//	bridge.there.v1.<team>.<node>        what a node of a hub tells of both (There)
//
// <from>, <to> and <pc> are identities as link.Identity has them: 64 hexadecimal
// digits, which are safe in a subject as they are.
//
// Who said something is told by its subject and never by its content (HUB-02), but the
// subject alone is no proof: whoever may ask the engine for something also chooses where
// the engine's answer goes, and no permission binds that choice. So each PC signs what it
// says together with the subject, and whoever receives it asks Proof.Check.
package subject

import (
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// Sort is what a subject carries.
type Sort string

// The sorts; there are no others.
const (
	Frame    Sort = "frame"
	Message  Sort = "msg"
	Decision Sort = "dec"
)

const (
	root = "bridge.v1."
	// idDigits is the length of a PC's identity: SHA-256 in hexadecimal.
	idDigits = 64
	// MaxTeamChars bounds a team's name.
	MaxTeamChars = 32
)

// Limits of what the hub takes.
const (
	// MaxFrameBytes bounds what one publication carries: a link's frame of 1 MiB.
	MaxFrameBytes = 1 << 20
	// MaxPayloadBytes is what the server lets through, with the headers.
	MaxPayloadBytes = MaxFrameBytes + 16<<10
	// PresenceEvery is how often a PC of a small team says that it is there, PresenceLife
	// how long its word counts; see Rarely.
	PresenceEvery = 10 * time.Second
	PresenceLife  = 30 * time.Second
	// LongestPresence is how long a word counts at most.
	LongestPresence = PresenceLife * mostRarely
	// MaxDecisionBytes bounds a decision with its headers.
	MaxDecisionBytes = 64 << 10
	// MaxWaiting bounds what waits from one PC for another; more is refused.
	MaxWaiting = 10_000
	// KeepMessages is how long something waits for a PC at most.
	KeepMessages = 30 * 24 * time.Hour
)

const (
	smallTeam  = 80 // PCs
	mostRarely = 25
)

// Rarely is how many times PresenceEvery lie between two words of a PC that it is there,
// in a team of so many PCs: everybody hears everybody, so that what one PC hears would
// grow with the team, and what the hub carries with its square. The hub tells at once of
// those that it lost (Left).
func Rarely(pcs int) int { return min(max(pcs/smallTeam, 1), mostRarely) }

// MessageID is the engine's own header for the unique id of a message. The engine
// remembers it for a while only: what makes a message count once is the receiver's store.
const MessageID = "Nats-Msg-Id"

// Subject is a subject's parts. To is empty for a decision.
type Subject struct {
	Team string
	From string
	To   string
	Sort Sort
}

// String is the subject as it is published to.
func (s Subject) String() string {
	if s.Sort == Decision {
		return root + s.Team + "." + s.From + "." + string(s.Sort)
	}
	return root + s.Team + "." + s.From + "." + s.To + "." + string(s.Sort)
}

// Parse reads a subject and refuses whatever String does not make.
func Parse(text string) (Subject, error) {
	rest, ours := strings.CutPrefix(text, root)
	parts := strings.Split(rest, ".")
	var s Subject
	switch {
	case ours && len(parts) == 4 && (parts[3] == string(Frame) || parts[3] == string(Message)):
		s = Subject{Team: parts[0], From: parts[1], To: parts[2], Sort: Sort(parts[3])}
	case ours && len(parts) == 3 && parts[2] == string(Decision):
		s = Subject{Team: parts[0], From: parts[1], Sort: Decision}
	default:
		return Subject{}, bridge.Errorf(bridge.Invalid, "%s is no subject of a team", shown(text))
	}
	if CheckTeam(s.Team) != nil || CheckPC(s.From) != nil || s.Sort != Decision && CheckPC(s.To) != nil {
		return Subject{}, bridge.Errorf(bridge.Invalid, "%s is no subject of a team", shown(text))
	}
	return s, nil
}

// shown is a foreign text as a sentence may quote it.
func shown(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	return `"` + bridge.VisibleLine(text) + `"`
}

// CheckTeam refuses a name that no team may have: it is part of subjects, of streams and
// of files.
func CheckTeam(name string) error {
	if name == "" || len(name) > MaxTeamChars {
		return bridge.Errorf(bridge.Invalid, "a team's name has 1 to %d characters", MaxTeamChars)
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		if !letter && (r != '-' || i == 0 || i == len(name)-1) {
			return bridge.Errorf(bridge.Invalid, "a team's name has small letters, digits and - only and begins and ends with a letter or digit: %s does not", shown(name))
		}
	}
	return nil
}

// CheckPC refuses what is no PC's identity.
func CheckPC(id string) error {
	if len(id) != idDigits || strings.Trim(id, "0123456789abcdef") != "" {
		return bridge.Errorf(bridge.Invalid, "%s is no PC's identity: that has %d hexadecimal digits", shown(id), idDigits)
	}
	return nil
}

// MessageStream keeps what waits in inboxes, each message until it is acknowledged.
func MessageStream(team string) string { return "bridge-" + team + "-msg" }

// MessageSubjects are those that MessageStream takes.
func MessageSubjects(team string) string { return root + team + ".*.*." + string(Message) }

// Inbox filters what waits for one PC in MessageStream.
func Inbox(team, pc string) string { return root + team + ".*." + pc + "." + string(Message) }

// Frames filters the frames for one PC, which nothing keeps.
func Frames(team, pc string) string { return root + team + ".*." + pc + "." + string(Frame) }

// Consumer is the durable consumer of one PC's inbox in MessageStream. The hub makes it,
// with Inbox as its filter: a PC that may make consumers can have any message of the
// stream delivered, and to any subject.
func Consumer(pc string) string { return pc }

// DecisionStream keeps all decisions of the team for ever, and its order is theirs. Each
// PC reads on from the sequence that its own store remembers.
func DecisionStream(team string) string { return "bridge-" + team + "-dec" }

// DecisionSubjects are those that DecisionStream takes.
func DecisionSubjects(team string) string { return root + team + ".*." + string(Decision) }

// PresenceBucket is the key-value bucket where each PC says that it is there.
func PresenceBucket(team string) string { return "bridge-" + team + "-presence" }

// RosterBucket is the key-value bucket in which the hub keeps who belongs to the team.
func RosterBucket(team string) string { return "bridge-" + team + "-pcs" }

// BucketStream is the stream that the engine keeps a bucket in.
func BucketStream(bucket string) string { return "KV_" + bucket }

// BucketKey is the subject of a key in a bucket; "*" is that of all.
func BucketKey(bucket, key string) string { return "$KV." + bucket + "." + key }

// ParseBucketKey reads the PC out of a key's subject.
func ParseBucketKey(bucket, text string) (pc string, err error) {
	pc, ours := strings.CutPrefix(text, BucketKey(bucket, ""))
	if !ours || CheckPC(pc) != nil {
		return "", bridge.Errorf(bridge.Invalid, "%s is no key of %s", shown(text), bucket)
	}
	return pc, nil
}

// InboxPrefix is where the engine's answers to one PC go; no other PC may listen there.
func InboxPrefix(pc string) string { return "_INBOX_" + pc }
