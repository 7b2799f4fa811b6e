package broker

import (
	"context"

	"bridge/backend/broker/presence"
	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// askVersion finds the version of an agent CLI on this PC in the background, for the
// diagnostics of its sessions. An untested version may not work (MSG-11). A session that
// begins now runs that version; an earlier one, which is registered again, may run another.
func (p *status) askVersion(kind bridge.AgentKind, begins *session.Session) {
	if p.opts.CLI == nil {
		return
	}
	p.soon(0, func(ctx context.Context) {
		found, err := p.opts.CLI(ctx, kind)
		if err != nil {
			p.opts.Log.Debug("the version of an agent CLI is not known", "agent", kind, "err", err)
		}
		p.opts.Proofs.Noticed(kind, found.Version)
		presence.Versions{Presence: p.Presence}.Set(begins, found.Version, p.opts.Proofs.Faults)
		if p.versions.Set(kind, found.Version) {
			p.changed()
		}
	})
}
