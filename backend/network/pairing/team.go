package pairing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/hub/join"
	"bridge/backend/network/link"
	"bridge/backend/platform/disk"
)

// teamFile is network/team.json: the team of this PC, with the key for its hub, and the
// names of its PCs.
type teamFile struct {
	Version    int               `json:"version"`
	Membership *join.Membership  `json:"membership,omitempty"` // nil after it has left
	PCs        map[string]string `json:"pcs,omitempty"`        // names by id
	// Names holds for each name the PC that has it, or had it last.
	Names map[string]Named `json:"names,omitempty"`
}

// Named is the PC that has a name in the team, as this PC has seen it.
type Named struct {
	ID string `json:"id"`
	// Before is another PC that had the name here until Since, in milliseconds since
	// 1970; "" for none.
	Before string            `json:"before,omitempty"`
	Since  bridge.UnixMillis `json:"since,omitempty"`
}

// maxNames limits the remembered names.
const maxNames = 4096

// named returns the names after the team's PCs changed. It records that a name moved to
// another PC, however long the name was unused, and whatever the hub reports.
func named(before map[string]Named, pcs map[string]string, now time.Time) map[string]Named {
	names := maps.Clone(before)
	if names == nil {
		names = map[string]Named{}
	}
	for id, name := range pcs {
		is, known := names[name]
		switch {
		case known && is.ID != id:
			names[name] = Named{ID: id, Before: is.ID, Since: now.UnixMilli()}
		case !known && len(names) < maxNames:
			names[name] = Named{ID: id}
		}
	}
	return names
}

// before returns the PC that had the name of a PC of the team before, if any.
func (f teamFile) before(pc remote.PC) (n Named, had bool) {
	n = f.Names[pc.Name]
	return n, n.ID == pc.ID && n.Before != ""
}

// Team handles this PC's team membership.
type Team struct{ *Peering }

// Team returns the team membership of this PC.
func (p *Peering) Team() Team { return Team{p} }

const (
	teamVersion  = 1
	maxTeamBytes = 1 << 20
)

func (p Team) teamPath() string { return filepath.Join(p.folder(), "team.json") }

// readTeam reads the team of this PC. An unreadable file stays unchanged and does not
// affect the pairs.
func (p Team) readTeam() {
	var file teamFile
	err := disk.ReadJSON(p.teamPath(), maxTeamBytes, &file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err == nil && file.Version != teamVersion:
		err = bridge.Errorf(bridge.Unsupported, "network/team.json is of version %d: this Bridge knows %d", file.Version, teamVersion)
	case err != nil:
		err = bridge.WithCause(bridge.Storage, err, "this PC's team cannot be read, network/team.json is left as it is: "+disk.Reason(err))
	}
	if err != nil {
		p.teamBroken = err
		p.opts.Log.Error("the team is not reached", "err", err)
		return
	}
	p.team = file
}

