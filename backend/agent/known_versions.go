package agent

import (
	"sync"

	"bridge/backend/core/bridge"
)

// Versions caches the versions of the agent CLIs on this PC, as far as known.
type Versions struct {
	mu     sync.Mutex // guards byKind
	byKind map[bridge.AgentKind]string
}

// Of returns the version of a kind's CLI, or "" if it is unknown.
func (v *Versions) Of(kind bridge.AgentKind) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byKind[kind]
}

// Set stores a version, and reports whether it changed.
func (v *Versions) Set(kind bridge.AgentKind, version string) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byKind == nil {
		v.byKind = map[bridge.AgentKind]string{}
	}
	changed = v.byKind[kind] != version
	v.byKind[kind] = version
	return changed
}
