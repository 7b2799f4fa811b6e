package broker

import (
	"context"

	"bridge/backend/core/bridge"
)

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
		if p.versions.Set(kind, found.Version) {
			p.changed()
		}
	})
}
