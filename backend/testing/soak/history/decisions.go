package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Decide records a revision of a topic. Where the call was cut off, ID and Supersedes are
// not known: Revisions has them, if it was carried out.
type Decide struct{ Topic, Text, ID, Supersedes string }

// Current is what is in force on a topic: ids, one or none.
type Current struct {
	Topic string
	IDs   []string
}

// Revision is one of a topic's.
type Revision struct{ ID, Text, Supersedes string }

// Revisions is the whole chain of a topic, the oldest first. A history with decisions that
// were cut off ends with it.
type Revisions struct {
	Topic string
	List  []Revision
}

func (Decide) isOp()    {}
func (Current) isOp()   {}
func (Revisions) isOp() {}

// decisionState is the chain of a topic: ids, the oldest first, each after a space.
type decisionState string

func (s decisionState) current() string { return string(s[strings.LastIndex(string(s), " ")+1:]) }

func (s decisionState) String() string {
	if s == "" {
		return "nothing decided"
	}
	return "decided:" + string(s)
}

func chainOf(list []Revision) (chain decisionState) {
	for _, revision := range list {
		chain += decisionState(" " + revision.ID)
	}
	return chain
}

func (d Decide) String() string {
	return fmt.Sprintf("decide %q is %s and replaces %q", d.Text, d.ID, d.Supersedes)
}
func (c Current) String() string   { return fmt.Sprintf("in force is %q", c.IDs) }
func (r Revisions) String() string { return "all revisions are" + string(chainOf(r.List)) }

// step returns the chain after the operation; ok is false where a right broker cannot have
// answered so.
func (s decisionState) step(e event) (after decisionState, ok bool) {
	switch o := e.op.(type) {
	case Decide:
		return s + decisionState(" "+o.ID), o.Supersedes == s.current() && !slices.Contains(strings.Fields(string(s)), o.ID)
	case Current:
		if s == "" {
			return s, len(o.IDs) == 0
		}
		return s, slices.Equal(o.IDs, []string{s.current()})
	case Revisions:
		return s, chainOf(o.List) == s
	}
	return s, false
}

// decisionHistories parts the calls by topic.
func decisionHistories(records []record) (parts []part) {
	topics := map[string][]event{}
	found := map[string]Revision{} // by topic and text
	for _, record := range records {
		if o, isChain := record.op.(Revisions); isChain {
			for _, revision := range o.List {
				found[o.Topic+"\n"+revision.Text] = revision
			}
		}
	}
	for _, record := range records {
		var topic string
		op := record.op
		switch o := record.op.(type) {
		case Decide:
			topic = o.Topic
			if !record.isKnown() {
				revision, happened := found[topic+"\n"+o.Text]
				if !happened {
					continue // not until the chain was read, or never
				}
				o.ID, o.Supersedes = revision.ID, revision.Supersedes
				op = o
			}
		case Current:
			topic = o.Topic
		case Revisions:
			topic = o.Topic
		default:
			continue
		}
		topics[topic] = append(topics[topic], event{record.client, op, record.call, record.ret})
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		parts = append(parts, part{decisionModel, "topic " + topic, topics[topic]})
	}
	return parts
}
