package remote

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// MaxFrameBytes bounds a frame, whatever carries it; what is larger is read in parts.
const MaxFrameBytes = 1 << 20

// Frame is what one PC tells another (RMT-24). Bulk ones, such as parts of files, go
// after all others that wait.
type Frame struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
	// Body follows the frame as it is; its bytes count as the frame's own, and are left
	// alone once it was handed over.
	Body []byte `json:"-"`
	// BodyBytes is the length of what follows.
	BodyBytes int `json:"body,omitempty"`
}

// Status is how it stands with one PC that this one knows.
type Status struct {
	PC
	Up           bool
	Since        time.Time // when it came up; zero where it is not
	Release      string
	Capabilities []string
	Failed       string // why the last attempt to reach it came to nothing
}

// Can says whether the other side has told that it can do that.
func (s Status) Can(capability string) bool { return slices.Contains(s.Capabilities, capability) }

// ErrUpdate says that the other PC has to be updated before it can do that (RMT-03).
func ErrUpdate(s Status, capability string) error {
	return bridge.Errorf(bridge.Unsupported, "%s runs Bridge %s, which does not know %s: update Bridge there", s.Name, cmp.Or(s.Release, "of an unknown release"), capability)
}
