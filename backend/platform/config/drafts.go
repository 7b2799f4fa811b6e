package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// DraftsStore holds the texts that the owner has typed on the page and not sent
// (PGE-03). DraftsVersion is its newest version that this build knows.
const (
	DraftsStore   = "drafts.json"
	DraftsVersion = 1
)

// Limits of DraftsStore. DraftLife is how long Bridge keeps a draft after its last change.
const (
	MaxDrafts     = 200
	MaxDraftBytes = 512 << 10
	maxDraftKey   = 512 // characters
	DraftLife     = 7 * 24 * time.Hour
	maxDraftsFile = 128 << 20
)

// Draft is one text, or a list of texts, under a key of the page. At is the time of its
// last change, in Unix milliseconds.
type Draft struct {
	Key   string            `json:"key"`
	At    bridge.UnixMillis `json:"at"`
	Value json.RawMessage   `json:"value"`
}

// Drafts is the content of DraftsStore.
type Drafts struct {
	Version int     `json:"version"`
	Drafts  []Draft `json:"drafts"` // the last changed one last
}

// DraftsFile reads and writes DraftsStore of one home. It must be its only writer. All
// methods are safe for concurrent use.
type DraftsFile struct {
	Home Home
	Now  func() time.Time
	lock sync.Mutex
}

// Drafts returns the drafts that are younger than [DraftLife], the last changed one last.
// It fails with Storage if the file is unreadable.
func (f *DraftsFile) Drafts() ([]Draft, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	stored, err := f.read()
	return stored.Drafts, err
}

// SetDraft stores a draft, or removes it if the value is empty or null. It fails with
// Invalid for a key or a value beyond the limits, and with Storage if the file cannot be
// read or written. If there are more than [MaxDrafts], it removes the oldest.
func (f *DraftsFile) SetDraft(key string, value json.RawMessage) error {
	if err := bridge.CheckText("the key", key, maxDraftKey); err != nil {
		return err
	}
	if len(value) > MaxDraftBytes {
		return bridge.Errorf(bridge.TooLarge, "a draft may have %s", bridge.Size(MaxDraftBytes))
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	stored, err := f.read()
	if err != nil {
		return err
	}
	before := len(stored.Drafts)
	stored.Version = DraftsVersion
	stored.Drafts = slices.DeleteFunc(stored.Drafts, func(d Draft) bool { return d.Key == key })
	switch isNone := len(value) == 0 || string(value) == "null" || string(value) == `""`; {
	case !isNone:
		stored.Drafts = append(stored.Drafts, Draft{Key: key, At: f.Now().UnixMilli(), Value: value})
	case len(stored.Drafts) == before:
		return nil // there was none
	}
	stored.Drafts = stored.Drafts[max(0, len(stored.Drafts)-MaxDrafts):]
	return disk.WriteJSON(f.Home.at(DraftsStore), stored)
}

func (f *DraftsFile) read() (Drafts, error) {
	stored := Drafts{}
	err := disk.ReadJSON(f.Home.at(DraftsStore), maxDraftsFile, &stored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Drafts{Version: DraftsVersion}, nil
	case err != nil:
		return Drafts{}, bridge.WithCause(bridge.Storage, err, DraftsStore+" cannot be read: Bridge leaves it as it is")
	case stored.Version > DraftsVersion:
		return Drafts{}, newerStore(DraftsStore, int64(stored.Version), DraftsVersion)
	}
	oldest := f.Now().Add(-DraftLife).UnixMilli()
	stored.Drafts = slices.DeleteFunc(stored.Drafts, func(d Draft) bool { return d.At < oldest })
	return stored, nil
}
