package broker

import (
	"context"

	"bridge/backend/bridge"
)

// askVersion finds out by itself which version of its agent CLI this PC has, for
// the diagnostics of its sessions: what Bridge was not tried with may not work
// (MSG-11).
func (b *Broker) askVersion(kind bridge.AgentKind) {
	if b.opts.CLI == nil {
		return
	}
	b.soon(0, func(ctx context.Context) {
		found, err := b.opts.CLI(ctx, kind)
		if err != nil {
			b.opts.Log.Debug("the version of an agent CLI is not known", "agent", kind, "err", err)
		}
		b.mu.Lock()
		changed := b.versions[kind] != found.Version
		b.versions[kind] = found.Version
		b.mu.Unlock()
		if changed {
			b.changed()
		}
	})
}
