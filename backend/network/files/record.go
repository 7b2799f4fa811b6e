package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/ipc/api"
)

// record is the stored state of a transfer, in network/transfers/<id>.json.
type record struct {
	Version  int               `json:"version"`
	ID       string            `json:"id"`
	Incoming bool              `json:"incoming"`
	PC       api.PCName        `json:"pc"`
	State    string            `json:"state"`
	Error    string            `json:"error,omitempty"` // of a failed one
	Code     string            `json:"code,omitempty"`
	Names    []string          `json:"names"`
	Offer    remote.FileOffer  `json:"offer"`
	Started  bridge.UnixMillis `json:"startedAt"`
	Ended    bridge.UnixMillis `json:"endedAt,omitempty"`
	// Sources are the files to send, with their checksums once known.
	Sources []source `json:"sources,omitempty"`
}

const (
	recordVersion  = 1
	maxRecordBytes = 16 << 20

	stateOpen   = "open"
	stateDone   = "done"
	stateFailed = "failed"
)

func (r *record) hasEnded() bool { return r.State != stateOpen }

// write stores a record on the disk. It fails with Storage on a disk error.
func (t *Transfers) write(r *record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		if err = disk.MakeDir(t.recordsFolder()); err == nil {
			err = t.opts.Disk.WriteAtomic(filepath.Join(t.recordsFolder(), r.ID+".json"), append(data, '\n'), disk.PrivateFile)
		}
	}
	if err != nil {
		return stored("the transfer could not be recorded", err)
	}
	return nil
}

// stored returns a disk error as one sentence for people.
func stored(what string, err error) error {
	var public *bridge.Error
	if errors.As(err, &public) {
		return err
	}
	return bridge.WithCause(bridge.Storage, err, what+": "+disk.Reason(err))
}

// close records the end of a transfer; why is nil if it succeeded.
func (t *Transfers) close(r *record, why error) error {
	t.mu.Lock()
	next := *r
	t.mu.Unlock()
	next.State, next.Ended = stateDone, t.opts.Now().UnixMilli()
	next.Sources = nil // Names holds their names
	if why != nil {
		public := publicError(why)
		next.State, next.Error, next.Code = stateFailed, public.Message, string(public.Code)
	}
	err := t.write(&next)
	t.mu.Lock()
	*r = next
	p := t.moved[r.ID]
	if p == nil {
		p = &progress{}
		t.moved[r.ID] = p
	}
	t.changedLocked(p)
	t.mu.Unlock()
	t.opts.Changed()
	return err
}

// loadRecords reads all records and skips damaged ones.
func loadRecords(folder string) (map[string]*record, error) {
	records := map[string]*record{}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return records, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the transfers: %w", err)
	}
	for _, entry := range entries {
		id, isRecord := strings.CutSuffix(entry.Name(), ".json")
		if !isRecord || disk.IsTemp(entry.Name()) {
			continue
		}
		r := &record{}
		err := disk.ReadJSON(filepath.Join(folder, entry.Name()), maxRecordBytes, r)
		if err == nil && (r.ID != id || r.Version != recordVersion) {
			err = bridge.Errorf(bridge.Unsupported, "it is not of this version, or has another's name")
		}
		if err != nil {
			continue // doctor reports it; its files stay
		}
		records[id] = r
	}
	return records, nil
}

// namesOf returns the first top-level names of what is sent, as the owner chose them.
func namesOf(sources []source) []string {
	var names []string
	for _, source := range sources {
		name, _, isBelow := strings.Cut(source.Path, "/")
		if isBelow {
			name += "/"
		}
		if len(names) > 0 && names[len(names)-1] == name {
			continue
		}
		if names = append(names, name); len(names) == shownNames {
			break
		}
	}
	return names
}

// namesIn returns the same for a received manifest.
func namesIn(manifest remote.Manifest) []string {
	var sources []source
	for _, file := range manifest.Files {
		sources = append(sources, source{FileEntry: remote.FileEntry{Path: path.Clean(file.Path)}})
	}
	return namesOf(sources)
}
