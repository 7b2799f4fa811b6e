package setup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Apply executes a plan completely or not at all: if a file cannot be written, it
// restores the earlier ones. It fails with Conflict if a file has changed since the
// plan was made. The copies of all files and the manifest are on the disk before
// the first edit.
func Apply(plan Plan) error {
	for _, edit := range plan.Edits {
		if err := edit.unchanged(); err != nil {
			return err
		}
	}
	if plan.Empty() {
		return nil
	}
	m, err := readManifest(plan.state)
	if err != nil {
		return err
	}
	before := m.Kinds[plan.Kind]
	if err := plan.writeCopies(); err != nil {
		return err
	}
	if plan.next != nil {
		if err := m.write(plan.state, plan.Kind, plan.next); err != nil {
			return err
		}
	}
	for i, edit := range plan.Edits {
		if err := edit.write(edit.After, plan.state); err != nil {
			failed := errors.Join(fmt.Errorf("connecting %s: %w", plan.Kind, err), undo(plan.Edits[:i], plan.state), m.write(plan.state, plan.Kind, before))
			dropEmptyDirs(slices.DeleteFunc(plan.next.dirs(), func(dir string) bool { return slices.Contains(before.dirs(), dir) }))
			return failed
		}
	}
	if plan.next != nil {
		return nil
	}
	dropEmptyDirs(before.dirs())
	return m.write(plan.state, plan.Kind, nil)
}

// unchanged fails if the edit's file differs from the plan's.
func (e Edit) unchanged() error {
	current, target, _, err := readConfig(e.Path)
	if err != nil {
		return err
	}
	if target != e.target || (current == nil) != (e.Before == nil) || !bytes.Equal(current, e.Before) {
		return bridge.Errorf(bridge.Conflict, "%s changed in the meantime: try again", e.Path)
	}
	return nil
}

// write writes the file's new content; nil removes the file. During a write in
// place, the folder copies holds the old content. It fails with Storage, with
// advice for the person.
func (e Edit) write(data []byte, copies string) error {
	if data == nil {
		err := os.Remove(e.target)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return e.refused("removed", err)
		}
		return disk.SyncDir(filepath.Dir(e.target))
	}
	err := disk.MakeDir(filepath.Dir(e.target))
	if err == nil {
		err = disk.Files{}.Overwrite(e.target, data, e.mode, copies)
	}
	if err != nil {
		return e.refused("written", err)
	}
	return nil
}

// refused returns a readable reason why the file could not be written or removed.
func (e Edit) refused(done string, err error) error {
	return bridge.WithCause(bridge.Storage, err, fmt.Sprintf("%s could not be %s: %s", e.Path, done, disk.WhyNotWritten(err)))
}

// undo restores the files' old content.
func undo(edits []Edit, copies string) error {
	var failed []error
	for _, edit := range slices.Backward(edits) {
		failed = append(failed, edit.write(edit.Before, copies))
	}
	return errors.Join(failed...)
}

// dropEmptyDirs removes the folders that Bridge made, innermost first, if they are
// empty.
func dropEmptyDirs(dirs []string) {
	for _, dir := range slices.Backward(dirs) {
		if os.Remove(dir) != nil { // not empty: it has files of others
			continue
		}
	}
}

// manifestName is the manifest's file in the state folder.
const manifestName = "install.json"

// manifestVersion increases if an older Bridge could not revert the recorded
// installation.
const manifestVersion = 1

// manifest records the installation, so that exactly that can be reverted.
type manifest struct {
	Version int                             `json:"version"`
	Kinds   map[bridge.AgentKind]*installed `json:"kinds"`
}

// installed is one connected CLI.
type installed struct {
	Bridge     string `json:"bridge"` // the binary named in the entries
	CLIVersion string `json:"cliVersion,omitempty"`
	Jobs       bool   `json:"jobs,omitempty"` // sessions use AskedTools without a question
	// OwnerDenied is set if rules deny sessions the owner's commands.
	OwnerDenied bool            `json:"denyOwnerCommands,omitempty"`
	Files       []installedFile `json:"files"`
	Dirs        []string        `json:"dirs,omitempty"` // folders made for the files, outermost first
}

