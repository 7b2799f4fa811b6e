package wake

import (
	"maps"
	"sync"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
)

// Prefs remembers the sessions that chose their own auto-wake, over reloads
// and broker restarts, in a small JSON file of the home. Older programs keep
// choices of their own in it, which stay (VER-05).
type Prefs struct {
	shared config.Shared

	mu       sync.Mutex      // guards what is known of the file
	sessions map[string]bool // by peer id
	unread   error           // why the file was not read, nil when it was
}

// OpenPrefs reads the file. With the error nothing is remembered: a file that is
// damaged or newer stays as it is (VER-06).
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

// Get returns what the session chose; chosen is false when it chose nothing.
func (p *Prefs) Get(peerID string) (enabled, chosen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	enabled, chosen = p.sessions[peerID]
	return enabled, chosen
}

// Set remembers a choice durably; with an error there is no choice. A file that
// could not be read before may have been mended.
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
