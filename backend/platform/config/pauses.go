package config

import (
	"errors"
	"io/fs"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// PausesStore holds the pairs of sessions whose exchange the owner paused (QUI-02).
// PausesVersion is its newest version that this build knows.
const (
	PausesStore    = "pauses.json"
	PausesVersion  = 1
	maxPausesBytes = 4 << 20
)

// maxPauses limits the pauses, so that the file stays readable.
const maxPauses = 1_000

// Pause is one pair of sessions, by peer id. A pair without two ids pauses nothing.
type Pause struct {
	A  string            `json:"a"`
	B  string            `json:"b"`
	At bridge.UnixMillis `json:"at"` // when the owner paused it
}

// Pauses is the content of PausesStore.
type Pauses struct {
	Version int     `json:"version"`
	Pauses  []Pause `json:"pauses"` // newest last
}

// PausesFile reads and writes PausesStore of one home. Callers must serialize calls: the
// broker is its only writer.
type PausesFile struct{ Home Home }

// Pauses returns the pauses, oldest first; without a file there are none. It fails with
// Storage if the file is unreadable, and with Unsupported if it is of a newer version.
func (f PausesFile) Pauses() ([]Pause, error) {
	stored := Pauses{}
	err := disk.ReadJSON(f.Home.at(PausesStore), maxPausesBytes, &stored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, bridge.WithCause(bridge.Storage, err, PausesStore+" cannot be read: Bridge leaves it as it is, and pauses no mail")
	case stored.Version > PausesVersion:
		return nil, newerStore(PausesStore, int64(stored.Version), PausesVersion)
	}
	return stored.Pauses, nil
}

// SetPauses writes the pauses. It fails with Invalid for too many, and with Storage if it
// cannot write.
func (f PausesFile) SetPauses(pauses []Pause) error {
	if len(pauses) > maxPauses {
		return bridge.Errorf(bridge.Invalid, "at most %d pairs of sessions can be paused: resume one of them first", maxPauses)
	}
	return disk.WriteJSON(f.Home.at(PausesStore), Pauses{Version: PausesVersion, Pauses: slices.Concat([]Pause{}, pauses)})
}
