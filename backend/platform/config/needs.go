package config

import (
	"errors"
	"io/fs"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// RulesStore holds the owner's standing rules. RulesVersion is its newest version
// that this build knows.
const (
	RulesStore   = "rules.json"
	RulesVersion = 1
)

// PromptsOpen exists while a permission prompt of a Claude Code session may still be
// open. Without it, the hooks that only report ends of prompts contact no broker.
const PromptsOpen = "prompts-open"

// NeedsStore lists the news items that the owner dismissed, so that no view shows
// them again.
const NeedsStore = "needs.json"

// NeedsVersion is the newest version of NeedsStore that this build knows.
const NeedsVersion = 1

// maxPutAway bounds the number of stored items; it exceeds the number ever shown at
// once. maxNeedsBytes bounds how much of the file is read.
const (
	maxPutAway    = 1_000
	maxNeedsBytes = 4 << 20
)

// PutAway is the content of NeedsStore.
type PutAway struct {
	Version int      `json:"version"`
	IDs     []string `json:"putAway"` // newest last
}

// NeedsFile reads and writes NeedsStore of one home.
type NeedsFile struct{ Home Home }

// PutAway returns the ids of dismissed news. It fails with Storage if the file is unreadable.
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

// SetPutAway stores that a news item was dismissed, or restored. Callers must
// serialize calls: it is the only writer in its process. It fails as PutAway does.
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
