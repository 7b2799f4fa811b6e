package hub

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
)

// Why is the reason for which a message was dropped.
type Why string

// The reasons.
const (
	Unsigned  Why = "unsigned"  // it stood under a PC's name and that PC had not signed it, or not so
	Replayed  Why = "replayed"  // the PC had said it before
	Late      Why = "late"      // it was for an earlier Bridge on this PC
	Flooded   Why = "flooded"   // more than this PC keeps up with
	TooLarge  Why = "too large" // no frame is so large
	Unopened  Why = "unopened"  // it was signed, and not sealed to this PC's key
	Malformed Why = "malformed" // it was signed, and could not be read
	Stranger  Why = "stranger"  // who signed it is not in the team
	Unsealed  Why = "unsealed"  // it stood in the roster, and the hub had not signed it
	Refused   Why = "refused"   // this PC's owner does not allow it

	// The hub rejected these, and reports them.
	Forbidden Why = "forbidden by the hub" // the PC may not say or hear that
	Oversized Why = "too large for the hub"
	ThrownOut Why = "thrown out by the hub" // for a flood
)

// byHub maps the reasons that the hub reports.
var byHub = map[string]Why{subject.RefusedForbidden: Forbidden, subject.RefusedTooLarge: Oversized, subject.RefusedFlooding: ThrownOut}

// Drop counts the frames that were dropped under a PC's name for one reason, since Open. Frames
// that are Replayed, Late, Flooded, TooLarge, Malformed or Refused were signed by that PC. PC is
// empty if no PC of the team has the name.
type Drop struct {
	PC    remote.PC
	Why   Why
	Count int64
	Last  time.Time
}

// Words says what came, for people: "3 frames were" can stand before it.
func (d Drop) Words() string {
	name := cmp.Or(d.PC.Name, "an unknown PC")
	switch d.Why {
	case Unsigned:
		return "said in the name of " + name + ", and not signed with its key"
	case Replayed:
		return "said by " + name + " once, and sent here again"
	case Late:
		return "said by " + name + " to an earlier Bridge on this PC, which had ended"
	case Flooded:
		return "said by " + name + ", and more than this PC keeps up with"
	case TooLarge:
		return "said by " + name + ", and larger than anything may be"
	case Malformed:
		return "said by " + name + ", and not to be read"
	case Unopened:
		return "said by " + name + ", and sealed so that this PC cannot open it"
	case Stranger:
		if d.PC.Name != "" {
			return "said by a PC that was " + name + " in the team, and is not"
		}
		return "said by a PC that is not in the team"
	case Unsealed:
		return "written into the list of the team about " + name + ", and not signed by the hub"
	case Forbidden:
		return "tried by " + name + " at the hub, and not allowed there"
	case Oversized:
		return "sent by " + name + " to the hub, and larger than it takes"
	case ThrownOut:
		return "a flood of " + name + "'s, for which the hub threw it out for a minute"
	case Refused:
		return "said by " + name + ", and not allowed here"
	}
	return "dropped: " + string(d.Why)
}

// Hostile reports whether no right Bridge does that by itself.
func (d Drop) Hostile() bool { return d.Why != Late && d.Why != Flooded && d.Why != Refused }

// reason is why something was not taken that had its sender's signature.
func reason(err error) Why {
	switch bridge.CodeOf(err) {
	case bridge.Denied, bridge.Conflict:
		return Refused
	case bridge.TooLarge:
		return TooLarge
	case bridge.Unauthorized:
		return Stranger
	case bridge.Busy:
		return Flooded
	default:
		return Malformed
	}
}

// Refuse counts a message of a PC that was refused with err. The code of the error decides
// under which reason it counts.
func Refuse(h *Hub, pc string, err error) { h.drop(pc, reason(err), err) }

type dropKey struct {
	pc  string // "" for everybody who is not in the team: there is no end of those
	why Why
}

// dropLocked counts a dropped message. It logs the first, second, fourth, eighth and so on, and
// reports whether it did: no sender can fill the log.
func (h *Hub) dropLocked(pc string, why Why, err error) (named bool) {
	name := ""
	if m := h.pcs[pc]; m != nil {
		name = m.pc.Name
	} else {
		pc = ""
	}
	d := h.drops[dropKey{pc, why}]
	if d == nil {
		d = &Drop{Why: why}
		h.drops[dropKey{pc, why}] = d
	}
	d.Count, d.Last = d.Count+1, h.opts.Now()
	named = bits.OnesCount64(uint64(d.Count)) == 1
	if named {
		h.opts.Log.Warn("what came from the team was dropped", "under", cmp.Or(name, "an unknown name"), "why", why, "so far", d.Count, "err", err)
	}
	return named
}

func (h *Hub) drop(pc string, why Why, err error) {
	h.mu.Lock()
	named := h.dropLocked(pc, why, err)
	h.mu.Unlock()
	if named {
		h.opts.Changed(remote.PC{})
	}
}

// overrun records that the NATS client dropped messages because its buffer was full. It cannot
// tell whose they were.
func (h *Hub) overrun(sub *nats.Subscription, err error) {
	if sub == nil || !errors.Is(err, nats.ErrSlowConsumer) {
		return
	}
	h.rosterStale.Store(true) // a dropped message may have been a roster entry
	h.mu.Lock()
	h.slow[sub] = h.opts.Now()
	h.mu.Unlock()
	h.opts.Changed(remote.PC{})
}

// Drops returns the frames that were dropped since Open, and those that the hub reports as
// rejected, newest first.
func (h *Hub) Drops() []Drop {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []Drop{}
	for key, d := range h.drops {
		drop := *d
		if m := h.pcs[key.pc]; m != nil {
			drop.PC = m.pc
		}
		list = append(list, drop)
	}
	for _, m := range h.pcs {
		for _, refusal := range m.refused {
			if why := byHub[refusal.Why]; why != "" {
				list = append(list, Drop{PC: m.pc, Why: why, Count: refusal.Count, Last: time.UnixMilli(refusal.Last)})
			}
		}
	}
	for sub, at := range h.slow {
		if n, err := sub.Dropped(); err == nil {
			list = append(list, Drop{Why: Flooded, Count: int64(n), Last: at})
		}
	}
	slices.SortFunc(list, func(a, b Drop) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.PC.ID, b.PC.ID), cmp.Compare(a.Why, b.Why))
	})
	return list
}
