package mailbox

import (
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// HasMod reports whether a mod registered for exactly the session's present conversation.
// A channel has precedence (CHT-03).
func (all Boxes) HasMod(s *session.Session) bool {
	box := all[s.ID]
	return s.Kind == bridge.Claude && !s.Channel && box != nil && box.Mod.IsIn(s.SessionID)
}

// KeptForMod returns a filter for the mail of s that is reserved for its mod: no hook takes it.
func (all Boxes) KeptForMod(s *session.Session) func(mail.Delivery) bool {
	if !all.HasMod(s) {
		return func(mail.Delivery) bool { return false }
	}
	return mail.IsForMod
}

// ForHooks returns free without mail reserved for a mod or awaited by a call.
func (all Boxes) ForHooks(s *session.Session, free []mail.Delivery) []mail.Delivery {
	return all[s.ID].Unawaited(slices.DeleteFunc(free, all.KeptForMod(s)))
}

// Facts returns the properties of a session on which its transports depend.
func (all Boxes) Facts(s *session.Session) delivery.Facts {
	facts := delivery.Facts{
		Kind: s.Kind, Name: s.Name, SessionID: s.SessionID, Busy: s.Busy, Channel: s.Channel, Plugin: s.Plugin, Hooks: s.HooksSeen,
		Threads: s.Host == session.HostServer, Mod: all.HasMod(s), AutoWake: s.Wake.AutoWake, WakeOnDirect: s.Wake.WakeOnDirect,
	}
	if box := all[s.ID]; box != nil {
		facts.Waiting, facts.Failed = box.Hooks.Waits(), box.Queue.Problem() != ""
	}
	return facts
}

// WakeNow returns the transport by which m starts a turn of s now, "" for none.
func (all Boxes) WakeNow(s *session.Session, m bridge.Message) mail.Via {
	return mail.WakeNow(m, s, all.Facts(s))
}
