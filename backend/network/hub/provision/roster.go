// Package provision creates what a team needs on its NATS server: streams, inboxes, and
// the roster of a team with its own server (HUB-01). The team's owner keeps that roster
// in a separate home, with the key that seals it. The server never has that key; it only
// shows sealed entries.
package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/externalnats"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sqlitex"
)

// PC is the roster's entry of one PC.
type PC struct {
	ID string `json:"id"`
	subject.Member
	Number int64 `json:"number"` // of two entries of a PC, the larger number is valid
}

// Settings describe the team's server.
type Settings struct {
	Team     string              `json:"team"`
	URLs     []string            `json:"urls"`
	Access   externalnats.Access `json:"access"`   // of the owner: secret
	MaxBytes int64               `json:"maxBytes"` // disk limit of the team's streams
	Replicas int                 `json:"replicas"` // how many of its nodes keep each message
}

const (
	version  = 1
	maxBytes = 4 << 20
	maxPCs   = 2000
	minRoom  = 64 << 20
	patience = 30 * time.Second
)

// file is roster.json.
type file struct {
	Version int `json:"version"`
	Settings
	PCs map[string]PC `json:"pcs"` // by id, including removed ones
}

// Roster is a team's roster in its owner's home. This process holds it exclusively until Close.
type Roster struct {
	dir  string
	now  func() time.Time
	key  link.Identity
	file file
	lock *sqlitex.Lock
}

