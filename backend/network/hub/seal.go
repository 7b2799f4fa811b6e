package hub

import (
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/seal"
)

// sealFor seals what is said to one PC under a subject, where this PC's owner wants that.
// Nothing goes unsealed then, whatever the hub says of the other PC.
func sealFor(h *Hub, id, at string, body []byte) ([]byte, error) {
	if h.opts.Seal == nil || !h.opts.Seal() {
		return body, nil
	}
	h.mu.Lock()
	text, name := "", id
	if m := h.pcs[id]; m != nil {
		text, name = m.sealKey, m.pc.Name
	}
	h.mu.Unlock()
	key, is := seal.KeyOf(id, text)
	if !is {
		return nil, bridge.Errorf(bridge.Unsupported, "this PC seals what it sends through its team (network.hub.seal), and %s has no key to seal to: "+
			"it needs this release of Bridge or a newer one, and to have been there since", name)
	}
	return seal.Seal(key, at, body)
}

// unseal opens what was sealed to this PC; what is not sealed it leaves as it is.
func unseal(h *Hub, at string, body []byte) ([]byte, error) {
	if !seal.IsSealed(body) {
		return body, nil
	}
	if h.opts.Open == nil {
		return nil, bridge.Errorf(bridge.Unsupported, "it is sealed, and this PC opens nothing")
	}
	return h.opts.Open(at, body)
}

// Keyless lists the other PCs of the team that have no key to seal to, by name.
func Keyless(h *Hub) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := []string{}
	for _, m := range h.names {
		if _, is := seal.KeyOf(m.pc.ID, m.sealKey); !is && h.isOther(m) {
			names = append(names, m.pc.Name)
		}
	}
	slices.Sort(names)
	return names
}
