package decision

import (
	"cmp"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// Placed is a revision with what says where it stands among the others of its topic.
type Placed struct {
	Revision
	Unread error // why it cannot be used; nil for all others
	Place  int64 // counts what was recorded on this PC

	Sequence int64  // in the team's stream; 0 where it is not there
	Follows  string // what its PC had before it, of one that is there

	rank    int64 // the last sequence that it comes after, or its own (inTopic)
	decided int64 // when, and not before an earlier one of its topic
}

// IsImported tells a decision of another PC by its author: <host>/<session>, which no
// session of this PC is called.
func (p Placed) IsImported() bool { return p.host() != "" }

// host is the PC that decided it, "" for this one.
func (p Placed) host() string {
	host, _, imported := strings.Cut(p.Author.Name, "/")
	if !imported {
		return ""
	}
	return host
}

// IsShared reports whether it is one that PCs exchange.
func (p Placed) IsShared() bool { return p.Unread == nil && p.Scope.All }

// IsOwn reports whether it is one that this PC gives to others.
func (p Placed) IsOwn() bool { return p.IsShared() && bridge.CheckName(p.Author.Name) == nil }

// NewestFirst orders revisions, the newest first, and sets Current of the newest of each
// topic, unless that one withdraws the topic. It takes them in the order in which they
// were recorded, the newest first, and keeps that order in a topic that only this PC
// decides on; others get the order of inTopic.
func NewestFirst(all []Placed) []Placed {
	if !slices.ContainsFunc(all, Placed.IsImported) {
		newest := map[string]bool{}
		for i, one := range all {
			all[i].Current = !newest[one.Topic] && !one.Withdrawn
			newest[one.Topic] = true
		}
		return all
	}
	topics := map[string][]Placed{}
	for _, one := range slices.Backward(all) {
		topics[one.Topic] = append(topics[one.Topic], one)
	}
	ordered := make([]Placed, 0, len(all))
	for _, revisions := range topics {
		if slices.ContainsFunc(revisions, Placed.IsImported) {
			inTopic(revisions)
		}
		at := int64(0)
		for i, one := range revisions {
			at = max(at, one.CreatedAt) // clocks may have been put back, and those of others are others
			revisions[i].decided = at
		}
		revisions[len(revisions)-1].Current = !revisions[len(revisions)-1].Withdrawn
		slices.Reverse(revisions)
		ordered = append(ordered, revisions...)
	}
	slices.SortStableFunc(ordered, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(b.decided, a.decided), cmp.Compare(a.Topic, b.Topic))
	})
	return ordered
}

// inTopic puts the revisions of one topic in the order that all PCs see, the oldest
// first. What the team's stream has is in its order there (HUB-06). What it does not have
// is ordered by the times (RMT-22): it comes after all of the stream that was decided
// earlier, so that everybody who has the same revisions finds the same order.
func inTopic(revisions []Placed) {
	slices.SortFunc(revisions, func(a, b Placed) int { return ByTime(a.Revision, b.Revision) })
	passed := int64(0)
	for i, one := range revisions {
		passed = max(passed, one.Sequence)
		if revisions[i].rank = one.Sequence; one.Sequence == 0 {
			revisions[i].rank = passed
		}
	}
	slices.SortStableFunc(revisions, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), -cmp.Compare(min(a.Sequence, 1), min(b.Sequence, 1)))
	})
	var before *string
	for i, one := range revisions {
		if one.Sequence > 0 { // what it replaced there, whatever was known where it was decided
			revisions[i].Supersedes = before
		}
		before = &one.ID
	}
}

// ByTime compares decisions by the times, which are the same on all PCs.
func ByTime(a, b Revision) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Topics returns the revisions of each topic, the oldest first, out of what NewestFirst
// has put in order.
func Topics(newestFirst []Placed) map[string][]Placed {
	topics := map[string][]Placed{}
	for _, one := range slices.Backward(newestFirst) {
		topics[one.Topic] = append(topics[one.Topic], one)
	}
	return topics
}

// ForTeam returns, of the revisions of a topic, those of this PC that the team's stream
// does not have, each with what it follows. What was recorded up to since, before this PC
// took part, stays here where another PC of the team has decided later.
func ForTeam(topic []Placed, since int64) (own []Placed) {
	for _, one := range topic {
		if !one.IsOwn() || one.Sequence > 0 {
			continue
		}
		if one.Place <= since && slices.ContainsFunc(topic, func(other Placed) bool {
			return other.Sequence > 0 && other.IsImported() && ByTime(other.Revision, one.Revision) > 0
		}) {
			continue
		}
		for _, other := range topic {
			if other.Place < one.Place && other.IsShared() && (other.Sequence > 0 || !other.IsImported()) {
				one.Follows = other.ID
			}
		}
		own = append(own, one)
	}
	return own
}

// InStream returns the revisions of a topic that the team's stream has, in its order.
func InStream(topic []Placed) []Placed {
	return slices.DeleteFunc(slices.Clone(topic), func(one Placed) bool { return one.Sequence == 0 })
}

// AtOnce reports whether two decisions that follow each other in the stream were made at
// the same time: by two PCs, of which the second did not have the first one's.
func AtOnce(first, second Placed) bool {
	return second.Follows != first.ID && first.host() != second.host()
}

// BesideOwn is the decision of this PC that was made at the same time as the one at i,
// and stands next to it in the stream; nil where there is none.
func BesideOwn(inStream []Placed, i int) *Revision {
	if i+1 < len(inStream) && !inStream[i+1].IsImported() && AtOnce(inStream[i], inStream[i+1]) {
		return &inStream[i+1].Revision
	}
	if i > 0 && !inStream[i-1].IsImported() && AtOnce(inStream[i-1], inStream[i]) {
		return &inStream[i-1].Revision
	}
	return nil
}