// Init creates a roster in that folder after the server has what the team needs. If there is a
// roster already, it changes the server's settings. It fails with Invalid for bad settings, and
// with Conflict if the folder has another team's roster or is in use. It fails with Unavailable
// if the server does not answer.
func Init(ctx context.Context, dir string, set Settings, now func() time.Time) (*Roster, error) {
	if err := set.check(); err != nil {
		return nil, err
	}
	r, err := open(ctx, dir, now)
	if err != nil {
		return nil, err
	}
	if r.file.Version != 0 && r.file.Team != set.Team {
		r.Close()
		return nil, bridge.Errorf(bridge.Conflict, "%s has the roster of the team %s: another team needs another home", dir, r.file.Team)
	}
	r.file.Version, r.file.Settings = version, set
	if r.file.PCs == nil {
		r.file.PCs = map[string]PC{}
	}
	err = r.on(ctx, func(Engine) error { return nil })
	if err == nil {
		if r.key, err = link.OpenIdentity(dir); err == nil {
			err = r.save()
		}
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (s Settings) check() error {
	if err := subject.CheckTeam(s.Team); err != nil {
		return err
	}
	if s.MaxBytes < minRoom {
		return bridge.Errorf(bridge.Invalid, "a team needs room for %s at least (--max-bytes)", bridge.Size(minRoom))
	}
	if s.Replicas < 1 || s.Replicas > 5 {
		return bridge.Errorf(bridge.Invalid, "1 to 5 nodes of the server can keep each message (--replicas)")
	}
	return s.Access.Check(s.URLs)
}

// Open reads the roster of that folder. It fails with NotFound before Init.
func Open(ctx context.Context, dir string, now func() time.Time) (*Roster, error) {
	if _, err := disk.ReadLimited(path(dir), maxBytes); errors.Is(err, fs.ErrNotExist) {
		return nil, bridge.Errorf(bridge.NotFound, "there is no roster in %s: `bridge-hub roster init` makes one", dir)
	}
	r, err := open(ctx, dir, now)
	if err != nil {
		return nil, err
	}
	if r.key, err = link.OpenIdentity(dir); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func path(dir string) string { return filepath.Join(dir, "roster.json") }

func open(ctx context.Context, dir string, now func() time.Time) (*Roster, error) {
	if err := disk.MakeDir(dir); err != nil {
		return nil, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the folder %s cannot be made: %s", dir, disk.Reason(err)))
	}
	lock, err := sqlitex.AcquireLock(ctx, filepath.Join(dir, "roster.lock"))
	if errors.Is(err, sqlitex.ErrLocked) {
		return nil, bridge.Errorf(bridge.Conflict, "another command has the roster in %s", dir)
	}
	if err != nil {
		return nil, err
	}
	r := &Roster{dir: dir, now: now, lock: lock}
	err = disk.ReadJSON(path(dir), maxBytes, &r.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err == nil && r.file.Version != version:
		err = bridge.Errorf(bridge.Unsupported, "roster.json is of version %d: this release knows %d", r.file.Version, version)
	case err != nil:
		err = bridge.WithCause(bridge.Storage, err, "roster.json cannot be read and is left as it is: "+disk.Reason(err))
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close releases the roster.
func (r *Roster) Close() { _ = r.lock.Release() }

func (r *Roster) save() error {
	if err := disk.WriteJSON(path(r.dir), r.file); err != nil {
		return bridge.WithCause(bridge.Storage, err, "the roster could not be recorded: "+disk.Reason(err))
	}
	return nil
}

// Key returns the identity of the key that seals the roster. PCs get it out of band.
func (r *Roster) Key() string { return r.key.ID }

// Settings returns the settings of the team's server.
func (r *Roster) Settings() Settings { return r.file.Settings }

// PCs returns the members of the team, sorted by name.
func (r *Roster) PCs() []PC {
	var list []PC
	for _, pc := range r.file.PCs {
		if !pc.Removed {
			list = append(list, pc)
		}
	}
	slices.SortFunc(list, func(a, b PC) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Add adds a PC by its id, or by its key, from which the id follows, or renames it.
// Others can seal data before the PC's first announcement only if Add got its key. After
// an error the PC may be recorded here and unknown to the team: the error states that.
func (r *Roster) Add(ctx context.Context, name, id string) (PC, error) {
	if err := remote.CheckName(name); err != nil {
		return PC{}, err
	}
	member := subject.Member{Name: name, Box: r.file.PCs[id].Box}
	if _, its, err := seal.Parse(id); err == nil {
		member.Box, id = id, its
	}
	if err := subject.CheckPC(id); err != nil {
		return PC{}, err
	}
	members := r.PCs()
	for _, other := range members {
		if other.Name == name && other.ID != id {
			return PC{}, bridge.Errorf(bridge.Conflict, "another PC named %q belongs to the team: give this one another name, or remove the other", name)
		}
	}
	if before, known := r.file.PCs[id]; (!known || before.Removed) && len(members) >= maxPCs {
		return PC{}, bridge.Errorf(bridge.TooLarge, "the team has %d PCs already, which is the most", maxPCs)
	}
	return r.put(ctx, PC{ID: id, Member: member})
}

// Remove ends a PC's membership: no PC of the team accepts its messages any more. The server's
// administrator must end its access to the server. Remove fails with NotFound if no PC has that
// name or id, and if the server or the folder cannot be written.
func (r *Roster) Remove(ctx context.Context, text string) (PC, error) {
	pc, err := r.find(text)
	if err != nil {
		return PC{}, err
	}
	pc.Removed = true
	return r.put(ctx, pc)
}

// find returns the PC with that name or id.
func (r *Roster) find(text string) (PC, error) {
	return subject.FindPC(r.PCs(), text, func(pc PC) (name, id string) { return pc.Name, pc.ID })
}

// put records a PC's entry and then publishes it to the team.
func (r *Roster) put(ctx context.Context, pc PC) (PC, error) {
	pc.Number = r.now().UnixNano()
	for _, other := range r.file.PCs {
		pc.Number = max(pc.Number, other.Number+1)
	}
	before := r.file.PCs
	r.file.PCs = maps.Clone(before)
	r.file.PCs[pc.ID] = pc
	if err := r.save(); err != nil {
		r.file.PCs = before
		return PC{}, err
	}
	err := r.on(ctx, func(e Engine) error { return r.tell(ctx, e, pc) })
	if err != nil {
		return pc, bridge.WithCause(cmp.Or(bridge.CodeOf(err), bridge.Unavailable), err, fmt.Sprintf("it is recorded here, but the team may not know it yet (%s): run `bridge-hub roster publish`", err))
	}
	return pc, nil
}

// Publish creates the streams that the team needs on the server, and publishes this roster. It
// fails if the server cannot be reached or refuses a step.
func (r *Roster) Publish(ctx context.Context) error {
	return r.on(ctx, func(e Engine) error {
		for _, pc := range slices.SortedFunc(maps.Values(r.file.PCs), func(a, b PC) int { return cmp.Compare(a.Number, b.Number) }) {
			if err := r.tell(ctx, e, pc); err != nil {
				return err
			}
		}
		return nil
	})
}

// tell publishes a PC's entry, and creates or deletes its inbox.
func (r *Roster) tell(ctx context.Context, e Engine, pc PC) error {
	if !pc.Removed {
		if err := e.MakeInbox(ctx, pc.ID); err != nil {
			return err
		}
	}
	at := subject.BucketKey(subject.RosterBucket(r.file.Team), pc.ID)
	body, err := pc.Encode()
	if err == nil {
		body, err = subject.Seal(r.key.Sign, at, pc.Number, body)
	}
	if err == nil {
		_, err = e.JS.Publish(ctx, at, body)
	}
	if err == nil && pc.Removed {
		err = e.Forget(ctx, pc.ID)
	}
	return err
}

// on runs do with the server, after the team's streams are created.
func (r *Roster) on(ctx context.Context, do func(Engine) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := externalnats.Connect(r.file.URLs, r.file.Access)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	e := Engine{JS: js, Team: r.file.Team, MaxBytes: r.file.MaxBytes, Replicas: r.file.Replicas}
	if err := e.Make(ctx, nil); err != nil {
		return refusal(err)
	}
	return refusal(do(e))
}

// refusal returns an error of the engine for people.
func refusal(err error) error {
	switch {
	case err == nil || bridge.CodeOf(err) != bridge.Internal:
		return err
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return bridge.Errorf(bridge.Unsupported, "the NATS server has no JetStream for the owner's account")
	case errors.Is(err, context.DeadlineExceeded):
		return bridge.Errorf(bridge.Unavailable, "the NATS server did not answer in time: the owner's credentials may not allow it, they need everything in the team's account")
	}
	return bridge.WithCause(bridge.Storage, err, "the NATS server refuses what the team needs: "+strings.TrimPrefix(err.Error(), "nats: "))
}
