package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Shared reads and writes the JSON stores that programs of several versions share
// in a home. While older programs run, their files stay unchanged (VER-05). Then a
// write is one file of the journal pending-job-writes/v1, and Read returns the
// store with the journal applied. Apply writes the journal to the stores once that
// is safe. Only the broker writes. The methods are not safe for concurrent use.
type Shared struct {
	Home Home
	Now  func() time.Time
	// Hold keeps writes in the journal.
	Hold bool
	// Files does the writes; the zero value works.
	Files disk.Files
}

// sharedStores are the stores that the journal may change.
var sharedStores = []string{AutoWakeStore, "jobs.json", "remote-jobs.json"}

// AutoWakeStore holds the sessions' own auto-wake choices as AutoWakeChoices. Older
// programs store their choices in it, too.
const AutoWakeStore = "auto-wake.json"

// AutoWakeChoices is Bridge's part of AutoWakeStore, or a change to it.
type AutoWakeChoices struct {
	Version  int             `json:"version"`
	Sessions map[string]bool `json:"sessions"` // by peer id
}

// AutoWakeVersion is the newest version of AutoWakeStore that this build knows.
const AutoWakeVersion = 1

// ReadAutoWake returns the choices with every pending change, or none without a
// store. It fails with Unsupported for a newer version, and with Storage if the
// file cannot be read (VER-06).
func (s Shared) ReadAutoWake() (AutoWakeChoices, error) {
	var stored struct {
		Version  int             `json:"version"`
		Sessions json.RawMessage `json:"sessions"`
	}
	err := s.Read(AutoWakeStore, &stored)
	if errors.Is(err, fs.ErrNotExist) {
		return AutoWakeChoices{}, nil
	}
	if err == nil && stored.Version > AutoWakeVersion { // first: its members may have another meaning
		return AutoWakeChoices{}, newerStore(AutoWakeStore, int64(stored.Version), AutoWakeVersion)
	}
	choices := AutoWakeChoices{Version: stored.Version}
	if err == nil && stored.Sessions != nil {
		err = json.Unmarshal(stored.Sessions, &choices.Sessions)
	}
	if bridge.CodeOf(err) == bridge.Internal { // valid JSON, but of another form
		err = bridge.WithCause(bridge.Storage, err, AutoWakeStore+" has not the form of that store: it is left as it is")
	}
	if err != nil {
		return AutoWakeChoices{}, err
	}
	return choices, nil
}

func newerStore(store string, version, known int64) error {
	return bridge.Errorf(bridge.Unsupported, "%s has version %d and this Bridge knows version %d: it is left as it is, use the newer Bridge that wrote it", store, version, known)
}

// The journal's version, and the read limit of one journal file or store.
const (
	pendingVersion = 1
	maxSharedBytes = 32 << 20
)

// PendingWrite is one pending write: a JSON merge patch (RFC 7396) to a store. A
// repeated write changes nothing.
type PendingWrite struct {
	Version    int               `json:"version"`
	Store      string            `json:"store"` // file name in the home
	RecordedAt bridge.UnixMillis `json:"recordedAt"`
	Patch      json.RawMessage   `json:"patch"`

	name string // its file name in the journal
}

// IsPendingWrite reports whether name is a file name of the journal: twelve digits
// for the order, then an id. Other programs use other names in the same folder.
func IsPendingWrite(name string) bool {
	rest, isJSON := strings.CutSuffix(name, ".json")
	place, id, _ := strings.Cut(rest, "-")
	return isJSON && len(place) == 12 && strings.Trim(place, "0123456789") == "" && len(id) == 36 && strings.Trim(id, "0123456789abcdef-") == ""
}

// Read decodes a store with every pending write into dst. It fails with
// fs.ErrNotExist if there is no store and no pending write.
func (s Shared) Read(store string, dst any) error {
	document, exists, err := s.stored(store)
	if err != nil {
		return err
	}
	pending, err := s.Pending()
	if err != nil {
		return err
	}
	for _, write := range pending {
		if write.Store == store {
			exists = true
			if document, err = write.over(document); err != nil {
				return err
			}
		}
	}
	if !exists {
		return fmt.Errorf("read %s: %w", store, fs.ErrNotExist)
	}
	data, err := json.Marshal(document)
	if err == nil {
		err = json.Unmarshal(data, dst)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", store, disk.ExplainJSON(data, err))
	}
	return nil
}

// Write merges patch durably into a store's file, or into the journal if Hold is
// set or earlier writes are pending. It fails with Invalid for an unknown store.
func (s Shared) Write(store string, patch any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode a change of %s: %w", store, err)
	}
	write := PendingWrite{Version: pendingVersion, Store: store, RecordedAt: s.Now().UnixMilli(), Patch: data}
	if err := write.check(); err != nil {
		return err
	}
	pending, err := s.Pending()
	if err != nil {
		return err
	}
	if !s.Hold && len(pending) == 0 {
		return s.apply(write)
	}
	next := 1
	if len(pending) > 0 {
		_, _ = fmt.Sscanf(pending[len(pending)-1].name, "%d-", &next) // IsPendingWrite checked the form
		next++
	}
	if data, err = json.MarshalIndent(write, "", "  "); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(s.Home.PendingJobWrites()), s.Home.PendingJobWrites()} {
		if err := disk.MakeDir(dir); err != nil {
			return err
		}
	}
	return s.Files.WriteNew(filepath.Join(s.Home.PendingJobWrites(), fmt.Sprintf("%012d-%s.json", next, uuid.NewString())), append(data, '\n'), disk.PrivateFile)
}

