// Package decision has the rules of pinned owner decisions: revisions, scopes when
// recording and on lookup, which sessions a decision reaches, and the short note at
// session start (seed 2.1, 2.2, 3.1, 4.1). It does no I/O: the store keeps revisions
// and the broker delivers them.
package decision

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"bridge/backend/core/bridge"
)

// Revision is one recorded decision. Its JSON form has exactly the members of seed 2.1,
// plus withdrawn if true; nullable members are null.
type Revision struct {
	ID              string            `json:"id"`
	Topic           string            `json:"topic"`
	Text            string            `json:"text"`
	Scope           Scope             `json:"scope"`
	Author          bridge.Address    `json:"author"`
	CreatedAt       bridge.UnixMillis `json:"createdAt"`
	SourceMessageID *string           `json:"sourceMessageId"`
	Supersedes      *string           `json:"supersedes"`
	// Current reports whether the revision is in force: it is the newest of its topic
	// and not a withdrawal.
	Current bool `json:"current"`
	// Withdrawn reports whether the revision ends the decision in force on its topic.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// NormalizeTopic returns the key of a topic's history: without outer white space, in lower
// case, 1 to 200 characters (DEC-03). It fails with Invalid for control characters.
func NormalizeTopic(raw string) (string, error) {
	topic := strings.TrimSpace(raw)
	if err := bridge.CheckText("the topic", topic, bridge.MaxTopicChars); err != nil {
		return "", err
	}
	if strings.ContainsFunc(topic, breaksLine) {
		return "", bridge.Errorf(bridge.Invalid, "the topic must not hold control characters or line breaks")
	}
	return strings.ToLower(topic), nil
}

// breaksLine reports whether r could break the single line of a topic in notes and
// lists.
func breaksLine(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) }

// CheckText fails unless text is a valid decision text: 1 to 8,000 characters, not only
// white space (DEC-03).
func CheckText(text string) error {
	if strings.TrimSpace(text) == "" {
		return bridge.Errorf(bridge.Invalid, "the text must not be empty")
	}
	return bridge.CheckText("the text", text, bridge.MaxDecisionChars)
}

// New returns the current revision for a request, without id, author and time. A
// request without a scope is for the project in the folder cwd (DEC-06). New fails with
// Invalid if the topic, the text or the scope is malformed.
func New(topic, text string, scope *Scope, cwd string) (revision Revision, err error) {
	if revision.Topic, err = NormalizeTopic(topic); err != nil {
		return Revision{}, err
	}
	if err := CheckText(text); err != nil {
		return Revision{}, err
	}
	if revision.Scope, err = ScopeOrProject(scope, cwd); err != nil {
		return Revision{}, err
	}
	revision.Text, revision.Current = text, true
	return revision, nil
}

// Target is the data of a session that decides whether a scope reaches it.
type Target struct {
	ID        string // peer id
	Name      string
	Agent     bridge.AgentKind
	SessionID string // host session id, "" if unknown
	Cwd       string
}

// SessionKey returns the key of a session's delivery receipts. It uses the host session
// id, which survives broker restart and reload, or the peer id before that is known
// (DEC-12).
func (t Target) SessionKey() string {
	if t.SessionID != "" {
		return string(t.Agent) + ":" + t.SessionID
	}
	return string(t.Agent) + ":" + t.ID
}

// addresses returns the names and ids by which a sessions scope may name t.
func (t Target) addresses() []string {
	return slices.DeleteFunc([]string{t.Name, t.ID, t.SessionID}, func(address string) bool { return address == "" })
}

// Reaches reports whether a decision recorded for scope applies to t (seed 2.2).
func (s Scope) Reaches(t Target) bool {
	switch {
	case s.All:
		return true
	case s.Project != "":
		return t.Cwd != "" && s.Project == normalizeProject(t.Cwd)
	default:
		return s.names(t)
	}
}

// names reports whether a sessions scope has a name or id of t. A name counts in either
// of its normal forms.
func (s Scope) names(t Target) bool {
	addresses := t.addresses()
	return slices.ContainsFunc(s.Sessions, func(address string) bool {
		return slices.Contains(addresses, address) || slices.Contains(addresses, bridge.NormalizeName(address))
	})
}

// Lookup selects revisions.
type Lookup struct {
	Query   string // case-insensitive substring of topic or text, "" for any
	Topic   string // exact normalized topic, "" for any
	Scope   *Scope // nil: every scope
	History bool   // superseded revisions too
	// Asking adds, to a project scope, the decisions for the asking session (DEC-06).
	// It is nil for the dashboard, which has no session.
	Asking *Target
}

// Widen returns l with all names and ids of the sessions in its sessions scope. So each
// of a session's name, peer id and host session id finds the decisions for all of them
// (DEC-05). known is newest first: a name belongs to its newest session.
func (l Lookup) Widen(known []Target) Lookup {
	requested := l.Scope.Sessions
	widened := slices.Clone(requested)
	named := map[string]bool{}
	for _, t := range known {
		if named[t.Name] {
			t.Name = ""
		}
		named[t.Name] = true
		if l.Scope.names(t) {
			widened = append(widened, t.addresses()...)
		}
	}
	l.Scope = &Scope{Sessions: widened}
	return l
}

