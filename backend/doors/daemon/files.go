package daemon

import (
	"context"
	"encoding/json"
	"slices"

	"bridge/backend/doors/dashboard"
	"bridge/backend/network/files"
	"bridge/backend/network/pairing"
	"bridge/backend/network/sharing"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// network serves the owner's operations about other PCs: each by the part that it is
// about.
type network struct {
	peering *pairing.Peering
	files   *files.Transfers
	sharing *sharing.Sharing
	// settings are the owner's, as they are now.
	settings func() (config.Settings, error)
}

// Handle is broker.Network's.
func (n network) Handle(ctx context.Context, conn *ipc.Conn, op string, args json.RawMessage) (any, error) {
	if n.files != nil && slices.ContainsFunc(api.FileOperations(), func(row api.Row) bool { return row.Name == op }) {
		return n.files.Handle(ctx, conn, op, args)
	}
	if op == api.OpNetworkLists.Name {
		return n.sharing.Lists(ctx), nil
	}
	answer, err := n.peering.Handle(ctx, conn, op, args)
	if present, is := answer.(api.Network); is && err == nil {
		return n.inWords(present)
	}
	return answer, err
}

// inWords says what each PC may do here as the page does.
func (n network) inWords(present api.Network) (api.Network, error) {
	settings, err := n.settings()
	for i, pc := range present.Peers {
		present.Peers[i].May = settings.Network.May(pc.Name, present.TeamOf(pc), settings.Jobs.MaxAccess).Words(pc.Name)
	}
	return present, err
}

// linked is what the dashboard asks about other PCs; nil where none is reached.
func linked(d *Daemon) (dashboard.Peering, func(context.Context) api.NetworkLists) {
	if d.peering == nil || d.sharing == nil {
		return nil, nil
	}
	return d.peering, d.sharing.Lists
}

// startFiles goes on with the files on their way, before the first link is up. Records
// that cannot be read keep nobody from anything else.
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
