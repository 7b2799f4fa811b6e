// Package setup connects Bridge to the agent CLIs and disconnects it (row MSG-11).
// It plans the edits of their settings files (Connector.PlanInstall, PlanRemoval), shows them
// as lines (Edit.Diff) and executes all or none (Apply). It keeps the bytes of all
// foreign content. One file per kind defines the content of the files. Package kinds has
// the table of the connectors.
package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"bridge/backend/agent"
	"bridge/backend/agent/setup/textdiff"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/platform/disk"
)

// maxConfigBytes bounds an edited settings file. Claude Code keeps histories in its
// file, so the limit is generous.
const maxConfigBytes = 64 << 20

// Connector connects the CLI of one kind. Each kind has a value.
type Connector struct {
	Kind bridge.AgentKind
	// connect returns the layout that connects Bridge to the CLI. before is the record of
	// an earlier installation, or nil.
	connect func(ctx context.Context, in Input, before *installed) (layout, error)
}

// Input names the CLI and the bridge to connect.
type Input struct {
	Home       string              // the user's home folder, absolute
	Env        func(string) string // the environment with the CLIs' folders
	Bridge     string              // absolute path of the bridge binary
	Hook       string              // absolute path of bridge-hook; "" if it is missing: hooks then call `bridge hook`
	BridgeHome string              // for --home; "" for the default home
	State      string              // <bridge home>/install: the copies and the manifest
	CLI        agent.Found         // the CLI, as Detect found it
	OS         string              // runtime.GOOS when ""
	Environ    []string            // the CLI's environment; nil for this process's
	Choices

	allowsJobs  bool
	deniesOwner bool
	deniedOwner bool // by an earlier installation
}

// Choices are the owner's choices for an installation; nil keeps the choice of an
// earlier one.
type Choices struct {
	// Jobs controls whether sessions may use AskedTools without a question (JOB-26).
	Jobs *bool
	// DenyOwner controls whether the CLI's own rules deny sessions the owner's
	// commands and files of Bridge's home (SEC-07).
	DenyOwner *bool
}

func (in Input) windows() bool { return in.OS == "windows" || in.OS == "" && runtime.GOOS == "windows" }

// folder returns the folder in an environment variable, or elements below the
// user's home.
func (in Input) folder(variable string, elements ...string) string {
	return hooks.Folder(in.Home, in.Env, variable, elements...)
}

// Edit is one change of a file. Before is nil if the file is created, After if it
// is removed.
type Edit struct {
	Path   string
	Adds   string // what it adds or removes, one plain sentence
	Before []byte
	After  []byte

	target string // Path with its links resolved
	mode   fs.FileMode
}

// Diff returns the change as lines that begin with a space, + or -, as
// [textdiff.Lines] does.
func (e Edit) Diff() []string { return textdiff.Lines(e.Before, e.After) }

// Verb returns the kind of change: it makes, changes or removes the file.
func (e Edit) Verb() string {
	switch {
	case e.Before == nil:
		return "makes"
	case e.After == nil:
		return "removes"
	}
	return "changes"
}

// Plan is the complete and exact effect of an installation or a removal: show it,
// ask, then Apply it.
type Plan struct {
	Kind  bridge.AgentKind
	Edits []Edit
	Notes []string // sentences for the person in addition to the edits
	Doubt string   // what may not work with this version of the CLI; "" if it was tested

	state    string
	next     *installed // the manifest's later entry; nil for none
	copies   []copied   // contents to store under state
	recorded bool       // the manifest already has this entry
}

// Empty reports whether applying the plan would change nothing.
func (p Plan) Empty() bool { return len(p.Edits) == 0 && p.recorded }

// Digest identifies the plan's exact effect: plans with equal digests are
// interchangeable.
func (p Plan) Digest() string {
	said, err := json.Marshal(struct {
		Kind  bridge.AgentKind
		Edits []Edit
		Notes []string
		Next  *installed
	}{p.Kind, p.Edits, p.Notes, p.next})
	if err != nil {
		panic(err) // only strings, bytes and Bridge's own JSON values
	}
	return sum(said)
}

