package config

import (
	"errors"
	"fmt"
	"io/fs"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/platform/disk"
)

// ProofsStore holds which routes into each version of your agents work (CAN-02).
// ProofsVersion is its newest version that this build knows.
const (
	ProofsStore    = "proofs.json"
	ProofsVersion  = 1
	maxProofsBytes = 8 << 20
)

// ProveMode says whether Bridge tries the routes into a new version of an agent by itself.
type ProveMode string

// The modes.
const (
	ProveAuto ProveMode = "auto" // once a version, when the machine is not busy
	ProveOff  ProveMode = "off"  // only `bridge prove` does
)

func (m ProveMode) check() error {
	if m != ProveAuto && m != ProveOff {
		return fmt.Errorf("prove must be %s or %s, not %q", ProveAuto, ProveOff, bridge.OneLine(string(m)))
	}
	return nil
}

// Proofs is the content of ProofsStore.
type Proofs struct {
	Version int           `json:"version"`
	Proofs  []proof.Proof `json:"proofs"` // newest last
}

// ProofsFile reads and writes ProofsStore of one home. Callers must serialize calls: the
// broker is its only writer.
type ProofsFile struct{ Home Home }

// Proofs returns the proofs, oldest first; without a file there are none. It fails with
// Storage if the file is unreadable, and with Unsupported if it is of a newer version.
func (f ProofsFile) Proofs() ([]proof.Proof, error) {
	stored := Proofs{}
	err := disk.ReadJSON(f.Home.at(ProofsStore), maxProofsBytes, &stored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, bridge.WithCause(bridge.Storage, err, ProofsStore+" cannot be read: Bridge leaves it as it is, and tries no agent by itself")
	case stored.Version > ProofsVersion:
		return nil, newerStore(ProofsStore, int64(stored.Version), ProofsVersion)
	}
	return stored.Proofs, nil
}

// SetProofs writes the proofs. It fails with Storage if it cannot write.
func (f ProofsFile) SetProofs(proofs []proof.Proof) error {
	err := disk.WriteJSON(f.Home.at(ProofsStore), Proofs{Version: ProofsVersion, Proofs: append([]proof.Proof{}, proofs...)})
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, ProofsStore+" cannot be written")
	}
	return nil
}