// installedFile is one edited file: Copy holds its content without Bridge (none
// without a file), After is the SHA-256 of the written content.
type installedFile struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Copy   string `json:"copy,omitempty"` // relative to the state folder
	After  string `json:"after"`
	Mode   uint32 `json:"mode"`
	Parts  []part `json:"parts"`
}

// copied is content stored in the state folder.
type copied struct {
	name string
	data []byte
}

// keep plans a copy and returns its name: the kind, the file's name and the
// content's checksum, so that each content is stored once.
func (p *Plan) keep(path string, data []byte) string {
	name := filepath.Join(string(p.Kind), filepath.Base(path)+"."+sum(data)[:16])
	p.copies = append(p.copies, copied{name, data})
	return name
}

func (p *Plan) writeCopies() error {
	for _, c := range p.copies {
		path := filepath.Join(p.state, c.name)
		if err := disk.MakeDir(filepath.Dir(path)); err != nil {
			return fmt.Errorf("keeping a copy: %w", err)
		}
		if err := disk.WriteNew(path, c.data, disk.PrivateFile); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("keeping a copy: %w", err)
		}
	}
	return nil
}

// readManifest reads the manifest; a missing one is empty.
func readManifest(state string) (manifest, error) {
	m := manifest{Version: manifestVersion, Kinds: map[bridge.AgentKind]*installed{}}
	path := filepath.Join(state, manifestName)
	err := disk.ReadJSON(path, maxConfigBytes, &m)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, bridge.Errorf(bridge.Invalid, "%s, which says what is installed, cannot be read", path)
	}
	if m.Version > manifestVersion {
		return m, bridge.Errorf(bridge.Unsupported, "%s was written by a newer Bridge", path)
	}
	if m.Kinds == nil {
		m.Kinds = map[bridge.AgentKind]*installed{}
	}
	return m, nil
}

// write sets or removes the entry of kind.
func (m manifest) write(state string, kind bridge.AgentKind, entry *installed) error {
	if m.Kinds[kind] = entry; entry == nil {
		delete(m.Kinds, kind)
	}
	if err := disk.MakeDir(state); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return disk.WriteJSON(filepath.Join(state, manifestName), m)
}

func (i *installed) files() []installedFile {
	if i == nil {
		return nil
	}
	return i.Files
}

func (i *installed) allowsJobs() bool { return i != nil && i.Jobs }

func (i *installed) dirs() []string {
	if i == nil {
		return nil
	}
	return slices.Clone(i.Dirs)
}

func (i *installed) file(path string) *installedFile {
	for _, file := range i.files() {
		if file.Path == path {
			return &file
		}
	}
	return nil
}

func (i *installed) equal(other *installed) bool {
	return i != nil && reflect.DeepEqual(normal(*i), normal(*other))
}

// normal removes what the JSON form does not keep, so that an entry is comparable
// with a decoded one.
func normal(i installed) installed {
	i.Files = slices.Clone(i.Files)
	for n := range i.Files {
		parts := slices.Clone(i.Files[n].Parts)
		for k := range parts {
			parts[k].Ours, parts[k].Yields = false, false
			var value any // the file escapes and indents it
			if json.Unmarshal(parts[k].Value, &value) == nil {
				parts[k].Value = encode(value)
			}
			if len(parts[k].Path) == 0 {
				parts[k].Path = nil
			}
		}
		i.Files[n].Parts = parts
	}
	if len(i.Dirs) == 0 {
		i.Dirs = nil
	}
	return i
}

func (f *installedFile) parts() []part {
	if f == nil {
		return nil
	}
	return f.Parts
}

// original returns the stored copy, or nil if there was no file.
func (f *installedFile) original(state string) ([]byte, error) {
	if f.Copy == "" {
		return nil, nil
	}
	if !filepath.IsLocal(f.Copy) {
		return nil, bridge.Errorf(bridge.Invalid, "the manifest names a copy outside its folder")
	}
	data, err := disk.ReadLimited(filepath.Join(state, f.Copy), maxConfigBytes)
	if err != nil {
		return nil, fmt.Errorf("reading the copy of %s: %w", f.Path, err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

func sum(data []byte) string {
	if data == nil {
		return ""
	}
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}
