// Package bridge has the types that all packages share: agent kinds, addresses,
// messages, decisions' author form, error codes, the strict JSON decoder and every
// limit. It does no I/O and imports no other package of this module.
package bridge

import "slices"

// AgentKind names one of the supported agent CLIs, or the owner.
type AgentKind string

// The supported kinds: A, B, C and D of the specification.
const (
	Claude      AgentKind = "claude"
	Codex       AgentKind = "codex"
	OpenCode    AgentKind = "opencode"
	Antigravity AgentKind = "antigravity"

	// Owner is the person at the PC. The broker sets it and never accepts it from a
	// session.
	Owner AgentKind = "owner"
)

// Kinds returns the four agent kinds in display order.
func Kinds() []AgentKind { return []AgentKind{Claude, Codex, OpenCode, Antigravity} }

// ParseKind returns the agent kind of that name. The error lists the choices.
func ParseKind(raw string) (AgentKind, error) {
	kind := AgentKind(raw)
	if slices.Contains(Kinds(), kind) {
		return kind, nil
	}
	return "", Errorf(Invalid, "unknown agent kind %q: use claude, codex, opencode or antigravity", raw)
}

// OwnerID and OwnerName are the address of the owner's own messages (seed
// 2.3: attribution `you`, `owner`).
const (
	OwnerID   = "owner"
	OwnerName = "you"
)
