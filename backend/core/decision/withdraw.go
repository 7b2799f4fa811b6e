package decision

import (
	"fmt"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// withdrawnWord is the first word of each withdrawal's text.
const withdrawnWord = "Withdrawn"

// NewWithdrawal returns a revision that withdraws the decision on a topic, without id,
// author, time and scope. reason may be "". It fails with Invalid or TooLarge if the
// topic or the reason is malformed.
func NewWithdrawal(topic, reason string) (revision Revision, err error) {
	if revision.Topic, err = NormalizeTopic(topic); err != nil {
		return Revision{}, err
	}
	revision.Text, revision.Withdrawn = withdrawnWord+".", true
	if reason = strings.TrimSpace(reason); reason == "" {
		return revision, nil
	}
	revision.Text = withdrawnWord + ": " + reason
	if err := bridge.CheckText("the reason", reason, bridge.MaxDecisionChars-len(withdrawnWord+": ")); err != nil {
		return Revision{}, err
	}
	return revision, nil
}

// Replace makes r replace the decision in force on its topic. r.Supersedes is the id of
// the decision that the owner saw, or nil for any. A withdrawal gets the scope of the
// withdrawn decision. Replace fails with NotFound for a withdrawal if no decision is in
// force. It fails with Conflict if another decision is in force than the owner saw.
// newestFirst has the revisions of the topic.
func (r *Revision) Replace(newestFirst []Revision) error {
	at := slices.IndexFunc(newestFirst, func(earlier Revision) bool { return earlier.Current })
	switch {
	case at < 0 && (r.Withdrawn || r.Supersedes != nil):
		return bridge.Errorf(bridge.NotFound, "no decision on %q is in force", r.Topic)
	case at < 0:
		return nil
	case r.Supersedes != nil && *r.Supersedes != newestFirst[at].ID:
		return bridge.Errorf(bridge.Conflict, "the decision on %q has changed: look at it again", r.Topic)
	case r.Withdrawn:
		r.Scope = newestFirst[at].Scope
	}
	return nil
}

// Newest returns the newest revision of each topic. history has the newest of each first.
func Newest(history []Revision) []Revision {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(history), func(r Revision) bool {
		before := seen[r.Topic]
		seen[r.Topic] = true
		return before
	})
}

// Withdrawals returns the withdrawals that a session must receive, oldest first. Each
// is the newest of its topic, and the session's last message on that topic was a
// decision. A session that never received a decision does not receive its withdrawal.
// history has all revisions, the newest of each topic first.
func Withdrawals(history []Revision, receipts Receipts, target Target) (missed []Revision) {
	topics := map[string][]Revision{}
	for _, revision := range history {
		topics[revision.Topic] = append(topics[revision.Topic], revision)
	}
	for _, revision := range Newest(history) {
		if MissedWithdrawal(topics[revision.Topic], receipts, target) {
			missed = append(missed, revision)
		}
	}
	slices.Reverse(missed)
	return missed
}

// MissedWithdrawal reports whether a session must receive the withdrawal of a topic's
// newest revision. A session outside the scope receives it only if it received exactly
// the withdrawn decision.
func MissedWithdrawal(newestFirst []Revision, receipts Receipts, target Target) bool {
	newest := newestFirst[0]
	if !newest.Withdrawn || receipts.Has(newest.ID) {
		return false
	}
	for _, revision := range newestFirst[1:] {
		if receipts.HasMessage(revision.ID) {
			replaced := newest.Supersedes != nil && *newest.Supersedes == revision.ID
			return !revision.Withdrawn && (replaced || newest.Scope.Reaches(target))
		}
	}
	return false
}

// FromPC returns the revisions from the PC with that name, in order.
func FromPC(revisions []Revision, pc string) []Revision {
	return slices.DeleteFunc(slices.Clone(revisions), func(r Revision) bool {
		host := OrderedRevision{Revision: r}.host()
		return host == "" || !strings.EqualFold(host, pc)
	})
}

// withdrawnBody returns the text of the message about a withdrawal.
func (n News) withdrawnBody() string {
	beside := ""
	switch {
	case n.Beside != nil && n.Newest:
		beside = fmt.Sprintf(" (%s decided on it at the same time: the withdrawal came later in the team's order and counts)", n.Beside.Author.Name)
	case n.Beside != nil:
		beside = fmt.Sprintf(" (not in force: %s decided on it at the same time, and that came later in the team's order)", n.Beside.Author.Name)
	}
	return fmt.Sprintf("Decision on %q withdrawn%s, for %s by %s:\n\n%s\n\nThe tool `decisions` no longer lists it; `history: true` adds what was withdrawn.",
		n.Topic, beside, n.Scope.Words(), n.Author.Name, n.Text)
}
