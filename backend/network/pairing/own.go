package pairing

import (
	"context"
	"path/filepath"

	"bridge/backend/network/hub"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/network/hub/join"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/link"
	"bridge/backend/platform/ipc/api"
)

// rosterPath is network/roster.json: the newest state that this PC has read of its team's
// roster, if the team has its own server. It outlives the membership, so that an older
// roster is refused after a later join too.
func (p Team) rosterPath() string { return filepath.Join(p.folder(), "roster.json") }

// JoinExternal makes this PC a member of a team that has its own NATS server (HUB-01). It fails
// with Conflict if this PC is in a team already, and with Denied if the server or the roster
// refuses it. It fails with Unavailable if the server does not answer.
func (p Team) JoinExternal(ctx context.Context, team, roster string, urls []string, access externalnats.Access) (join.Membership, error) {
	return p.join(func(identity link.Identity, record func(join.Membership) error) error {
		seen, err := hub.Seen(p.rosterPath(), team, roster, identity.ID)
		if err != nil {
			return err
		}
		place := externalnats.Place{Team: team, Self: identity.ID, Roster: roster, URLs: urls, Access: access}
		name, err := place.Check(ctx, seen)
		if err != nil {
			return err
		}
		return record(join.Membership{Team: team, Name: name, Hub: roster, URLs: urls, Access: &access, JoinedAt: p.opts.Now().UnixMilli()})
	})
}

// Identify returns this PC's name, id and key. It creates the identity if there is none. It
// fails if the identity cannot be read or created.
func (p Team) Identify() (api.PCName, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.identifyLocked(); err != nil {
		return api.PCName{}, err
	}
	return api.PCName{Name: p.Name(), ID: p.identity.ID, Key: seal.Text(p.identity.Key())}, nil
}
