package broker

import (
	"context"

	"bridge/backend/core/bridge"
)

// askVersion finds the version of an agent CLI on this PC in the background, for the
// diagnostics of its sessions. An untested version may not work (MSG-11).
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
