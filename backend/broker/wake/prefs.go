package wake

import (
	"maps"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// Prefs stores which sessions chose their own auto-wake, across reloads and broker
// restarts. It uses a small JSON file of the home. Choices of older programs in that file
// stay unchanged (VER-05).
type Prefs struct {
	shared config.Shared

	mu       sync.Mutex      // guards the fields below
	sessions map[string]bool // by peer id
	unread   error           // why the file could not be read, nil if it was read
}

// OpenPrefs reads the file. If it fails, no choice is remembered: a damaged or newer file
// stays unchanged (VER-06).
func OpenPrefs(shared config.Shared) (*Prefs, error) {
	prefs := &Prefs{shared: shared, sessions: map[string]bool{}}
	prefs.readLocked()
	return prefs, prefs.unread
}

func (p *Prefs) readLocked() {
	var choices config.AutoWakeChoices
	if choices, p.unread = p.shared.ReadAutoWake(); p.unread == nil {
		maps.Copy(p.sessions, choices.Sessions)
	}
}

// Get returns what the session chose; chosen is false if it made no choice.
func (p *Prefs) Get(peerID string) (enabled, chosen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	enabled, chosen = p.sessions[peerID]
	return enabled, chosen
}

// Set stores a choice durably. If it fails, the choice is unchanged. It reads the file
// again if that failed before.
func (p *Prefs) Set(peerID string, enabled bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unread != nil {
		p.readLocked()
	}
	if p.unread != nil {
		return bridge.Errorf(bridge.CodeOf(p.unread), "auto-wake was not changed, because the choice could not be remembered: %w", p.unread)
	}
	if before, known := p.sessions[peerID]; known && before == enabled {
		return nil
	}
	err := p.shared.Write(config.AutoWakeStore, config.AutoWakeChoices{Version: config.AutoWakeVersion, Sessions: map[string]bool{peerID: enabled}})
	if err != nil {
		return err
	}
	p.sessions[peerID] = enabled
	return nil
}