// writeTeam stores the team. The caller holds admitting. It fails with Storage on a disk error.
func (p Team) writeTeam(file teamFile) error {
	file.Version = teamVersion
	err := disk.MakeDir(p.folder())
	if err == nil {
		err = disk.WriteJSON(p.teamPath(), file)
	}
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, "this PC's team could not be recorded: "+disk.Reason(err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.team = file
	return nil
}

// Enrol makes this PC a member of the team whose hub is at that address, by the code that the
// hub shows (HUB-03). It fails with Conflict if this PC is in a team already, and with Invalid
// for a bad address or code. It fails with Denied if the hub refuses the code, and also if the
// hub cannot be reached.
func (p Team) Enrol(ctx context.Context, address, code string) (join.Membership, error) {
	return p.join(func(identity link.Identity, record func(join.Membership) error) error {
		return join.Join(ctx, identity, p.Name(), address, code, record)
	})
}

// join makes this PC a member of a team by the function enter. It fails with Conflict if it has one.
func (p Team) join(enter func(identity link.Identity, record func(join.Membership) error) error) (joined join.Membership, err error) {
	p.teamTurn.Lock()
	defer p.teamTurn.Unlock()
	p.mu.Lock()
	err, present := p.teamBroken, p.team.Membership
	if err == nil && present != nil {
		err = bridge.Errorf(bridge.Conflict, "this PC belongs to the team %s already: `bridge leave` ends that", present.Team)
	}
	if err == nil {
		err = p.identifyLocked()
	}
	identity := p.identity
	p.mu.Unlock()
	if err != nil {
		return join.Membership{}, err
	}
	err = enter(*identity, func(m join.Membership) error {
		joined = m
		p.admitting.Lock()
		defer p.admitting.Unlock()
		return p.writeTeam(teamFile{Membership: &m})
	})
	if err != nil {
		return join.Membership{}, err
	}
	p.callHub()
	p.opts.Changed()
	return joined, nil
}

// Leave ends this PC's team membership at once. It deletes the key for the hub, and removes the
// names of the team's PCs from what the owner allows. untold is why the hub, or the team's own
// server, may not have been informed. Leave fails with NotFound if this PC is in no team, and
// if network/team.json or config.json cannot be changed.
func (p Team) Leave(ctx context.Context) (former join.Membership, untold, err error) {
	p.teamTurn.Lock()
	defer p.teamTurn.Unlock()
	before, err := p.quit()
	if err != nil {
		return former, nil, err
	}
	untold = p.announceLeave(ctx, *before.Membership)
	p.callHub()
	p.opts.Changed()
	for _, name := range append(slices.Collect(maps.Values(before.PCs)), remote.TeamShare(before.Membership.Team)) {
		if err := p.forgetMember(name); err != nil {
			return *before.Membership, untold, bridge.WithCause(bridge.CodeOf(err), err, fmt.Sprintf("this PC has left the team, but config.json may still allow things to a PC named %s: take the name out there (%s)", name, err))
		}
	}
	return *before.Membership, untold, nil
}

// announceLeave informs the team that this PC leaves. It fails with Unavailable while links are off.
func (p Team) announceLeave(ctx context.Context, m join.Membership) error {
	p.mu.Lock()
	h := p.hub
	p.mu.Unlock()
	if h == nil {
		return bridge.Errorf(bridge.Unavailable, "links are off (network.enabled)")
	}
	key, err := m.Key()
	if err != nil {
		return err
	}
	if m.Access != nil {
		return hub.AnnounceLeave(ctx, h, key)
	}
	return hub.Leave(ctx, h, key)
}

// quit records that this PC belongs to no team. It fails with NotFound if it had none.
func (p Team) quit() (before teamFile, err error) {
	p.admitting.Lock()
	defer p.admitting.Unlock()
	p.mu.Lock()
	before, err = p.team, p.teamBroken
	p.mu.Unlock()
	if err == nil && before.Membership == nil {
		err = bridge.Errorf(bridge.NotFound, "this PC belongs to no team")
	}
	if err == nil {
		err = p.writeTeam(teamFile{})
	}
	return before, err
}

// forgetMember removes a name from what the owner allows, after the last PC of the team
// with it has gone. It keeps the name of a pair.
func (p Team) forgetMember(name string) error {
	if _, err := p.book.ByName(name); err == nil {
		return nil
	}
	return p.opts.Forget(name)
}

// followTeam opens or closes the connection to the hub as the settings require.
func (p Team) followTeam() {
	p.teamTurn.Lock()
	defer p.teamTurn.Unlock()
	p.callHub()
}

// callHub opens or closes the connection to the hub. The caller holds teamTurn.
func (p Team) callHub() {
	wanted := p.enabled() && !p.tasks.HasEnded()
	p.mu.Lock()
	present, membership := p.hub, p.team.Membership
	wanted = wanted && membership != nil
	if !wanted {
		p.hub = nil
	}
	p.mu.Unlock()
	switch {
	case !wanted && present != nil:
		present.Close()
		p.opts.Changed()
	case wanted && present == nil:
		opened, err := p.openHub(*membership)
		if err != nil {
			p.opts.Log.Error("the team is not reached", "err", err)
		}
		p.mu.Lock()
		p.hub, p.hubFailed, p.hubOpened = opened, err, p.opts.Now()
		p.mu.Unlock()
	}
}

func (p Team) openHub(m join.Membership) (*hub.Hub, error) {
	p.mu.Lock()
	err := p.identifyLocked()
	identity := p.identity
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	login, err := loginOf(m)
	if err != nil {
		return nil, err
	}
	opts := hub.Options{
		Team: m.Team, Self: identity.ID, Hub: m.Hub, URLs: m.URLs, Sign: identity.Sign, Numbers: filepath.Join(p.folder(), "said.json"),
		Login: login, Seal: p.seals, Open: identity.Open,
		Word: func() hub.Announcement {
			return hub.Announcement{Release: p.opts.Release, Capabilities: p.opts.Capabilities}
		},
		Handle:  p.fromTeam,
		Changed: func(remote.PC) { p.admit(); p.opts.Changed() },
		Now:     p.opts.Now, Log: p.opts.Log,
	}
	if m.Access != nil {
		opts.Roster = p.rosterPath()
	}
	if p.opts.ServeStored != nil {
		opts.Stored = p.storedByTeam
	}
	return hub.Open(opts)
}

// seals reports whether this PC seals messages to a single PC of its team.
func (p Team) seals() bool {
	settings, err := p.opts.Settings()
	return err != nil || settings.Hub.Seal // unreadable settings allow nothing
}

// loginOf returns the options by which this PC logs in to its team's NATS and verifies it.
func loginOf(m join.Membership) ([]nats.Option, error) {
	if m.Access != nil {
		login, err := m.Access.Options()
		if err != nil {
			return nil, bridge.WithCause(bridge.Storage, err, "the credentials for the team's NATS server, in network/team.json, are damaged: run `bridge leave`, and join again")
		}
		return login, nil
	}
	key, err := nkeys.FromSeed([]byte(m.Seed))
	var public string
	if err == nil {
		public, err = key.PublicKey()
	}
	if err != nil {
		return nil, bridge.Errorf(bridge.Storage, "the key for the team's hub, in network/team.json, is damaged: run `bridge leave`, and join again")
	}
	return []nats.Option{nats.Nkey(public, key.Sign), nats.Secure(link.Pinned(m.Hub)), nats.TLSHandshakeFirst()}, nil
}

// admit records the PCs that the hub's roster names now. If another PC had a name before,
// admit first removes the owner's permissions for that name: they were for that PC.
func (p Team) admit() {
	p.admitting.Lock()
	defer p.admitting.Unlock()
	p.mu.Lock()
	h, file := p.hub, p.team
	p.mu.Unlock()
	if h == nil || file.Membership == nil || !h.State().Up && !h.Removed() {
		return // the roster is unknown
	}
	pcs := map[string]string{}
	for _, status := range h.Status() {
		pcs[status.ID] = status.Name
	}
	if maps.Equal(pcs, file.PCs) {
		return
	}
	for id, name := range file.PCs {
		if pcs[id] == name {
			continue
		}
		if err := p.forgetMember(name); err != nil {
			p.opts.Log.Error("a PC that left the team may still be allowed something by its name", "peer", name, "err", err)
			return // no PC gets its name
		}
	}
	file.Names = named(named(file.Names, file.PCs, p.opts.Now()), pcs, p.opts.Now())
	file.PCs = pcs
	if err := p.writeTeam(file); err != nil {
		p.opts.Log.Error("who is in the team could not be recorded", "err", err)
	}
}

// speaker returns the PC of the team with that id, which may be new.
func (p Team) speaker(id string) (remote.PC, error) {
	pc, err := p.member(id)
	if err != nil {
		p.admit()
		pc, err = p.member(id)
	}
	return pc, err
}

// storedByTeam processes a frame that a PC of the team stored at the hub for this PC.
func (p Team) storedByTeam(ctx context.Context, from remote.PC, frame remote.Frame, since time.Time) error {
	pc, err := p.speaker(from.ID)
	if bridge.CodeOf(err) == bridge.Unauthorized { // the hub names it, but it is not recorded here yet
		return bridge.WithCause(bridge.Unavailable, err, from.Name+" is not recorded as one of the team yet")
	}
	if err != nil {
		return err
	}
	return p.opts.ServeStored(ctx, pc, frame, since)
}

// fromTeam processes a frame from a PC of the team.
func (p Team) fromTeam(from remote.PC, frame remote.Frame) {
	pc, err := p.speaker(from.ID)
	if err != nil {
		p.opts.Log.Warn("a frame of the team was dropped", "peer", from.Name, "err", err)
		p.refuse(from.ID, err)
		return
	}
	p.opts.Serve(pc, frame)
}

// Refused counts a message of a PC of the team that was refused with the error why. It ignores
// PCs that are also paired, because their messages usually come by the link.
func (p Team) Refused(from remote.PC, why error) {
	if _, err := p.member(from.ID); err == nil && !p.isPaired(from.ID) {
		p.refuse(from.ID, why)
	}
}

func (p Team) refuse(id string, why error) {
	p.mu.Lock()
	h := p.hub
	p.mu.Unlock()
	if h != nil {
		hub.Refuse(h, id, why)
	}
}

// member returns a PC of the team under its local name. A paired PC has the name of its pair. It
// fails with Conflict for another PC with a pair's name, and with Unauthorized for an unknown PC.
func (p Team) member(id string) (remote.PC, error) {
	p.mu.Lock()
	name := p.team.PCs[id]
	p.mu.Unlock()
	return p.memberNamed(id, name)
}

// memberNamed is member for a PC that the team file lists with that name, "" if it does not.
func (p Team) memberNamed(id, name string) (remote.PC, error) {
	if name == "" {
		return remote.PC{}, errNobody
	}
	if pair, err := p.book.ByID(id); err == nil {
		return remote.PC{ID: id, Name: pair.Name}, nil
	}
	if _, err := p.book.ByName(name); err == nil {
		return remote.PC{}, bridge.Errorf(bridge.Conflict, "two PCs are named %s: one that is paired with this one, and one of the team, which is not heard: give one of them another network.name", name)
	}
	return remote.PC{ID: id, Name: name}, nil
}

// Knows reports whether the PC with that id is paired with this one, or in its team. It
// is true also if that PC is ignored, or the team file is unreadable.
func (p Team) Knows(id string) bool {
	p.mu.Lock()
	known := p.teamBroken != nil || p.team.PCs[id] != ""
	p.mu.Unlock()
	return known || p.isPaired(id)
}

// TeamStream gives access to the decisions of this PC's team.
type TeamStream struct {
	hub.Decisions
	Team, Hub, Self string
	// Called returns the local name of another PC of the team, even of a removed one.
	Called func(remote.PC) string
}

// Stream returns the access to the team's decisions; false while there is none.
func (p Team) Stream() (TeamStream, bool) {
	p.mu.Lock()
	h, membership, identity := p.hub, p.team.Membership, p.identity
	p.mu.Unlock()
	if h == nil || membership == nil || !h.State().Up || h.Removed() {
		return TeamStream{}, false
	}
	return TeamStream{Decisions: h.Decisions(), Team: membership.Team, Hub: membership.Hub, Self: identity.ID, Called: p.called}, true
}

// called returns the name of a PC whose decisions are kept. Another PC with a pair's name
// is named by its id, because its decisions count like all others.
func (p Team) called(pc remote.PC) string {
	if pair, err := p.book.ByID(pc.ID); err == nil {
		return pair.Name
	}
	if _, err := p.book.ByName(pc.Name); err == nil {
		return pc.ID[:12]
	}
	return pc.Name
}

// TeamStatus is the state of this PC's team.
type TeamStatus struct {
	Team   string // "" if it belongs to none
	Name   string // of this PC in the team
	Hub    string // the id of the hub, or of the key that seals the roster
	Own    bool   // the server is the team's own, not a hub
	Up     bool
	Since  time.Time
	Server string // the connected server
	Failed string // why it is not connected
	// Sealed is set if this PC seals messages to single PCs. Keyless are the PCs that it
	// then sends nothing to.
	Sealed  bool
	Keyless []string
	// Unheard are ignored PCs of the team that have the name of a pair.
	Unheard []string
	// Dropped are the refused messages since Watched.
	Dropped []hub.Drop
	Watched time.Time // zero without a connection
	// Waits are decisions that the hub does not accept, although it is connected.
	Waits Waits
}

// Waits counts decisions of this PC that wait for the team's hub.
type Waits struct {
	Decisions int
	Why       error     // nil if there are none
	Since     time.Time // since when some wait, since Bridge started
}

// Waits records how many decisions wait for the team's hub although it is connected, and the
// error why the first one waits; 0 clears the record.
func (p Team) Waits(decisions int, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if decisions == 0 {
		p.waits = Waits{}
		return
	}
	if p.waits.Decisions == 0 {
		p.waits.Since = p.opts.Now()
	}
	p.waits.Decisions, p.waits.Why = decisions, why
}

// Team returns the state of this PC's team.
func (p Team) Team() TeamStatus {
	p.mu.Lock()
	file, h, failed, opened := p.team, p.hub, p.hubFailed, p.hubOpened
	broken, waits := p.teamBroken, p.waits
	p.mu.Unlock()
	if broken != nil {
		return TeamStatus{Failed: broken.Error()}
	}
	if file.Membership == nil {
		return TeamStatus{}
	}
	m := file.Membership
	status := TeamStatus{Team: m.Team, Name: m.Name, Hub: m.Hub, Own: m.Access != nil, Sealed: p.seals()}
	if h != nil && status.Sealed {
		status.Keyless = hub.Keyless(h)
	}
	switch {
	case h != nil && h.Removed():
		status.Failed = "this PC was removed from the team"
	case h != nil:
		status.Dropped, status.Watched = h.Drops(), opened
		state := h.State()
		status.Up, status.Since, status.Server, status.Failed = state.Up, state.Since, state.Server, state.Failed
		if state.Up {
			status.Waits = waits
		}
	case failed != nil:
		status.Failed = failed.Error()
	default:
		status.Failed = "links are off (network.enabled)"
	}
	for id, name := range file.PCs {
		if _, err := p.member(id); err != nil {
			status.Unheard = append(status.Unheard, name)
		}
	}
	slices.Sort(status.Unheard)
	return status
}