// Apply executes the pending writes in order and moves each to
// archive/pending-job-writes. It returns how many it executed. It fails at the
// first write that is unreadable or cannot be executed. After an interruption at
// any step, it can run again.
func (s Shared) Apply() (done int, err error) {
	pending, err := s.Pending()
	if err != nil || len(pending) == 0 {
		return 0, err
	}
	archive := filepath.Join(s.Home.ArchiveDir(), "pending-job-writes")
	for _, dir := range []string{s.Home.ArchiveDir(), archive} {
		if err := disk.MakeDir(dir); err != nil {
			return 0, err
		}
	}
	for _, write := range pending {
		if err := s.apply(write); err != nil {
			return done, err
		}
		if err := s.Files.Publish(filepath.Join(s.Home.PendingJobWrites(), write.name), filepath.Join(archive, write.name)); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// Pending returns the pending writes in order. It fails at the first unreadable
// one, because later writes may depend on it.
func (s Shared) Pending() ([]PendingWrite, error) {
	names, err := s.pendingNames()
	if err != nil {
		return nil, err
	}
	var pending []PendingWrite
	for _, name := range names {
		write, err := s.ReadPending(name)
		if err != nil {
			return nil, err
		}
		pending = append(pending, write)
	}
	return pending, nil
}

func (s Shared) pendingNames() ([]string, error) {
	entries, err := os.ReadDir(s.Home.PendingJobWrites())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the pending writes: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && IsPendingWrite(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// ReadPending reads one file of the journal. It fails with Storage if the file is not readable.
func (s Shared) ReadPending(name string) (PendingWrite, error) {
	write := PendingWrite{name: name}
	path := filepath.Join(s.Home.PendingJobWrites(), name)
	data, err := disk.ReadLimited(path, maxSharedBytes)
	if err == nil {
		err = json.Unmarshal(data, &write)
	}
	if err == nil {
		err = write.check()
	}
	if err != nil {
		return write, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("the pending write %s cannot be read: %v", path, err))
	}
	return write, nil
}

// check fails if this build cannot execute the write.
func (w PendingWrite) check() error {
	var patch map[string]any
	switch {
	case w.Version > pendingVersion:
		return bridge.Errorf(bridge.Unsupported, "it has version %d and this Bridge knows version %d", w.Version, pendingVersion)
	case w.Version < 1 || !slices.Contains(sharedStores, w.Store):
		return bridge.Errorf(bridge.Invalid, "it names no store that Bridge shares")
	case json.Unmarshal(w.Patch, &patch) != nil || patch == nil:
		return bridge.Errorf(bridge.Invalid, "its patch is not a JSON object")
	}
	return nil
}

// stored reads a store; a missing store is an empty object.
func (s Shared) stored(store string) (document map[string]any, exists bool, err error) {
	data, err := disk.ReadLimited(filepath.Join(s.Home.Dir(), store), maxSharedBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, false, nil
	}
	if err == nil {
		document, err = decodeStore(data)
	}
	if err != nil {
		return nil, false, bridge.WithCause(bridge.Storage, err, fmt.Sprintf("%s cannot be read: it is left as it is", store))
	}
	return document, true, nil
}

// apply merges one write into its store's file. All members that the write does not
// name stay unchanged.
func (s Shared) apply(write PendingWrite) error {
	document, _, err := s.stored(write.Store)
	if err != nil {
		return err
	}
	if document, err = write.over(document); err != nil {
		return err
	}
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("encode %s: %w", write.Store, err)
	}
	return s.Files.WriteAtomic(filepath.Join(s.Home.Dir(), write.Store), data.Bytes(), disk.PrivateFile)
}

// over returns the document with the write applied. It fails with Unsupported if
// the document has a newer version than the write (VER-06).
func (w PendingWrite) over(document map[string]any) (map[string]any, error) {
	patch, err := decodeObject(w.Patch)
	if err != nil {
		return nil, fmt.Errorf("the pending write %s: %w", w.name, err)
	}
	has, versioned := wholeNumber(document["version"])
	if knows, ok := wholeNumber(patch["version"]); ok && versioned && has > knows {
		return nil, newerStore(w.Store, has, knows)
	}
	return merged(document, patch), nil
}

func wholeNumber(value any) (int64, bool) {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return 0, false
	}
	integer, err := number.Int64()
	return integer, err == nil
}

// decodeStore decodes a store's file as disk.DecodeJSON does, and keeps the text of
// numbers.
func decodeStore(data []byte) (map[string]any, error) {
	_, data = disk.CutBOM(data)
	if duplicate, found := disk.FindDuplicate(data); found {
		return nil, duplicate
	}
	return decodeObject(data)
}

// decodeObject decodes a JSON object and keeps the text of numbers.
func decodeObject(data []byte) (map[string]any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("it is not a JSON object")
	}
	return object, nil
}

// merged applies a JSON merge patch: it merges objects, null removes a member, and
// other values replace.
func merged(document, patch map[string]any) map[string]any {
	for name, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(document, name)
		case isObject:
			before, _ := document[name].(map[string]any)
			if before == nil {
				before = map[string]any{}
			}
			document[name] = merged(before, inner)
		default:
			document[name] = value
		}
	}
	return document
}
