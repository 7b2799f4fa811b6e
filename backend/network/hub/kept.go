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

// kept is the newest of what this PC has read in the roster, where the server may not be
// trusted with it: an older entry counts for nothing, beyond restarts too.
type kept struct {
	file string // "" where nothing is kept
	data keptFile
}

type keptFile struct {
	Version int                  `json:"version"`
	Team    string               `json:"team"`
	Key     string               `json:"key"` // that seals the roster
	PCs     map[string]keptEntry `json:"pcs"` // by identity
}

type keptEntry struct {
	subject.Member
	Number int64 `json:"number"`
}

const (
	keptVersion  = 1
	maxKeptBytes = 4 << 20
)

// openKept reads what was kept of that team. Another team's is forgotten with the first
// entry of this one.
func openKept(file, team, key string) (kept, error) {
	k := kept{file: file, data: keptFile{Version: keptVersion, Team: team, Key: key, PCs: map[string]keptEntry{}}}
	if file == "" {
		return k, nil
	}
	var before keptFile
	err := disk.ReadJSON(file, maxKeptBytes, &before)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return k, nil
	case err == nil && before.Version != keptVersion:
		return k, bridge.Errorf(bridge.Unsupported, "what this PC has read in the team's roster (network/roster.json) is of version %d: this Bridge knows %d", before.Version, keptVersion)
	case err != nil:
		return k, bridge.WithCause(bridge.Storage, err, "what this PC has read in the team's roster (network/roster.json) cannot be read and is left as it is: "+disk.Reason(err))
	}
	if before.Team == team && before.Key == key && before.PCs != nil {
		k.data.PCs = before.PCs
	}
	return k, nil
}

// Seen is the number of the newest entry about a PC that was kept in that file of that
// team's roster; 0 for none.
func Seen(file, team, key, pc string) (int64, error) {
	k, err := openKept(file, team, key)
	return k.data.PCs[pc].Number, err
}

// note makes entries durable that are newer than what is kept.
func (k *kept) note(entries []entry) error {
	if k.file == "" {
		return nil
	}
	next := k.data
	next.PCs = maps.Clone(k.data.PCs)
	changed := false
	for _, e := range entries {
		if e.number > next.PCs[e.pc].Number {
			next.PCs[e.pc], changed = keptEntry{Member: e.member, Number: e.number}, true
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

// recall begins with what was kept.
func recall(h *Hub) {
	for id, e := range h.kept.data.PCs {
		h.pcs[id] = &member{pc: remote.PC{ID: id, Name: e.Name}, entry: e.Number, gone: e.Removed, box: e.Box}
		if id == h.opts.Self {
			h.removed = e.Removed
		}
	}
	h.nameLocked()
}
