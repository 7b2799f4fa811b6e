package broker

import (
	"errors"
	"io/fs"
	"maps"
	"sync"

	"bridge/backend/disk"
)

// wakePrefs remembers the sessions that chose their own auto-wake, over reloads
// and broker restarts, in a small JSON file of the home.
type wakePrefs struct {
	path string

	mu       sync.Mutex
	sessions map[string]bool // by peer id
}

const (
	prefsVersion    = 1
	prefsLimitBytes = 4 << 20
)

// prefsFile is the file's form.
type prefsFile struct {
	Version  int             `json:"version"`
	Sessions map[string]bool `json:"sessions"`
}

// openPrefs reads the file. One that is damaged or newer is left as it is, and
// nothing is remembered then.
func openPrefs(path string) (*wakePrefs, error) {
	prefs := &wakePrefs{path: path, sessions: map[string]bool{}}
	var file prefsFile
	err := disk.ReadJSON(path, prefsLimitBytes, &file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return prefs, nil
	case err != nil:
		return &wakePrefs{sessions: map[string]bool{}}, err
	case file.Version > prefsVersion:
		return &wakePrefs{sessions: map[string]bool{}}, errors.New("auto-wake.json is of a newer version: it is left as it is")
	}
	maps.Copy(prefs.sessions, file.Sessions)
	return prefs, nil
}

// get returns what the session chose; chosen is false when it chose nothing.
func (p *wakePrefs) get(peerID string) (enabled, chosen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	enabled, chosen = p.sessions[peerID]
	return enabled, chosen
}

// set remembers a choice durably.
func (p *wakePrefs) set(peerID string, enabled bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.sessions[peerID]
	p.sessions[peerID] = enabled
	if p.path == "" || known && before == enabled {
		return nil
	}
	return disk.WriteJSON(p.path, prefsFile{Version: prefsVersion, Sessions: p.sessions})
}
