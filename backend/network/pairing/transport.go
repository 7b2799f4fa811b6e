package pairing

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/link"
)

// Transport carries frames between this PC and those that it knows (RMT-24). A handler
// gets each frame with the identity that the transport has verified, never with one that
// the frame states. The next frame of the same PC waits for the handler. The pair link
// and the team's hub implement it; callers do not know which one is used.
type Transport interface {
	// Send sends a frame to the PC with that id, at once or not at all. It fails with
	// Unavailable if the PC is unreachable, Unauthorized if it is unknown, TooLarge if
	// the frame is too large. Only an answer shows that the frame arrived.
	Send(ctx context.Context, id string, frame remote.Frame) error
	// SendBulk is Send for low-priority frames, such as parts of files.
	SendBulk(ctx context.Context, id string, frame remote.Frame) error
	// Of returns the state of the PC with that id. It fails with Unauthorized if the PC
	// is unknown.
	Of(id string) (remote.Status, error)
	// Status returns the known PCs, sorted by name.
	Status() []remote.Status
}

// Spool stores frames for a PC until that PC takes them (HUB-05).
type Spool interface {
	// Keeps returns the ids of the PCs that it serves.
	Keeps() []string
	// Store returns after the spool has the frame on its disk. It fails with Unavailable
	// if the spool is unreachable or the outcome is unknown. It fails with Busy if the
	// spool refused the frame, and with Unauthorized if it does not serve that PC.
	Store(ctx context.Context, id string, frame remote.Frame) error
}

var (
	_ Spool     = (*Ways)(nil)
	_ Transport = (*link.Links)(nil)
	_ Transport = (*hub.Hub)(nil)
	_ Transport = (*Ways)(nil)
)

// Ways is the [Transport] over all that this PC has: a link to each pair, and the hub of
// its team. If one of them is unavailable, the other is used; a link has precedence. It
// exists even before the first pairing.
type Ways struct{ p *Peering }

// Ways returns the transport to other PCs.
func (p *Peering) Ways() *Ways { return &Ways{p} }

// way returns the transport that reaches a PC, and the PC's state there. A PC of the team
// is known even while the hub is unavailable or its roster is unread. Thus its frames
// keep waiting.
func (w *Ways) way(id string) (Transport, remote.Status, error) {
	w.p.mu.Lock()
	name := w.p.team.PCs[id]
	w.p.mu.Unlock()
	return w.wayNamed(id, name)
}

// wayNamed is way for a PC that the team file lists with that name, "" if it does not.
func (w *Ways) wayNamed(id, name string) (Transport, remote.Status, error) {
	w.p.mu.Lock()
	links, h := w.p.links, w.p.hub
	w.p.mu.Unlock()
	var paired remote.Status
	var pairErr error = errNobody
	if links != nil {
		if paired, pairErr = links.Of(id); pairErr == nil && paired.Up {
			return links, paired, nil
		}
	}
	pc, err := w.p.Team().memberNamed(id, name)
	if err != nil {
		return links, paired, pairErr
	}
	status, way := remote.Status{Failed: "the team's hub was not reached yet"}, Transport(absent{pc})
	if h != nil {
		if current, err := h.Of(id); err == nil {
			status, way = current, h
		}
	}
	if status.PC = pc; pairErr == nil && !status.Up {
		return links, paired, nil
	}
	return way, status, nil
}

// absent is the transport to a PC of the team while there is none.
type absent struct{ pc remote.PC }

// Send always fails with Unavailable.
func (a absent) Send(context.Context, string, remote.Frame) error {
	return bridge.Errorf(bridge.Unavailable, "there is no way to %s now: the team's hub cannot be reached", a.pc.Name)
}

// SendBulk always fails with Unavailable.
func (a absent) SendBulk(ctx context.Context, id string, frame remote.Frame) error {
	return a.Send(ctx, id, frame)
}

// Of returns the PC without a link. Its error is always nil.
func (a absent) Of(string) (remote.Status, error) { return remote.Status{PC: a.pc}, nil }
func (a absent) Status() []remote.Status          { return nil }

// Send implements [Transport]. It fails with Unauthorized if the PC is neither paired nor in
// the team, and with Unavailable if there is no way to it. It fails with TooLarge for a large
// frame.
func (w *Ways) Send(ctx context.Context, id string, frame remote.Frame) error {
	way, _, err := w.way(id)
	if err != nil {
		return err
	}
	return way.Send(ctx, id, frame)
}

// SendBulk implements [Transport]. It fails as Send does.
func (w *Ways) SendBulk(ctx context.Context, id string, frame remote.Frame) error {
	way, _, err := w.way(id)
	if err != nil {
		return err
	}
	return way.SendBulk(ctx, id, frame)
}

// Of implements [Transport]. It fails with Unauthorized if the PC is neither paired nor in the
// team.
func (w *Ways) Of(id string) (remote.Status, error) {
	_, status, err := w.way(id)
	return status, err
}

// Status implements [Transport].
func (w *Ways) Status() []remote.Status {
	w.p.mu.Lock()
	members := w.p.team.PCs
	w.p.mu.Unlock()
	return w.status(members)
}

// status is Status with these PCs in the team, names by id.
func (w *Ways) status(members map[string]string) []remote.Status {
	w.p.mu.Lock()
	links := w.p.links
	w.p.mu.Unlock()
	ids := slices.Collect(maps.Keys(members)) // also while the hub is unavailable: their frames keep waiting
	if links != nil {
		for _, status := range links.Status() {
			ids = append(ids, status.ID)
		}
	}
	slices.Sort(ids)
	var list []remote.Status
	for _, id := range slices.Compact(ids) {
		if _, status, err := w.wayNamed(id, members[id]); err == nil {
			list = append(list, status)
		}
	}
	slices.SortFunc(list, func(a, b remote.Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Keeps implements [Spool]: the hub stores frames for the PCs of the team.
func (w *Ways) Keeps() (ids []string) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	for id := range w.p.team.PCs {
		ids = append(ids, id)
	}
	return ids
}

// Store implements [Spool]. It fails with Unauthorized for a PC outside the team, and with
// Unavailable if the hub cannot be reached. It fails with Busy if the hub refuses the frame.
func (w *Ways) Store(ctx context.Context, id string, frame remote.Frame) error {
	pc, err := w.p.Team().member(id)
	if err != nil {
		return err
	}
	w.p.mu.Lock()
	h := w.p.hub
	w.p.mu.Unlock()
	if h == nil {
		return absent{pc}.Send(ctx, id, frame)
	}
	return h.Inbox.Store(ctx, id, frame)
}

var errNobody = bridge.Errorf(bridge.Unauthorized, "that PC is neither paired with this one nor in its team")
