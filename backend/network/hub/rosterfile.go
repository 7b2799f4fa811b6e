package hub

import (
	"errors"
	"io/fs"
	"maps"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
	"bridge/backend/platform/disk"
)

// rosterFile keeps the newest roster entry of each PC on disk, for servers that are not
// trusted with the roster: an older entry is ignored, also after a restart.
type rosterFile struct {
	file string // "" keeps nothing
	data rosterDocument
}

type rosterDocument struct {
	Version int                     `json:"version"`
	Team    string                  `json:"team"`
	Key     string                  `json:"key"` // signs the roster
	PCs     map[string]rosterRecord `json:"pcs"` // by identity
}

type rosterRecord struct {
	subject.Member
	Number int64 `json:"number"`
}

const (
	rosterVersion  = 1
	maxRosterBytes = 4 << 20
)

// openRosterFile reads the file. Entries of another team are dropped with the first write. It
// fails with Unsupported for another version, and with Storage if the file cannot be read.
func openRosterFile(file, team, key string) (rosterFile, error) {
	k := rosterFile{file: file, data: rosterDocument{Version: rosterVersion, Team: team, Key: key, PCs: map[string]rosterRecord{}}}
	if file == "" {
		return k, nil
	}
	var before rosterDocument
	err := disk.ReadJSON(file, maxRosterBytes, &before)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return k, nil
	case err == nil && before.Version != rosterVersion:
		return k, bridge.Errorf(bridge.Unsupported, "what this PC has read in the team's roster (network/roster.json) is of version %d: this Bridge knows %d", before.Version, rosterVersion)
	case err != nil:
		return k, bridge.WithCause(bridge.Storage, err, "what this PC has read in the team's roster (network/roster.json) cannot be read and is left as it is: "+disk.Reason(err))
	}
	if before.Team == team && before.Key == key && before.PCs != nil {
		k.data.PCs = before.PCs
	}
	return k, nil
}

// Seen returns the number of a PC's newest entry in the file, 0 for none. It fails with
// Unsupported for a file of another version, and if the file cannot be read.
func Seen(file, team, key, pc string) (int64, error) {
	k, err := openRosterFile(file, team, key)
	return k.data.PCs[pc].Number, err
}

// save writes entries that are newer than those in the file.
func (k *rosterFile) save(entries []entry) error {
	if k.file == "" {
		return nil
	}
	next := k.data
	next.PCs = maps.Clone(k.data.PCs)
	changed := false
	for _, e := range entries {
		if e.number > next.PCs[e.pc].Number {
			next.PCs[e.pc], changed = rosterRecord{Member: e.member, Number: e.number}, true
		}
	}
	if !changed {
		return nil
	}
	if err := disk.WriteJSON(k.file, next); err != nil {
		return err
	}
	k.data = next
	return nil
}

// restoreRoster starts with the entries of the roster file.
func restoreRoster(h *Hub) {
	for id, e := range h.rosterFile.data.PCs {
		h.pcs[id] = &member{pc: remote.PC{ID: id, Name: e.Name}, rosterNumber: e.Number, removed: e.Removed, sealKey: e.Box}
		if id == h.opts.Self {
			h.removed = e.Removed
		}
	}
	h.assignNamesLocked()
}
