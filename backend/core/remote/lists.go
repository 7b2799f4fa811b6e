package remote

import (
	"encoding/json"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
)

// The read-only data that a PC shows to a paired one (RMT-23).
const (
	// DashboardCapability announces in a hello that a PC serves its list.
	DashboardCapability = "dashboard-read-v1"
	// DashboardFrame is the type of the frames that request the list and return it.
	DashboardFrame = "dashboard-read"

	// MaxListed limits the sessions, and the jobs, of one list.
	MaxListed = 200

	maxTitleChars = 160
	maxPathChars  = 1000
)

// List is what a PC shows: its sessions if the other may write to them or see them,
// with folders and jobs if it may see those.
type List struct {
	Messages bool     `json:"messages"` // sessions take messages
	Shown    bool     `json:"shown"`    // folders and jobs are shown
	Sessions []Listed `json:"sessions"`
	Jobs     []Listed `json:"jobs"`
}

// Listed is one session or job. State is busy or idle for a session, and the status for
// a job.
type Listed struct {
	Name  string           `json:"name"`
	Agent bridge.AgentKind `json:"agent"`
	State string           `json:"state"`
	Title string           `json:"title,omitempty"`
	Cwd   string           `json:"cwd,omitempty"`
	Since int64            `json:"since"` // Unix milliseconds by the clock of its PC
}

// View is the content of a frame: a request, or its answer.
type View struct {
	Rid   string            `json:"rid"`
	Now   bridge.UnixMillis `json:"now"`
	List  *List             `json:"list,omitempty"`
	Error *bridge.Error     `json:"error,omitempty"`
}

// IsQuestion reports whether the frame is a request.
func (v View) IsQuestion() bool { return v.List == nil && v.Error == nil }

// ParseView decodes a frame about lists. It omits names that could not receive
// messages, and cuts texts that are too long. It fails with Invalid without a valid rid
// and time, and with TooLarge beyond the frame limit.
func ParseView(data []byte) (v View, err error) {
	if err := bridge.DecodeStrict(data, maxPayloadBytes, &v); err != nil {
		return v, err
	}
	if uuid.Validate(v.Rid) != nil || v.Now <= 0 || v.List != nil && v.Error != nil {
		return v, bridge.Errorf(bridge.Invalid, "a frame about lists has a rid, a time, and a list or an error")
	}
	if v.Error != nil {
		v.Error = &bridge.Error{Code: v.Error.Code, Message: cut(v.Error.Message)}
	}
	if v.List != nil {
		v.List.Sessions, v.List.Jobs = bounded(v.List.Sessions), bounded(v.List.Jobs)
	}
	return v, nil
}

// EncodeView returns a frame's payload. It fails if the view cannot be encoded as JSON.
func EncodeView(v View) ([]byte, error) {
	if v.List != nil {
		list := *v.List
		list.Sessions, list.Jobs = bounded(list.Sessions), bounded(list.Jobs)
		v.List = &list
	}
	return json.Marshal(v)
}

func bounded(all []Listed) []Listed {
	list := []Listed{}
	for _, listing := range all {
		if len(list) == MaxListed {
			break
		}
		if bridge.CheckName(listing.Name) != nil {
			continue
		}
		listing.Agent, listing.State = bridge.AgentKind(cutTo(string(listing.Agent), 32)), cutTo(listing.State, 32)
		listing.Title, listing.Cwd = cutTo(listing.Title, maxTitleChars), cutTo(listing.Cwd, maxPathChars)
		list = append(list, listing)
	}
	return list
}
