package config

import (
	"errors"
	"io/fs"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
	"bridge/backend/platform/disk"
)

// CostsStore holds how many bytes of text Bridge put into each session, by day (CTX-03).
// CostsVersion is its newest version that this build knows.
const (
	CostsStore    = "costs.json"
	CostsVersion  = 1
	maxCostsBytes = 32 << 20
)

// DayCost is what one session cost on one day.
type DayCost struct {
	Day     string `json:"day"`     // such as 2026-01-31, in the time zone of this PC
	Session string `json:"session"` // peer id, or kind:host id of a session that is not known yet
	session.Cost
}

// ReportedCost is the last total that an MCP server reported, so that Bridge counts a
// repeated report once.
type ReportedCost struct {
	ID string            `json:"id"` // of the process, and of its session
	At bridge.UnixMillis `json:"at"`
	session.Cost
}

// Costs is the content of CostsStore.
type Costs struct {
	Version  int            `json:"version"`
	Days     []DayCost      `json:"days"`
	Reported []ReportedCost `json:"reported"`
}

// CostsFile reads and writes CostsStore of one home. The broker must be its only writer.
type CostsFile struct{ Home Home }

// Costs returns the content, which is empty without a file. It fails with Storage if the
// file is unreadable, or of a newer version.
func (f CostsFile) Costs() (Costs, error) {
	stored := Costs{}
	err := disk.ReadJSON(f.Home.at(CostsStore), maxCostsBytes, &stored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Costs{Version: CostsVersion}, nil
	case err != nil:
		return Costs{}, bridge.WithCause(bridge.Storage, err, CostsStore+" cannot be read: Bridge leaves it as it is")
	case stored.Version > CostsVersion:
		return Costs{}, newerStore(CostsStore, int64(stored.Version), CostsVersion)
	}
	return stored, nil
}

// SetCosts writes the content. It fails with Storage if it cannot.
func (f CostsFile) SetCosts(costs Costs) error {
	costs.Version = CostsVersion
	return disk.WriteJSON(f.Home.at(CostsStore), costs)
}