// PlanInstall returns the plan that connects the CLI. It changes nothing.
// It fails with Conflict, and names the obstacle, if it would overwrite an entry, a
// hook or a file that Bridge did not write.
func (c Connector) PlanInstall(ctx context.Context, in Input) (Plan, error) {
	kind := c.Kind
	if !filepath.IsAbs(in.Bridge) || in.Hook != "" && !filepath.IsAbs(in.Hook) || !filepath.IsAbs(in.Home) || !filepath.IsAbs(in.State) {
		return Plan{}, bridge.Errorf(bridge.Invalid, "installing needs absolute paths of the home folder and of the bridge programs")
	}
	if unknown := agent.UnknownLayout(kind, in.CLI.Version); unknown != "" {
		return Plan{}, bridge.Errorf(bridge.Unsupported, "%s Nothing was written for it", unknown)
	}
	m, err := readManifest(in.State)
	if err != nil {
		return Plan{}, err
	}
	before := m.Kinds[kind]
	in.allowsJobs = before.allowsJobs()
	if in.Jobs != nil {
		in.allowsJobs = *in.Jobs
	}
	in.deniedOwner = before != nil && before.OwnerDenied
	if in.deniesOwner = in.deniedOwner; in.DenyOwner != nil {
		in.deniesOwner = *in.DenyOwner
	}
	want, err := c.connect(ctx, in, before)
	if err != nil {
		return Plan{}, fmt.Errorf("connecting %s: %w", kind, err)
	}
	plan := Plan{Kind: kind, Notes: want.notes, state: in.State, next: &installed{Bridge: in.Bridge, CLIVersion: in.CLI.Version, Jobs: in.allowsJobs, OwnerDenied: in.deniesOwner}}
	plan.next.Dirs = before.dirs()
	if agent.Tried(kind) != "" { // otherwise the notes report it
		plan.Doubt = in.CLI.Note
	}
	for _, doc := range want.documents {
		if err := plan.bringIn(doc, before); err != nil {
			return Plan{}, bridge.Errorf(bridge.CodeOf(err), "%s is not connected: %s: %w%s", kind, doc.path, err, plan.interrupted(doc.path, err))
		}
	}
	for _, file := range before.files() { // parts of an older version that this one does not write
		if !slices.ContainsFunc(want.documents, func(d document) bool { return d.path == file.Path }) {
			if err := plan.planRemoval(file); err != nil {
				return Plan{}, err
			}
		}
	}
	plan.recorded = before.equal(plan.next)
	return plan, nil
}

// PlanRemoval returns the plan that reverts PlanInstall's plan, from the manifest
// alone.
func PlanRemoval(kind bridge.AgentKind, state string) (Plan, error) {
	m, err := readManifest(state)
	if err != nil {
		return Plan{}, err
	}
	before := m.Kinds[kind]
	plan := Plan{Kind: kind, state: state, recorded: before == nil}
	for _, file := range before.files() {
		if err := plan.planRemoval(file); err != nil {
			return Plan{}, err
		}
	}
	return plan, nil
}

// StateFolder returns the folder within Bridge's home with the copies and the manifest of
// the connections.
func StateFolder(home string) string { return filepath.Join(home, "install") }

