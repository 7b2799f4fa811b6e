package agent

import (
	"sync"

	"bridge/backend/core/bridge"
)

// Versions are those of the agent CLIs on this PC, as far as they told.
type Versions struct {
	mu     sync.Mutex // guards byKind
	byKind map[bridge.AgentKind]string
}

// Of is the version of a kind's CLI, "" while it is not known.
func (v *Versions) Of(kind bridge.AgentKind) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byKind[kind]
}

// Set keeps a version, and reports whether it is another version than before.
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
