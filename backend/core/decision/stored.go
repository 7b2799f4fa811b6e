package decision

import (
	"encoding/json"
	"slices"

	"bridge/backend/core/bridge"
)

// Unreadable is the reason why a stored row cannot be used. The row stays in the store
// unchanged, and the doctor reports it.
type Unreadable struct {
	Why   string // continues a sentence about the row
	Newer bool   // a newer release may have written it
}

// Error returns why the row cannot be used.
func (u Unreadable) Error() string { return u.Why }

// StoredScope reads the scope of a stored revision. It accepts more than ParseScope,
// because earlier limits may have differed. It fails with Unreadable: a guess could
// notify the wrong sessions.
func StoredScope(stored string) (Scope, error) {
	if stored == `"all"` || stored == "all" {
		return AllSessions(), nil
	}
	var form struct {
		Project  *string  `json:"project"`
		Sessions []string `json:"sessions"`
	}
	err := bridge.DecodeStrict([]byte(stored), len(stored), &form)
	switch {
	case err != nil:
		return Scope{}, Unreadable{Why: "its scope cannot be read", Newer: isNewerScope(stored)}
	case form.Project != nil && form.Sessions != nil:
		return Scope{}, Unreadable{Why: "its scope has both a project and sessions", Newer: true}
	case form.Project != nil && *form.Project != "":
		return ProjectOf(*form.Project), nil
	case len(form.Sessions) > 0 && !slices.Contains(form.Sessions, ""):
		return Scope{Sessions: form.Sessions}, nil
	}
	return Scope{}, Unreadable{Why: "its scope names nobody"}
}

// isNewerScope reports whether an unreadable scope is valid JSON that a newer release
// may have written: another word, or an object with a member that is unknown or of
// another type.
func isNewerScope(stored string) bool {
	var keyword string
	if json.Unmarshal([]byte(stored), &keyword) == nil {
		return keyword != ""
	}
	var known struct {
		Project  string   `json:"project"`
		Sessions []string `json:"sessions"`
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(stored), &members) != nil || len(members) == 0 {
		return false
	}
	delete(members, "project")
	delete(members, "sessions")
	return len(members) > 0 || json.Unmarshal([]byte(stored), &known) != nil
}
