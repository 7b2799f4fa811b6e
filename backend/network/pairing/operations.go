package pairing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bridge/backend/broker/mux"
	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// Register serves the operations about other PCs. The broker lets only the owner call
// them. The daemon serves api.OpNetwork, because it adds what each PC may do here.
func (p *Peering) Register(m *mux.Mux) {
	mux.Handle(m, api.OpInvite, func(context.Context, *ipc.Conn, api.Empty) (api.Invited, error) { return p.invite() })
	mux.Handle(m, api.OpInvitation, func(ctx context.Context, _ *ipc.Conn, a api.InvitationArgs) (api.InvitationEnded, error) {
		return p.await(ctx, a.ID)
	})
	mux.Handle(m, api.OpLink, func(ctx context.Context, _ *ipc.Conn, a api.LinkArgs) (api.PCName, error) {
		pair, err := p.Join(ctx, a.Address, a.Code)
		return api.PCName{Name: pair.Name, ID: pair.ID}, err
	})
	mux.Handle(m, api.OpUnlink, func(_ context.Context, _ *ipc.Conn, a api.UnlinkArgs) (api.Empty, error) {
		return api.Empty{}, p.Unlink(a.Name)
	})
	mux.Handle(m, api.OpJoinTeam, func(ctx context.Context, _ *ipc.Conn, a api.LinkArgs) (api.Joined, error) {
		joined, err := p.Team().Enrol(ctx, a.Address, a.Code)
		return api.Joined{Team: joined.Team, Name: joined.Name, Hub: joined.Hub}, err
	})
	mux.Handle(m, api.OpJoinOwn, func(ctx context.Context, _ *ipc.Conn, a api.JoinExternalArgs) (api.Joined, error) {
		joined, err := p.Team().JoinExternal(ctx, a.Team, a.Roster, a.URLs, externalnats.Access{Creds: a.Creds, CA: a.CA, Plain: a.Plain})
		return api.Joined{Team: joined.Team, Name: joined.Name, Hub: joined.Hub, Own: err == nil}, err
	})
	mux.Handle(m, api.OpIdentify, func(context.Context, *ipc.Conn, api.Empty) (api.PCName, error) { return p.Team().Identify() })
	mux.Handle(m, api.OpLeaveTeam, func(ctx context.Context, _ *ipc.Conn, _ api.Empty) (api.Joined, error) {
		former, untold, err := p.Team().Leave(ctx)
		answer := api.Joined{Team: former.Team, Own: former.Access != nil}
		if untold != nil {
			answer.Untold = untold.Error()
		}
		return answer, err
	})
}

func (p *Peering) invite() (api.Invited, error) {
	invitation, err := p.Invite()
	if err != nil {
		return api.Invited{}, err
	}
	return api.Invited{
		ID: invitation.ID, Code: invitation.Code, Addresses: invitation.Addresses, ExpiresAt: invitation.ExpiresAt.UnixMilli(),
		Name: invitation.Name, Self: invitation.Self,
	}, nil
}

// await waits for an invitation's end. If the caller cancels, it withdraws the invitation.
func (p *Peering) await(ctx context.Context, id string) (api.InvitationEnded, error) {
	state, pair, err := p.Await(ctx, id)
	if err != nil {
		p.Withdraw(id)
		return api.InvitationEnded{}, err
	}
	return api.InvitationEnded{State: string(state), Peer: api.PCName{Name: pair.Name, ID: pair.ID}}, nil
}

