package pairing

import (
	"cmp"
	"context"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/link"
)

// Transport carries frames between this PC and those that it knows (RMT-24). Whoever
// serves what comes is handed each frame with the identity that the transport has
// proved, never with one that the frame tells; the next frame of the same PC waits for
// it. The pair link is one, the team's hub another; nothing above it knows which one it is.
type Transport interface {
	// Send sends a frame to the PC with that identity, at once or not at all:
	// Unavailable says that it cannot be reached now, Unauthorized that it is not known,
	// TooLarge that no frame is so large. Whether it arrived only an answer tells.
	Send(ctx context.Context, id string, frame remote.Frame) error
	// SendBulk is Send for what may wait behind everything else, such as parts of files.
	SendBulk(ctx context.Context, id string, frame remote.Frame) error
	// Of is how it stands with the PC of that identity; Unauthorized where it is not
	// known.
	Of(id string) (remote.Status, error)
	// Status lists the PCs that are known, by name.
	Status() []remote.Status
}

// Spool is where what is for a PC can lie until that PC takes it (HUB-05).
type Spool interface {
	// Keeps lists the PCs that it is for, by identity.
	Keeps() []string
	// Store returns when it has the frame on its disk. Unavailable says that it cannot be
	// reached now or that nobody knows whether it has it, Busy that it did not take it,
	// Unauthorized that it is not for that PC.
	Store(ctx context.Context, id string, frame remote.Frame) error
}

var (
	_ Spool     = (*Ways)(nil)
	_ Transport = (*link.Links)(nil)
	_ Transport = (*hub.Hub)(nil)
	_ Transport = (*Ways)(nil)
)

// Ways is the Transport over all that this PC has: a link to each pair, and the hub of
// its team. What one of them cannot do now the other one does; a link comes first. It is
// there also before the first pairing.
type Ways struct{ p *Peering }

// Ways is how frames reach other PCs.
func (p *Peering) Ways() *Ways { return &Ways{p} }

// way is the transport by which that PC is reached, and how it stands with the PC there.
// One of the team is known also while the hub is away, or its roster was not read yet:
// what waits for it waits on.
func (w *Ways) way(id string) (Transport, remote.Status, error) {
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
	pc, err := w.p.Crew().member(id)
	if err != nil {
		return links, paired, pairErr
	}
	status, way := remote.Status{Failed: "the team's hub was not reached yet"}, Transport(away{pc})
	if h != nil {
		if there, err := h.Of(id); err == nil {
			status, way = there, h
		}
	}
	if status.PC = pc; pairErr == nil && !status.Up {
		return links, paired, nil
	}
	return way, status, nil
}

// away is the way to a PC of the team while there is none.
type away struct{ pc remote.PC }

func (a away) Send(context.Context, string, remote.Frame) error {
	return bridge.Errorf(bridge.Unavailable, "there is no way to %s now: the team's hub cannot be reached", a.pc.Name)
}

func (a away) SendBulk(ctx context.Context, id string, frame remote.Frame) error {
	return a.Send(ctx, id, frame)
}

func (a away) Of(string) (remote.Status, error) { return remote.Status{PC: a.pc}, nil }
func (a away) Status() []remote.Status          { return nil }

// Send is Transport's.
func (w *Ways) Send(ctx context.Context, id string, frame remote.Frame) error {
	way, _, err := w.way(id)
	if err != nil {
		return err
	}
	return way.Send(ctx, id, frame)
}

// SendBulk is Transport's.
func (w *Ways) SendBulk(ctx context.Context, id string, frame remote.Frame) error {
	way, _, err := w.way(id)
	if err != nil {
		return err
	}
	return way.SendBulk(ctx, id, frame)
}

// Of is Transport's.
func (w *Ways) Of(id string) (remote.Status, error) {
	_, status, err := w.way(id)
	return status, err
}

// Status is Transport's.
func (w *Ways) Status() []remote.Status {
	w.p.mu.Lock()
	links := w.p.links
	ids := []string{}
	for id := range w.p.team.PCs { // also while the hub is away: what waits for them waits on
		ids = append(ids, id)
	}
	w.p.mu.Unlock()
	if links != nil {
		for _, status := range links.Status() {
			ids = append(ids, status.ID)
		}
	}
	slices.Sort(ids)
	var list []remote.Status
	for _, id := range slices.Compact(ids) {
		if status, err := w.Of(id); err == nil {
			list = append(list, status)
		}
	}
	slices.SortFunc(list, func(a, b remote.Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Keeps is Spool's: the hub keeps what is for the PCs of the team.
func (w *Ways) Keeps() (ids []string) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	for id := range w.p.team.PCs {
		ids = append(ids, id)
	}
	return ids
}

// Store is Spool's.
func (w *Ways) Store(ctx context.Context, id string, frame remote.Frame) error {
	pc, err := w.p.Crew().member(id)
	if err != nil {
		return err
	}
	w.p.mu.Lock()
	h := w.p.hub
	w.p.mu.Unlock()
	if h == nil {
		return away{pc}.Send(ctx, id, frame)
	}
	return h.Inbox.Store(ctx, id, frame)
}

var errNobody = bridge.Errorf(bridge.Unauthorized, "that PC is neither paired with this one nor in its team")