// Matches reports whether a revision matches the lookup by scope, topic and text. The
// caller handles History: it knows the current revisions.
func (l Lookup) Matches(r Revision) bool {
	if l.Topic != "" && r.Topic != l.Topic {
		return false
	}
	query := strings.ToLower(l.Query)
	if !strings.Contains(r.Topic, query) && !strings.Contains(strings.ToLower(r.Text), query) {
		return false
	}
	return l.inScope(r.Scope)
}

func (l Lookup) inScope(stored Scope) bool {
	switch {
	case l.Scope == nil || stored.All:
		return true
	case l.Scope.All:
		return false
	case l.Scope.Project != "" && stored.Project != "":
		return stored.Project == l.Scope.Project
	case l.Scope.Project != "":
		return l.Asking != nil && stored.Reaches(*l.Asking)
	default:
		return slices.ContainsFunc(l.Scope.Sessions, func(requested string) bool {
			return slices.ContainsFunc(stored.Sessions, func(address string) bool { return bridge.NormalizeName(address) == bridge.NormalizeName(requested) })
		})
	}
}

// CheckQuery limits the length of a lookup's query (DEC-20).
func CheckQuery(query string) error {
	if query == "" {
		return nil
	}
	return bridge.CheckText("the query", query, bridge.MaxQueryChars)
}

// Scope is the set of sessions that a decision applies to: all local sessions, the
// sessions of one folder, or named sessions. Exactly one of its members is set.
type Scope struct {
	All      bool
	Project  string   // normalized absolute folder
	Sessions []string // names, peer ids or host session ids, as given
}

// AllSessions returns the scope of all local sessions.
func AllSessions() Scope { return Scope{All: true} }

// ProjectOf returns the scope of the sessions of one folder.
func ProjectOf(folder string) Scope { return Scope{Project: normalizeProject(folder)} }

// ScopeOrProject returns the requested scope, or the project of the session's folder
// (DEC-06).
func ScopeOrProject(scope *Scope, folder string) (Scope, error) {
	if scope != nil {
		return *scope, nil
	}
	if folder == "" {
		return Scope{}, bridge.Errorf(bridge.Invalid, "this session's project folder is not known: give a scope")
	}
	return ProjectOf(folder), nil
}

// MarshalJSON returns "all", {"project":…} or {"sessions":[…]}.
func (s Scope) MarshalJSON() ([]byte, error) {
	switch {
	case s.All:
		return []byte(`"all"`), nil
	case s.Project != "":
		return json.Marshal(map[string]string{"project": s.Project})
	case len(s.Sessions) > 0:
		return json.Marshal(map[string][]string{"sessions": s.Sessions})
	}
	return nil, fmt.Errorf("encode a decision scope: it is empty")
}

// UnmarshalJSON reads the forms of MarshalJSON strictly; the error is a bridge.Error
// that describes the valid forms.
func (s *Scope) UnmarshalJSON(data []byte) error {
	scope, err := ParseScope(data)
	if err != nil {
		return err
	}
	*s = scope
	return nil
}

// maxScopeBytes limits a scope's JSON: every address at its longest, escaped.
const maxScopeBytes = 1 << 20

// ParseScope reads a scope from JSON and normalizes a project's folder (DEC-04). It
// fails with a sentence that shows the three forms.
func ParseScope(data []byte) (Scope, error) {
	var keyword *string // stays nil if data is null
	if json.Unmarshal(data, &keyword) == nil && keyword != nil {
		if *keyword == "all" {
			return AllSessions(), nil
		}
		return Scope{}, malformedScope("it is the word " + strconv.Quote(clip(*keyword, maxShownWord)))
	}
	var form struct {
		Project  *string  `json:"project"`
		Sessions []string `json:"sessions"`
	}
	if err := bridge.DecodeStrict(data, maxScopeBytes, &form); err != nil {
		return Scope{}, malformedScope(err.Error())
	}
	switch {
	case form.Project != nil && form.Sessions != nil:
		return Scope{}, malformedScope("it has both project and sessions")
	case form.Project != nil:
		return parseProject(*form.Project)
	case form.Sessions != nil:
		return parseSessions(form.Sessions)
	}
	return Scope{}, malformedScope("it is empty")
}

func parseProject(folder string) (Scope, error) {
	if err := bridge.CheckText("the project folder", folder, bridge.MaxPathChars); err != nil {
		return Scope{}, err
	}
	if !isAbsolute(folder) {
		return Scope{}, malformedScope("the project folder must be absolute")
	}
	return ProjectOf(folder), nil
}

func parseSessions(sessions []string) (Scope, error) {
	if len(sessions) == 0 || len(sessions) > bridge.MaxScopeSessions {
		return Scope{}, malformedScope(fmt.Sprintf("sessions must name 1 to %d sessions", bridge.MaxScopeSessions))
	}
	for _, address := range sessions {
		if err := bridge.CheckID("a session in the scope", address); err != nil {
			return Scope{}, err
		}
	}
	return Scope{Sessions: sessions}, nil
}

func malformedScope(why string) error {
	return bridge.Errorf(bridge.Invalid,
		`malformed scope: %s; use "all", {"project":"/absolute/folder"} or {"sessions":["name or id"]}`, why)
}

// maxShownWord limits the input that an error repeats.
const maxShownWord = 80
