package daemon

import (
	"context"

	"bridge/backend/broker/mux"
	"bridge/backend/doors/dashboard"
	"bridge/backend/network/files"
	"bridge/backend/network/pairing"
	"bridge/backend/network/sharing"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// network serves the owner's operations on other PCs.
type network struct {
	peering *pairing.Peering
	files   *files.Transfers
	sharing *sharing.Sharing
	// settings returns the owner's current settings.
	settings func() (config.Settings, error)
}

// Register adds the operations of all parts.
func (n network) Register(m *mux.Mux) {
	n.peering.Register(m)
	if n.files != nil {
		n.files.Register(m)
	}
	mux.Handle(m, api.OpNetworkLists, func(ctx context.Context, _ *ipc.Conn, _ api.Empty) (api.NetworkLists, error) {
		return n.sharing.Lists(ctx), nil
	})
	mux.Handle(m, api.OpNetwork, func(context.Context, *ipc.Conn, api.Empty) (api.Network, error) {
		n.peering.Refresh() // a command may just have changed the settings
		present, err := n.peering.Network()
		if err != nil {
			return present, err
		}
		return n.inWords(present)
	})
}

// inWords describes each PC's permissions here as the dashboard does.
func (n network) inWords(present api.Network) (api.Network, error) {
	settings, err := n.settings()
	for i, pc := range present.Peers {
		present.Peers[i].May = settings.Network.May(pc.Name, present.TeamOf(pc), settings.Jobs.MaxAccess).Words(pc.Name)
	}
	return present, err
}

// linked returns the dashboard's sources about other PCs, or nil without other PCs.
func linked(d *Daemon) (dashboard.Peering, func(context.Context) api.NetworkLists) {
	if d.peering == nil || d.sharing == nil {
		return nil, nil
	}
	return d.peering, d.sharing.Lists
}

// startFiles resumes the transfers before the first link is up. Unreadable records
// disable only the transfers.
func startFiles(d *Daemon) *files.Transfers {
	transfers, err := files.Open(files.Options{
		Home: d.opts.Home, Transport: d.peering.Ways(), Changed: d.broker.Changed, Now: d.opts.Now, Log: d.opts.Log,
		Policy: policyOf(d),
	})
	if err != nil {
		d.opts.Log.Error("files between PCs are not served", "err", err)
		return nil
	}
	transfers.Run()
	return transfers
}
