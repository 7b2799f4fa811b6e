package decision

import (
	"fmt"
	"strings"

	"bridge/backend/core/bridge"
)

// Note returns the session-start note for the current decisions, newest first: at most
// 5 topics and 160 characters of each text (DEC-15). It returns "" if there are none.
func Note(current []Revision) string {
	if len(current) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Pinned decisions of this project's owner (%d in force; the tool `decisions` gives them whole):", len(current))
	for i, revision := range current {
		if i == bridge.NoteTopics {
			break
		}
		fmt.Fprintf(&b, "\n- %s: %s", revision.Topic, clip(strings.Join(strings.Fields(revision.Text), " "), bridge.NoteTextChars))
	}
	return b.String()
}

// clip returns the first maxRunes characters of text.
func clip(text string, maxRunes int) string {
	count := 0
	for i := range text {
		if count == maxRunes {
			return text[:i]
		}
		count++
	}
	return text
}

// News is a decision to notify sessions of. Beside is a decision on its topic that
// another PC's owner made at the same time, or nil. Newest reports whether it is the
// last on its topic. Rest is the number of decisions of other PCs that the session does
// not receive one by one.
type News struct {
	Revision
	Beside *Revision
	Newest bool
	Rest   int
}

// NotificationBody returns the text of the message about r. The dashboard parses this
// form, to show only topic and decision.
func NotificationBody(r Revision) string { return News{Revision: r}.Body() }

// Body is NotificationBody that also names the simultaneous decision (HUB-06).
func (n News) Body() string {
	if n.Withdrawn {
		return n.withdrawnBody()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Decision on %q", n.Topic)
	switch {
	case n.Beside != nil && n.Current:
		fmt.Fprintf(&b, " (%s decided on it at the same time: this one came later in the team's order and is in force, the other one is in the history)", n.Beside.Author.Name)
	case n.Beside != nil:
		fmt.Fprintf(&b, " (not in force: %s decided on it at the same time, and that came later in the team's order)", n.Beside.Author.Name)
	case n.Supersedes != nil:
		b.WriteString(" (it replaces the earlier one)")
	}
	fmt.Fprintf(&b, ", pinned for %s by %s:\n\n%s\n\nThe tool `decisions` lists what is in force; `history: true` adds what was replaced.", n.Scope.Words(), n.Author.Name, n.Text)
	return b.String() + restWords(n.Rest)
}

// Notice returns the message about r for a session. It wakes no session.
func Notice(r Revision, messageID string, target Target) bridge.Message {
	return bridge.Message{
		ID: messageID, Recipient: target.ID, From: r.Author, To: r.Scope.Target(), ConversationID: bridge.DecisionConversation + r.ID,
		Hop: bridge.DecisionHop, Body: NotificationBody(r), CreatedAt: r.CreatedAt,
	}
}

// Words returns a description of the scope.
func (s Scope) Words() string {
	switch {
	case s.All:
		return "all sessions"
	case s.Project != "":
		return s.Project
	default:
		return "the sessions " + strings.Join(s.Sessions, ", ")
	}
}

// Applicable returns the current decisions that reach a session, in order.
func Applicable(revisions []Revision, target Target) []Revision {
	var applicable []Revision
	for _, r := range revisions {
		if r.Current && r.Scope.Reaches(target) {
			applicable = append(applicable, r)
		}
	}
	return applicable
}

// Target returns the address of a notification: `*`, the project's folder, or the
// sessions as named.
func (s Scope) Target() string {
	switch {
	case s.All:
		return "*"
	case s.Project != "":
		return s.Project
	default:
		return strings.Join(s.Sessions, ", ")
	}
}