// Installed returns the kinds that are connected according to the manifest.
func Installed(state string) ([]bridge.AgentKind, error) {
	m, err := readManifest(state)
	if err != nil {
		return nil, err
	}
	var kinds []bridge.AgentKind
	for _, kind := range bridge.Kinds() {
		if m.Kinds[kind] != nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// JobsAllowed returns the kinds whose sessions may use AskedTools without a
// question, according to the manifest.
func JobsAllowed(state string) ([]bridge.AgentKind, error) {
	m, err := readManifest(state)
	if err != nil {
		return nil, err
	}
	var kinds []bridge.AgentKind
	for _, kind := range bridge.Kinds() {
		if m.Kinds[kind].allowsJobs() {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// bringIn plans the edit of one document.
func (p *Plan) bringIn(doc document, before *installed) error {
	current, target, mode, err := readConfig(doc.path)
	if err != nil {
		return err
	}
	if doc.unread != nil {
		note, err := doc.unread(current)
		if err != nil {
			return err
		}
		if note != "" {
			p.Notes = append(p.Notes, doc.path+": "+note)
		}
	}
	old := before.file(doc.path)
	without, err := p.withoutUnwanted(current, doc, old)
	if err != nil {
		return err
	}
	after, err := doc.format.merge(without, doc, old.parts())
	if err != nil {
		return err
	}
	if doc.yields != "" && string(after) != partText(doc.parts[0]) {
		p.Notes = append(p.Notes, doc.yields)
		return nil
	}
	original, err := p.original(current, doc, old)
	if err != nil {
		return err
	}
	file := installedFile{Path: doc.path, Format: formatName(doc.format), Parts: doc.written(current, old), After: sum(after), Mode: uint32(mode)}
	if original != nil {
		file.Copy = p.keep(doc.path, original)
	}
	p.next.Files = append(p.next.Files, file)
	p.next.Dirs = append(p.next.Dirs, missingDirs(target, p.next.Dirs)...)
	if current != nil && bytes.Equal(after, current) {
		return nil
	}
	if current != nil {
		p.keep(doc.path, current)
	}
	p.Edits = append(p.Edits, Edit{Path: doc.path, Adds: doc.adds, Before: current, After: after, target: target, mode: mode})
	return nil
}

// withoutUnwanted returns the file without Bridge's unwanted parts, and without the
// containers that only they needed.
func (p *Plan) withoutUnwanted(current []byte, doc document, old *installedFile) ([]byte, error) {
	var unwanted []part
	for _, part := range old.parts() {
		if !doc.wants(part) {
			unwanted = append(unwanted, part)
		}
	}
	if current == nil || len(unwanted) == 0 {
		return current, nil
	}
	kept, err := old.original(p.state)
	if err != nil {
		return nil, err
	}
	return doc.format.strip(current, kept, unwanted)
}

// original returns the file's content without Bridge, or nil without a file: the
// stored copy, or after a foreign change the present file without Bridge's parts.
func (p *Plan) original(current []byte, doc document, old *installedFile) ([]byte, error) {
	if current == nil {
		return nil, nil
	}
	if old == nil { // Bridge's parts without a record: the manifest was lost
		leftovers := doc.leftovers(current)
		if len(leftovers) == 0 {
			return current, nil
		}
		without, err := doc.format.strip(current, current, leftovers)
		if err != nil || doc.format.empty(without) {
			return nil, err
		}
		return without, nil
	}
	kept, err := old.original(p.state)
	if err != nil {
		return nil, err
	}
	if sum(current) == old.After {
		return kept, nil
	}
	without, err := doc.format.strip(current, kept, old.Parts)
	if err != nil {
		return nil, err
	}
	if kept == nil && doc.format.empty(without) {
		return nil, nil
	}
	return without, nil
}

// planRemoval plans the edit that removes Bridge's parts from one file.
func (p *Plan) planRemoval(file installedFile) error {
	current, target, mode, err := readConfig(file.Path)
	if err != nil {
		return err
	}
	if current == nil {
		return nil
	}
	original, err := file.original(p.state)
	if err != nil {
		return err
	}
	after, known := original, formats[file.Format]
	if known == nil {
		return bridge.Errorf(bridge.Unsupported, "%s was installed by a newer Bridge: use that one to take it back", file.Path)
	}
	if sum(current) != file.After {
		if after, err = known.strip(current, original, file.Parts); err != nil {
			return bridge.Errorf(bridge.CodeOf(err), "%s: %w%s", file.Path, err, p.interrupted(file.Path, err))
		}
		if original == nil && known.empty(after) {
			after = nil
		}
		p.keep(file.Path, current)
	}
	if after == nil && hasOtherNames(file.Path, target) {
		if after, err = known.strip(current, original, file.Parts); err != nil {
			return bridge.Errorf(bridge.CodeOf(err), "%s: %w", file.Path, err)
		}
	}
	if after != nil && bytes.Equal(after, current) {
		if sum(current) != sum(original) {
			p.Notes = append(p.Notes, file.Path+" was changed since Bridge wrote it and is left as it is.")
		}
		return nil
	}
	edit := Edit{Path: file.Path, Adds: "Takes out what Bridge wrote.", Before: current, After: after, target: target, mode: mode}
	if after == nil {
		edit.Adds = "Removes the file, which Bridge made."
	}
	p.Edits = append(p.Edits, edit)
	return nil
}

// interrupted returns a sentence that names the earlier content of a file that is unreadable
// because Bridge's process ended during a write in place. It returns "" for any other err.
func (p *Plan) interrupted(path string, err error) string {
	saved := disk.InterruptedCopy(path, p.state)
	if saved == "" || bridge.CodeOf(err) != bridge.Invalid {
		return ""
	}
	return ". Bridge was ended while it wrote that file. What the file held before is in " + saved + ": copy that back"
}

// hasOtherNames reports whether the file at path also has a link. Then the file
// stays when Bridge removes its entries, because the other name would be dangling
// or keep them.
func hasOtherNames(path, target string) bool {
	info, err := os.Lstat(path)
	shared, _ := disk.HasHardLinks(target) // if unknown, the file is removed
	return shared || err == nil && info.Mode()&fs.ModeSymlink != 0
}

// readConfig reads a settings file through its links. For a missing file it returns
// nil bytes and the mode of the future file.
func readConfig(path string) (data []byte, target string, mode fs.FileMode, err error) {
	target, err = disk.CanonicalTarget(path)
	if err != nil {
		return nil, "", 0, bridge.Errorf(bridge.Conflict, "it cannot be followed to a file")
	}
	info, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, target, disk.PrivateFile, nil
	}
	if err != nil {
		return nil, "", 0, fmt.Errorf("reading settings: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, "", 0, bridge.Errorf(bridge.Conflict, "it is not a file")
	}
	data, err = disk.ReadLimited(target, maxConfigBytes)
	if err != nil {
		return nil, "", 0, fmt.Errorf("reading settings: %w", err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, target, permissions(info), nil
}

// permissions returns a file's mode. Windows reports 0666 for every file that may be
// written: that is the mode of a new file.
func permissions(info fs.FileInfo) fs.FileMode {
	mode := info.Mode().Perm()
	if runtime.GOOS == "windows" && mode == 0o666 {
		return disk.PrivateFile
	}
	return mode
}

// missingDirs returns the folders that have to be made for target, outermost
// first, without those that are known already.
func missingDirs(target string, known []string) []string {
	var dirs []string
	for dir := filepath.Dir(target); !slices.Contains(known, dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}