// Network returns the state of the network for programs. It fails if the settings cannot be
// read.
func (p *Peering) Network() (api.Network, error) {
	status, err := p.Status()
	if err != nil {
		return api.Network{}, err
	}
	network := api.Network{
		Name: status.Name, ID: status.ID, Enabled: status.Enabled, Listening: append([]string{}, status.Listening...), Failed: status.Failed, Peers: []api.PC{},
	}
	if team := p.Team().Team(); team.Team != "" || team.Failed != "" {
		network.Team = &api.Team{
			Team: team.Team, Name: team.Name, Hub: team.Hub, Up: team.Up, Server: team.Server, Failed: team.Failed, Unheard: append([]string{}, team.Unheard...),
			Own: team.Own, Sees: sees(team), Carried: carried(team), Dropped: []api.Dropped{}, Sealed: team.Sealed, Keyless: append([]string{}, team.Keyless...),
		}
		if team.Team != "" {
			network.Team.Decisions = status.Settings.SharesWith(team.Team)
			network.Team.May = remote.TeamWords(team.Team, status.Enabled, network.Team.Decisions)
		}
		for _, d := range team.Dropped {
			network.Team.Dropped = append(network.Team.Dropped, api.Dropped{
				Name: d.PC.Name, Why: string(d.Why), Words: d.Words(), Count: d.Count, Last: d.Last.UnixMilli(), Hostile: d.Hostile(),
			})
		}
		if !team.Watched.IsZero() {
			network.Team.Watched = team.Watched.UnixMilli()
		}
		network.Team.Waits = waitsOf(team.Waits)
		if team.Up {
			network.Team.Since = team.Since.UnixMilli()
		}
	}
	for _, peer := range status.Peers {
		pc := api.PC{
			Paired: peer.Paired, Member: peer.Member,
			Name: peer.Name, ID: peer.ID, Up: peer.Up, Release: peer.Release, Capabilities: append([]string{}, slices.Sorted(slices.Values(peer.Capabilities))...), Failed: peer.Failed,
			Allowed: api.PCAllowed{Jobs: peer.Jobs, Messages: peer.Messages, Decisions: peer.Decisions, Dashboard: peer.Dashboard, Files: peer.Files},
		}
		if peer.Before.Before != "" {
			pc.Before = &api.Before{ID: peer.Before.Before, Since: peer.Before.Since}
		}
		if peer.Up {
			pc.Update = p.update(peer)
			pc.Since = peer.Since.UnixMilli()
		}
		network.Peers = append(network.Peers, pc)
	}
	return network, nil
}

// waitsOf describes the decisions that wait for the hub, nil for none.
func waitsOf(w Waits) *api.Waits {
	if w.Decisions == 0 {
		return nil
	}
	waits := "waits on this PC because"
	if w.Decisions > 1 {
		waits = "wait on this PC, the first because"
	}
	return &api.Waits{
		Decisions: w.Decisions, Why: w.Why.Error(), Since: w.Since.UnixMilli(),
		Words: fmt.Sprintf("%s for the team %s %s; it is tried again", bridge.Counted(w.Decisions, "decision"), waits, w.Why),
	}
}

// sees describes to the PCs' owners what the operator of the hub, or of the team's own
// server, sees and can do.
func sees(team TeamStatus) string {
	reads := "what they write. "
	if team.Sealed {
		reads = "the team's decisions. What else this PC says is sealed to the PC that it is for. "
	}
	const allow = "each signs what it says. What each may do here is for you alone to allow."
	if !team.Own {
		return "Whoever runs the hub decides who is in the team, and sees who is there, who writes to whom and when, and " + reads + "It cannot speak for another PC: " + allow
	}
	return "Whoever has the team's key decides who is in the team. Whoever runs the NATS server sees who is there, who writes to whom and when, and " + reads +
		"It can hold back messages, but it cannot act as another PC, and it adds no PC to the team: " + allow
}

// carried describes whether the hub can read what goes through it.
func carried(team TeamStatus) string {
	runs := "hub"
	if team.Own {
		runs = "NATS server"
	}
	if !team.Sealed {
		return "Readable to the " + runs + ": whoever runs it can read what this PC says to another one (the Network page seals it, or network.hub.seal in config.json)."
	}
	text := "Sealed: what this PC says to another one only that one can read. Decisions for the whole team stay readable to the " + runs + "."
	if len(team.Keyless) > 0 {
		text += " Nothing goes to " + strings.Join(team.Keyless, ", ") + ": there is no key to seal to before a PC has this release of Bridge or a newer one, and was there with it."
	}
	return text
}

// update names what a connected PC lacks of this PC's capabilities, "" for nothing (RMT-03).
func (p *Peering) update(peer PeerStatus) string {
	var lacking []string
	for _, capability := range p.opts.Capabilities {
		if !peer.Can(capability) {
			lacking = append(lacking, capability)
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	return remote.ErrUpdate(peer.Status, strings.Join(lacking, ", ")).Error()
}
