// Package subject defines the names by which the PCs of a team communicate on NATS (rows
// HUB): subjects, streams, buckets, consumers and headers, and what one PC may publish
// and subscribe to. The hub and its clients use only these names.
//
//	bridge.v1.<team>.<from>.<to>.frame   a link's frame, at once or not at all
//	bridge.v1.<team>.<from>.<to>.msg     a message in the inbox of <to>, until it is acknowledged
//	bridge.v1.<team>.<from>.dec          a decision that its owner shares with the team
//	$KV.bridge-<team>-presence.<pc>      the presence of a PC; it expires after LongestPresence
//	$KV.bridge-<team>-pcs.<pc>           the roster of the team; only the hub writes it
//	bridge.there.v1.<team>.<node>        a hub node's publication of both (There)
//
// <from>, <to> and <pc> are ids as in link.Identity: 64 hexadecimal digits, which are
// valid in a subject.
//
// The subject of a message names its sender, never its content (HUB-02). But the subject
// is no proof: a client of the engine's API also chooses where the engine's answer goes,
// and no permission restricts that choice. So each PC signs its messages together with
// the subject, and receivers call Proof.Check.
package subject

import (
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// Sort is the kind of content of a subject.
type Sort string

// The only sorts.
const (
	Frame    Sort = "frame"
	Message  Sort = "msg"
	Decision Sort = "dec"
)

const (
	root = "bridge.v1."
	// idDigits is the length of a PC's id: SHA-256 in hexadecimal.
	idDigits = 64
	// MaxTeamChars limits a team's name.
	MaxTeamChars = 32
)

// Limits of what the hub accepts.
const (
	// MaxFrameBytes limits one publication: a link's frame of 1 MiB.
	MaxFrameBytes = 1 << 20
	// MaxPayloadBytes is the server's limit, with the headers.
	MaxPayloadBytes = MaxFrameBytes + 16<<10
	// PresenceEvery is how often a PC of a small team announces its presence,
	// PresenceLife how long that is valid; see Rarely.
	PresenceEvery = 10 * time.Second
	PresenceLife  = 30 * time.Second
	// LongestPresence is the longest validity of an announcement.
	LongestPresence = PresenceLife * mostRarely
	// MaxDecisionBytes limits a decision with its headers.
	MaxDecisionBytes = 64 << 10
	// MaxWaiting limits the messages that wait from one PC for another; more are refused.
	MaxWaiting = 10_000
	// KeepMessages is how long a message waits for a PC at most.
	KeepMessages = 30 * 24 * time.Hour
)

const (
	smallTeam  = 80 // PCs
	mostRarely = 25
)

// Rarely returns the number of PresenceEvery intervals between two presence
// announcements, for the size of the team. Every PC receives all announcements. Thus each
// PC's traffic would grow with the team, and the hub's with its square. The hub reports
// lost PCs at once (Left).
func Rarely(pcs int) int { return min(max(pcs/smallTeam, 1), mostRarely) }

// MessageID is the engine's header for the unique id of a message. The engine remembers
// it for a limited time; the receiver's store prevents duplicates.
const MessageID = "Nats-Msg-Id"

// Subject holds the parts of a subject. To is empty for a decision.
type Subject struct {
	Team string
	From string
	To   string
	Sort Sort
}

// String returns the subject as text.
func (s Subject) String() string {
	if s.Sort == Decision {
		return root + s.Team + "." + s.From + "." + string(s.Sort)
	}
	return root + s.Team + "." + s.From + "." + s.To + "." + string(s.Sort)
}

// Parse parses a subject. It fails with Invalid for text that String does not return.
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

// shown returns a foreign text, shortened and quoted for a sentence.
func shown(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	return `"` + bridge.VisibleLine(text) + `"`
}

// CheckTeam fails with Invalid for a name that no team may have: it is part of subjects,
// streams and files.
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

// CheckPC fails with Invalid if id is not a PC's id.
func CheckPC(id string) error {
	if len(id) != idDigits || strings.Trim(id, "0123456789abcdef") != "" {
		return bridge.Errorf(bridge.Invalid, "%s is no PC's identity: that has %d hexadecimal digits", shown(id), idDigits)
	}
	return nil
}

// MessageStream returns the stream that keeps inbox messages until they are acknowledged.
func MessageStream(team string) string { return "bridge-" + team + "-msg" }

// MessageSubjects returns the subjects of MessageStream.
func MessageSubjects(team string) string { return root + team + ".*.*." + string(Message) }

// Inbox returns the filter for one PC's messages in MessageStream.
func Inbox(team, pc string) string { return root + team + ".*." + pc + "." + string(Message) }

// Frames returns the filter for the frames of one PC, which no stream keeps.
func Frames(team, pc string) string { return root + team + ".*." + pc + "." + string(Frame) }

// Consumer returns the durable consumer of one PC's inbox in MessageStream. The hub
// creates it, with Inbox as its filter. A PC that may create consumers could get any
// message of the stream delivered, to any subject.
func Consumer(pc string) string { return pc }

// DecisionStream returns the stream that keeps all decisions of the team forever, in
// their order. Each PC resumes from the sequence in its own store.
func DecisionStream(team string) string { return "bridge-" + team + "-dec" }

// DecisionSubjects returns the subjects of DecisionStream.
func DecisionSubjects(team string) string { return root + team + ".*." + string(Decision) }

// PresenceBucket returns the key-value bucket of the presence announcements.
func PresenceBucket(team string) string { return "bridge-" + team + "-presence" }

// RosterBucket returns the key-value bucket of the team's roster.
func RosterBucket(team string) string { return "bridge-" + team + "-pcs" }

// BucketStream returns the engine's stream of a bucket.
func BucketStream(bucket string) string { return "KV_" + bucket }

// BucketKey returns the subject of a key in a bucket; "*" matches all keys.
func BucketKey(bucket, key string) string { return "$KV." + bucket + "." + key }

// ParseBucketKey returns the PC of a key's subject. It fails with Invalid for another subject.
func ParseBucketKey(bucket, text string) (pc string, err error) {
	pc, ours := strings.CutPrefix(text, BucketKey(bucket, ""))
	if !ours || CheckPC(pc) != nil {
		return "", bridge.Errorf(bridge.Invalid, "%s is no key of %s", shown(text), bucket)
	}
	return pc, nil
}

// InboxPrefix returns the prefix of the engine's answers to one PC; only that PC may subscribe.
func InboxPrefix(pc string) string { return "_INBOX_" + pc }
