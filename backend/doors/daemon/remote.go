package daemon

import (
	"context"
	"time"

	"bridge/backend/core/remote"
	"bridge/backend/network/remotejobs"
	"bridge/backend/network/sharing"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// capabilities returns this PC's capabilities for paired PCs.
func (d *Daemon) capabilities() []string {
	can := append(sharing.Capabilities(), remote.FilesCapability)
	if d.jobs != nil {
		can = append(can, remote.Capability, remote.ReadsCapability)
	}
	return can
}

// startSharing starts the exchange of messages, decisions and lists with paired
// PCs, before the first link is up and before any connection.
func startSharing(d *Daemon) *sharing.Sharing {
	opts := sharing.Options{
		Transport: d.peering.Ways(), Spool: d.peering.Ways(), Policy: policyOf(d), DB: d.db, Broker: d.broker, Now: d.opts.Now, Log: d.opts.Log,
		Team: d.peering.Team().Stream, Refused: d.peering.Team().Refused, Waits: d.peering.Team().Waits,
	}
	if d.jobs != nil {
		opts.Jobs = func() []api.JobView { return d.jobs.Recent(endedShown) }
	}
	shared := sharing.New(opts)
	d.broker.Share(shared)
	shared.Run()
	return shared
}

// endedShown is how many ended jobs a paired PC sees.
const endedShown = 50

// policyOf returns a function for the current permissions of other PCs.
func policyOf(d *Daemon) func() (remote.Policy, error) {
	return func() (remote.Policy, error) {
		network, err := d.network()
		return network.Policy(), err
	}
}

// peersChanged returns the function to call after any change of another PC.
func peersChanged(d *Daemon) func() {
	return func() {
		d.broker.Changed()
		if d.executor != nil {
			d.executor.Notify()
		}
		if d.files != nil {
			d.files.Forsake(d.peering.Team().Knows)
		}
	}
}

// serveJobs starts serving and requesting jobs of paired PCs, before the first link is up.
func (d *Daemon) serveJobs() {
	if d.jobs == nil {
		return
	}
	ways := d.peering.Ways()
	d.executor = remotejobs.NewExecutor(remotejobs.Options{
		Owned: remotejobs.Owned{Jobs: d.jobs, Git: d.git, Now: d.opts.Now}, Transport: ways, Log: d.opts.Log,
		Policy: policyOf(d), CheckRoot: config.ReservedFolders(d.opts.Home, d.opts.Getenv).Check, Knows: d.peering.Team().Knows,
	})
	d.requester = remotejobs.NewRequester(remotejobs.RequesterOptions{Transport: ways, Jobs: d.jobs.Paired(), Log: d.opts.Log})
	d.frames[remote.FrameType] = remotejobs.Dispatch(d.executor, d.requester, d.opts.Log)
	d.frames[remote.ReadsFrameType] = d.frames[remote.FrameType]
	d.jobs.Paired().Reach(d.requester)
	d.requester.Run()
}

// network returns the owner's current settings for other PCs.
func (d *Daemon) network() (config.Network, error) {
	settings, err := d.opts.Home.Settings(d.opts.Getenv)
	return settings.Network, err
}

// forget returns a function that removes a name from the permissions in the home's settings.
func forget(home config.Home) func(name string) error {
	return func(name string) error {
		_, err := home.UpdateConfig(func(c *config.Config) error {
			c.Network = c.Network.Without(name)
			return nil
		})
		return err
	}
}

// serveFrame handles a frame from a link.
func (d *Daemon) serveFrame(from remote.PC, frame remote.Frame) {
	if serve := d.frames[frame.Type]; serve != nil {
		serve(from, frame)
		return
	}
	d.opts.Log.Warn("a paired PC sent what this Bridge does not know", "peer", from.Name, "type", frame.Type)
}

// storedFor returns the handler of frames stored in the team's hub.
func storedFor(d *Daemon) func(context.Context, remote.PC, remote.Frame, time.Time) error {
	return func(ctx context.Context, from remote.PC, frame remote.Frame, since time.Time) error {
		return d.sharing.ProcessStored(ctx, from, frame, since)
	}
}
