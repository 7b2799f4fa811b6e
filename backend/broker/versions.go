package broker

import (
	"context"
	"sync"

	"bridge/backend/bridge"
)

// cliVersions are the versions of the agent CLIs on this PC, as far as they told.
type cliVersions struct {
	mu     sync.Mutex // guards byKind
	byKind map[bridge.AgentKind]string
}

func (v *cliVersions) of(kind bridge.AgentKind) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byKind[kind]
}

// set reports whether it is another version than before.
func (v *cliVersions) set(kind bridge.AgentKind, version string) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byKind == nil {
		v.byKind = map[bridge.AgentKind]string{}
	}
	changed = v.byKind[kind] != version
	v.byKind[kind] = version
	return changed
}

// askVersion finds out by itself which version of its agent CLI this PC has, for
// the diagnostics of its sessions: what Bridge was not tried with may not work
// (MSG-11).
func (p *status) askVersion(kind bridge.AgentKind) {
	if p.opts.CLI == nil {
		return
	}
	p.soon(0, func(ctx context.Context) {
		found, err := p.opts.CLI(ctx, kind)
		if err != nil {
			p.opts.Log.Debug("the version of an agent CLI is not known", "agent", kind, "err", err)
		}
		if p.versions.set(kind, found.Version) {
			p.changed()
		}
	})
}
