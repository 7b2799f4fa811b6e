package peering

import (
	"context"
	"path/filepath"

	"bridge/backend/network/hub"
	"bridge/backend/network/hub/box"
	"bridge/backend/network/hub/enrol"
	"bridge/backend/network/hub/own"
	"bridge/backend/network/link"
	"bridge/backend/platform/ipc/api"
)

// rosterPath is network/roster.json: the newest of what this PC has read in its team's
// roster, where the team has a server of its own. It outlives the membership, so that an
// older roster is refused after joining again, too.
func (p Crew) rosterPath() string { return filepath.Join(p.folder(), "roster.json") }

// EnrolOwn makes this PC one of a team that has a NATS server of its own (HUB-01).
func (p Crew) EnrolOwn(ctx context.Context, team, roster string, urls []string, access own.Access) (enrol.Membership, error) {
	return p.join(func(identity link.Identity, record func(enrol.Membership) error) error {
		seen, err := hub.Seen(p.rosterPath(), team, roster, identity.ID)
		if err != nil {
			return err
		}
		place := own.Place{Team: team, Self: identity.ID, Roster: roster, URLs: urls, Access: access}
		name, err := place.Look(ctx, seen)
		if err != nil {
			return err
		}
		return record(enrol.Membership{Team: team, Name: name, Hub: roster, URLs: urls, Access: &access, JoinedAt: p.opts.Now().UnixMilli()})
	})
}

// Identify says who this PC is for others, and makes it somebody where it was nobody yet.
func (p Crew) Identify() (api.PCName, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.identifyLocked(); err != nil {
		return api.PCName{}, err
	}
	return api.PCName{Name: p.Name(), ID: p.identity.ID, Key: box.Text(p.identity.Key())}, nil
}
