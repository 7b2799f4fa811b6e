package daemon

import (
	"context"

	"bridge/backend/agent/connect"
	"bridge/backend/broker/proving"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/platform/config"
	"bridge/backend/platform/proc"
)

// Prover tries the routes into agents in child processes at the lowest priority.
type Prover struct {
	Kinds []bridge.AgentKind // whose routes can be tried
	// Run tries the routes of a kind. It fails with the reason if they cannot be tried.
	Run func(ctx context.Context, kind bridge.AgentKind) (proof.Proof, error)
}

// proofs is what the service of the proofs gets from a daemon.
type proofs struct{ d *Daemon }

// busyLoad is how many processes may want each processor of a PC that is not busy.
const busyLoad = 0.7

// open returns the service; without a prover it tries nothing, and knows what is stored.
func (p proofs) open() *proving.Service {
	d := p.d
	options := proving.Options{
		File:      config.ProofsFile{Home: d.opts.Home},
		Settings:  func() (config.Settings, error) { return d.opts.Home.Settings(d.opts.Getenv) },
		Connected: p.connected,
		Version: func(ctx context.Context, kind bridge.AgentKind) (string, error) {
			found, err := d.cli(ctx, kind)
			return found.Version, err
		},
		Busy:    p.isBusy,
		Changed: p.changed,
		Now:     d.opts.Now, Log: d.opts.Log,
	}
	if d.opts.Prove != nil {
		options.Kinds, options.Run = d.opts.Prove.Kinds, d.opts.Prove.Run
	}
	return proving.Open(options)
}

func (p proofs) connected() ([]bridge.AgentKind, error) {
	return connect.Agents.Connected(p.d.agents())
}

// changed invalidates what is shown; before there is a broker nothing is.
func (p proofs) changed() {
	if p.d.broker != nil {
		p.d.broker.Changed()
	}
}

// isBusy reports whether this PC or one of its sessions is at work.
func (p proofs) isBusy(ctx context.Context) bool {
	peers, err := p.d.broker.Peers(ctx)
	if err != nil || proc.Load() > busyLoad {
		return true
	}
	for _, peer := range peers {
		if peer.State == "busy" {
			return true
		}
	}
	return false
}
