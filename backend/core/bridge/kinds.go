// Package bridge has the types that all packages share: agent kinds, addresses,
// messages, decisions' author form, error codes, the strict JSON decoder and every
// limit. It does no I/O and imports no other package of this module.
package bridge

import (
	"slices"
	"strings"
)

// AgentKind names one of the supported agent CLIs, or the owner.
type AgentKind string

// Owner is the person at the PC. The broker sets it and never accepts it from a session.
// The constant of each agent kind is in the file of its traits.
const Owner AgentKind = "owner"

// registered are the traits of the supported kinds, in display order: A, B, C and D of the
// specification. Each kind has one line, here as in the tables of drivers and of kinds.
var registered = []Traits{
	claude,
	codex,
	openCode,
	antigravity,
}

// Kinds returns the agent kinds in display order.
func Kinds() []AgentKind {
	kinds := make([]AgentKind, len(registered))
	for i, traits := range registered {
		kinds[i] = traits.Kind
	}
	return kinds
}

// TraitsOf returns the properties of an agent kind. It returns the zero value for the
// owner, for agents with the Agent Client Protocol, and for an unknown kind.
func TraitsOf(kind AgentKind) Traits {
	for i := range registered {
		if registered[i].Kind == kind {
			return registered[i]
		}
	}
	return Traits{}
}

// ParseKind returns the agent kind of that name. It fails with Invalid for another name;
// the error lists the choices.
func ParseKind(raw string) (AgentKind, error) {
	kind := AgentKind(raw)
	if slices.Contains(Kinds(), kind) {
		return kind, nil
	}
	var names []string
	for _, kind := range Kinds() {
		names = append(names, string(kind))
	}
	last := len(names) - 1
	return "", Errorf(Invalid, "unknown agent kind %q: use %s or %s", raw, strings.Join(names[:last], ", "), names[last])
}

// OwnerID and OwnerName are the address of the owner's own messages (seed
// 2.3: attribution `you`, `owner`).
const (
	OwnerID   = "owner"
	OwnerName = "you"
)
