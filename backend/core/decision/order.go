package decision

import (
	"cmp"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// OrderedRevision is a revision with the data for its order within its topic.
type OrderedRevision struct {
	Revision
	Unread error // why it cannot be used; otherwise nil
	Place  int64 // sequence number of records on this PC

	Sequence int64  // in the team's stream; 0 if it is not there
	Follows  string // the previous revision at its PC, for one in the stream

	rank    int64 // its own sequence, or the last one before it (inTopic)
	decided int64 // its time, but not before an earlier one of its topic
}

// IsImported reports whether another PC made the decision. Then its author is
// <host>/<session>, which is no valid name of a session of this PC.
func (p OrderedRevision) IsImported() bool { return p.host() != "" }

// host returns the PC that made the decision, or "" for this one.
func (p OrderedRevision) host() string {
	host, _, imported := strings.Cut(p.Author.Name, "/")
	if !imported {
		return ""
	}
	return host
}

// IsShared reports whether PCs exchange the decision.
func (p OrderedRevision) IsShared() bool { return p.Unread == nil && p.Scope.All }

// IsOwn reports whether this PC shares the decision with others.
func (p OrderedRevision) IsOwn() bool { return p.IsShared() && bridge.CheckName(p.Author.Name) == nil }

// NewestFirst sorts revisions, the newest first. It sets Current of the newest of each
// topic, unless that one is a withdrawal. The input is in the order of recording,
// newest first. That order stays for a topic with decisions of this PC alone; others
// use the order of inTopic.
func NewestFirst(all []OrderedRevision) []OrderedRevision {
	if !slices.ContainsFunc(all, OrderedRevision.IsImported) {
		newest := map[string]bool{}
		for i, revision := range all {
			all[i].Current = !newest[revision.Topic] && !revision.Withdrawn
			newest[revision.Topic] = true
		}
		return all
	}
	topics := map[string][]OrderedRevision{}
	for _, revision := range slices.Backward(all) {
		topics[revision.Topic] = append(topics[revision.Topic], revision)
	}
	ordered := make([]OrderedRevision, 0, len(all))
	for _, revisions := range topics {
		if slices.ContainsFunc(revisions, OrderedRevision.IsImported) {
			inTopic(revisions)
		}
		at := int64(0)
		for i, revision := range revisions {
			at = max(at, revision.CreatedAt) // clocks may go back, and other PCs' clocks differ
			revisions[i].decided = at
		}
		revisions[len(revisions)-1].Current = !revisions[len(revisions)-1].Withdrawn
		slices.Reverse(revisions)
		ordered = append(ordered, revisions...)
	}
	slices.SortStableFunc(ordered, func(a, b OrderedRevision) int {
		return cmp.Or(cmp.Compare(b.decided, a.decided), cmp.Compare(a.Topic, b.Topic))
	})
	return ordered
}

// inTopic sorts the revisions of one topic in the order that all PCs share, the oldest
// first. Revisions of the team's stream keep its order (HUB-06). The others are sorted
// by time (RMT-22), after all earlier ones of the stream. So PCs with the same
// revisions have the same order.
func inTopic(revisions []OrderedRevision) {
	slices.SortFunc(revisions, func(a, b OrderedRevision) int { return ByTime(a.Revision, b.Revision) })
	passed := int64(0)
	for i, revision := range revisions {
		passed = max(passed, revision.Sequence)
		if revisions[i].rank = revision.Sequence; revision.Sequence == 0 {
			revisions[i].rank = passed
		}
	}
	slices.SortStableFunc(revisions, func(a, b OrderedRevision) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), -cmp.Compare(min(a.Sequence, 1), min(b.Sequence, 1)))
	})
	var before *string
	for i, revision := range revisions {
		if revision.Sequence > 0 { // the revision that it replaced in the stream, regardless of its PC's knowledge
			revisions[i].Supersedes = before
		}
		before = &revision.ID
	}
}

// ByTime compares decisions by their times, which are the same on all PCs.
func ByTime(a, b Revision) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Topics returns the revisions of each topic, the oldest first, from the result of
// NewestFirst.
func Topics(newestFirst []OrderedRevision) map[string][]OrderedRevision {
	topics := map[string][]OrderedRevision{}
	for _, revision := range slices.Backward(newestFirst) {
		topics[revision.Topic] = append(topics[revision.Topic], revision)
	}
	return topics
}

// ForTeam returns this PC's revisions of a topic that the team's stream lacks, each
// with the one that it follows. A revision up to since, before this PC joined, stays
// local if another PC of the team has decided later.
func ForTeam(topic []OrderedRevision, since int64) (own []OrderedRevision) {
	for _, revision := range topic {
		if !revision.IsOwn() || revision.Sequence > 0 {
			continue
		}
		if revision.Place <= since && slices.ContainsFunc(topic, func(other OrderedRevision) bool {
			return other.Sequence > 0 && other.IsImported() && ByTime(other.Revision, revision.Revision) > 0
		}) {
			continue
		}
		for _, other := range topic {
			if other.Place < revision.Place && other.IsShared() && (other.Sequence > 0 || !other.IsImported()) {
				revision.Follows = other.ID
			}
		}
		own = append(own, revision)
	}
	return own
}

// InStream returns the revisions of a topic in the team's stream, in its order.
func InStream(topic []OrderedRevision) []OrderedRevision {
	return slices.DeleteFunc(slices.Clone(topic), func(revision OrderedRevision) bool { return revision.Sequence == 0 })
}

// AtOnce reports whether two consecutive decisions in the stream were made at the same time.
// This means that they are from two PCs, and the second PC did not have the first decision.
func AtOnce(first, second OrderedRevision) bool {
	return second.Follows != first.ID && first.host() != second.host()
}

// ConcurrentOwn returns this PC's decision next to the one at i in the stream, if both were
// made at the same time, or nil.
func ConcurrentOwn(inStream []OrderedRevision, i int) *Revision {
	if i+1 < len(inStream) && !inStream[i+1].IsImported() && AtOnce(inStream[i], inStream[i+1]) {
		return &inStream[i+1].Revision
	}
	if i > 0 && !inStream[i-1].IsImported() && AtOnce(inStream[i-1], inStream[i]) {
		return &inStream[i-1].Revision
	}
	return nil
}
