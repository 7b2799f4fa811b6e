package presence

import (
	"cmp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// Begins returns the session if its agent begins with this registration, else nil: one that
// is registered again may run an earlier version than the one on the disk.
func Begins(s *session.Session, args api.Register) *session.Session {
	if args.Previous != "" || args.Hooks {
		return nil
	}
	return s
}

// Versions are the versions of the CLIs that serve the sessions.
type Versions struct{ *Presence }

// Set stores the version of a session that begins, nil for none, with the routes that are
// broken in it. A known version stays, because a running agent keeps it.
func (p Versions) Set(s *session.Session, version string, faults func(kind bridge.AgentKind, version string) proof.Faults) {
	p.Lock()
	defer p.Unlock()
	if s == nil {
		return
	}
	if box := p.Boxes[s.ID]; box != nil {
		box.Version = cmp.Or(box.Version, version)
		box.Broken = faults(s.Kind, box.Version)
	}
}

// MarkBroken gives each live session the routes that are broken in exactly its version.
func (p Versions) MarkBroken(faults func(kind bridge.AgentKind, version string) proof.Faults) {
	p.Lock()
	defer p.Unlock()
	for _, s := range p.Roster.Live() {
		if box := p.Boxes[s.ID]; box != nil {
			box.Broken = faults(s.Kind, box.Version)
		}
	}
}
