package mailbox

import (
	"slices"

	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/core/proof"
	"bridge/backend/core/session"
)

// HasMod reports whether a mod registered for exactly the session's present conversation.
// A channel has precedence (CHT-03). A mod that is proven broken counts for none (CAN-03).
func (all Boxes) HasMod(s *session.Session) bool {
	box := all[s.ID]
	return bridge.TraitsOf(s.Kind).Mod && !s.Channel && box != nil && !box.Broken.Has(proof.YourWords) && box.Mod.IsIn(s.SessionID)
}

// ReservedForMod returns a filter for the mail of s that is reserved for its mod: no hook takes it.
func (all Boxes) ReservedForMod(s *session.Session) func(mail.Delivery) bool {
	if !all.HasMod(s) {
		return func(mail.Delivery) bool { return false }
	}
	return mail.IsForMod
}

// ForHooks returns free without mail reserved for a mod or awaited by a call.
func (all Boxes) ForHooks(s *session.Session, free []mail.Delivery) []mail.Delivery {
	return all[s.ID].Unawaited(slices.DeleteFunc(free, all.ReservedForMod(s)))
}

// Facts returns the properties of a session on which its transports depend.
func (all Boxes) Facts(s *session.Session) delivery.Facts {
	facts := delivery.Facts{
		Kind: s.Kind, Name: s.Name, SessionID: s.SessionID, Busy: s.Busy, Channel: s.Channel, Plugin: s.Plugin, Hooks: s.HooksSeen,
		Threads: s.Host == session.HostServer, Mod: all.HasMod(s), AutoWake: s.Wake.AutoWake, WakeOnDirect: s.Wake.WakeOnDirect,
	}
	if box := all[s.ID]; box != nil {
		facts.Waiting, facts.Failed, facts.Broken = box.Hooks.Waits(), box.Queue.Problem() != "", box.Broken
	}
	return facts
}

// WakeNow returns the transport by which m starts a turn of s now, "" for none.
func (all Boxes) WakeNow(s *session.Session, m bridge.Message, now int64) mail.Via {
	if all.Due(s, now)(mail.Delivery{Message: m}) {
		return mail.WakeNow(m, s, all.Facts(s))
	}
	return ""
}

// Due returns a filter for the mail that the limits of wakes let wake s now: all but mail
// of agents, if such mail woke s too often (QUI-03).
func (all Boxes) Due(s *session.Session, now int64) mail.Priority {
	box := all[s.ID]
	due := box == nil || box.Rate.Next(s.Wake, now) <= now
	return func(d mail.Delivery) bool { return due || !wake.IsOfAgent(d.Message) }
}

// Waits returns why m does not wake the idle session s yet, "" if no limit of wakes is
// the reason.
func (all Boxes) Waits(s *session.Session, m bridge.Message, now int64) string {
	if all.Due(s, now)(mail.Delivery{Message: m}) || mail.WakeNow(m, s, all.Facts(s)) == "" {
		return ""
	}
	rate := &all[s.ID].Rate
	return rate.Reason(s.Name, rate.Next(s.Wake, now), now)
}
