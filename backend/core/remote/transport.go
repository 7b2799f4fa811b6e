package remote

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// MaxFrameBytes limits a frame on any transport; larger data is read in parts.
const MaxFrameBytes = 1 << 20

// Frame is a message from one PC to another (RMT-24). Bulk frames, such as parts of
// files, are sent after all other waiting frames.
type Frame struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
	// Body follows the frame unchanged. Its bytes count as part of the frame, and must
	// not change after the hand-over.
	Body []byte `json:"-"`
	// BodyBytes is the length of Body.
	BodyBytes int `json:"body,omitempty"`
}

// Status is the connection state of one known PC.
type Status struct {
	PC
	Up           bool
	Since        time.Time // when it connected; zero if it is not connected
	Release      string
	Capabilities []string
	Failed       string // why the last connection attempt failed
}

// Can reports whether the other side has announced that capability.
func (s Status) Can(capability string) bool { return slices.Contains(s.Capabilities, capability) }

// ErrUpdate returns the error for a PC that needs an update for that capability (RMT-03).
func ErrUpdate(s Status, capability string) error {
	return bridge.Errorf(bridge.Unsupported, "%s runs Bridge %s, which does not know %s: update Bridge there", s.Name, cmp.Or(s.Release, "of an unknown release"), capability)
}
