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

// rosterPath is network/roster.json: the newest of what this PC has read in its team's
// roster, where the team has a server of its own. It outlives the membership, so that an
// older roster is refused after joining again, too.
func (p Crew) rosterPath() string { return filepath.Join(p.folder(), "roster.json") }

// EnrolOwn makes this PC one of a team that has a NATS server of its own (HUB-01).
func (p Crew) EnrolOwn(ctx context.Context, team, roster string, urls []string, access externalnats.Access) (join.Membership, error) {
	return p.join(func(identity link.Identity, record func(join.Membership) error) error {
		seen, err := hub.Seen(p.rosterPath(), team, roster, identity.ID)
		if err != nil {
			return err
		}
		place := externalnats.Place{Team: team, Self: identity.ID, Roster: roster, URLs: urls, Access: access}
		name, err := place.Look(ctx, seen)
		if err != nil {
			return err
		}
		return record(join.Membership{Team: team, Name: name, Hub: roster, URLs: urls, Access: &access, JoinedAt: p.opts.Now().UnixMilli()})
	})
}

// Identify says who this PC is for others, and makes it somebody where it was nobody yet.
func (p Crew) Identify() (api.PCName, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.identifyLocked(); err != nil {
		return api.PCName{}, err
	}
	return api.PCName{Name: p.Name(), ID: p.identity.ID, Key: seal.Text(p.identity.Key())}, nil
}
