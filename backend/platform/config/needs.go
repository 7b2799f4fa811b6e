package config

import (
	"errors"
	"io/fs"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// RulesStore holds the owner's standing rules, and RulesVersion is its newest form that
// this build knows.
const (
	RulesStore   = "rules.json"
	RulesVersion = 1
)

// PromptsOpen is there while a session of claude's has a permission prompt whose end is
// not known: hooks that tell of such ends alone ask nobody without it.
const PromptsOpen = "prompts-open"

// NeedsStore remembers which news the owner has put away, so that no place shows it
// again.
const NeedsStore = "needs.json"

// NeedsVersion is the newest form of NeedsStore that this build knows.
const NeedsVersion = 1

// maxPutAway bounds how much is remembered, more than all that is shown at once, and
// maxNeedsBytes how much is read of it.
const (
	maxPutAway    = 1_000
	maxNeedsBytes = 4 << 20
)

// PutAway is what NeedsStore holds.
type PutAway struct {
	Version int      `json:"version"`
	IDs     []string `json:"putAway"` // the latest last
}

// NeedsFile is NeedsStore of one home.
type NeedsFile struct{ Home Home }

// PutAway reads the ids of the news that was put away; none where nothing ever was.
func (f NeedsFile) PutAway() (PutAway, error) {
	stored := PutAway{}
	err := disk.ReadJSON(f.Home.at(NeedsStore), maxNeedsBytes, &stored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return PutAway{Version: NeedsVersion}, nil
	case err != nil:
		return PutAway{}, bridge.WithCause(bridge.Storage, err, NeedsStore+" cannot be read: it is left as it is")
	case stored.Version > NeedsVersion:
		return PutAway{}, newerStore(NeedsStore, int64(stored.Version), NeedsVersion)
	}
	return stored, nil
}

// SetPutAway remembers that this news was put away, or was taken back. It is the only
// writer in its process: callers take turns.
func (f NeedsFile) SetPutAway(id string, away bool) error {
	stored, err := f.PutAway()
	if err != nil {
		return err
	}
	stored.Version = NeedsVersion
	stored.IDs = slices.DeleteFunc(stored.IDs, func(known string) bool { return known == id })
	if away {
		stored.IDs = append(stored.IDs, id)
	}
	stored.IDs = stored.IDs[max(0, len(stored.IDs)-maxPutAway):]
	return disk.WriteJSON(f.Home.at(NeedsStore), stored)
}
