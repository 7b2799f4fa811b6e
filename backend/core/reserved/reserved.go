// Package reserved says in which folders no job may write (SEC-09): those of Bridge, of
// the agents, of the owner's keys, of programs that start by themselves and of the
// system. It does no I/O: its caller resolves the paths.
package reserved

import (
	"strings"

	"bridge/backend/core/bridge"
)

// Folder is one folder in which no job may write.
type Folder struct {
	Path string // absolute
	What string // what the folder holds, as a sentence names it: "your keys"
	// Itself says that only the folder itself is reserved, and not what lies in it.
	Itself bool
	// Except names the folder in it, if any, in whose subfolders jobs may write.
	Except string
}

// Temporary are the folders for the temporary files of all programs.
var Temporary = []string{"/tmp", "/var/tmp", "/dev/shm"}

// IsPrivate reports whether a folder holds files that only the owner may read: keys, the
// state of agents, a browser's profile, settings, Bridge's home, or all of these.
func (f Folder) IsPrivate() bool {
	switch f.What {
	case ofAgents, ofKeys, ofBrowser, ofConfig, ofBridge, ofOwner:
		return true
	default:
		return false
	}
}

// Owner is whose folders are listed.
type Owner struct {
	System string              // as runtime.GOOS names it
	Home   string              // the owner's home folder, "" where it is unknown
	Bridge string              // the folder in which Bridge keeps its own, "" where it is unknown
	Getenv func(string) string // of the environment in which agents run
	// Join puts the parts of a path together as the system does.
	Join func(parts ...string) string
	// IsAbs reports whether the system knows a path as absolute.
	IsAbs func(path string) bool
}

const (
	ofAgents  = "the settings and the state of an agent"
	ofKeys    = "keys and passwords"
	ofStarts  = "programs that start by themselves or by their names"
	ofBridge  = "what Bridge keeps"
	ofOwner   = "your home folder"
	ofConfig  = "the settings of your programs"
	ofBrowser = "a browser's profile"
	ofSystem  = "what belongs to the system"
)

// inHome are the folders below an owner's home folder, with slashes.
var inHome = []Folder{
	{Path: ".claude", What: ofAgents},
	{Path: ".codex", What: ofAgents},
	{Path: ".gemini", What: ofAgents},
	{Path: ".opencode", What: ofAgents},
	{Path: ".cursor", What: ofAgents},
	{Path: ".copilot", What: ofAgents},
	{Path: ".agents", What: ofAgents},
	{Path: ".antigravity", What: ofAgents},
	{Path: ".ssh", What: ofKeys},
	{Path: ".gnupg", What: ofKeys},
	{Path: ".aws", What: ofKeys},
	{Path: ".kube", What: ofKeys},
	{Path: ".docker", What: ofKeys},
	{Path: ".azure", What: ofKeys},
	{Path: ".password-store", What: ofKeys},
	{Path: ".pki", What: ofKeys},
	{Path: "Library/Keychains", What: ofKeys},
	{Path: ".mozilla", What: ofBrowser},
	{Path: ".local/bin", What: ofStarts},
	{Path: "bin", What: ofStarts},
	{Path: ".cargo/bin", What: ofStarts},
	{Path: "go/bin", What: ofStarts},
	{Path: ".bun/bin", What: ofStarts},
	{Path: ".deno/bin", What: ofStarts},
	{Path: ".npm-global", What: ofStarts},
	{Path: ".nvm", What: ofStarts},
	{Path: ".pyenv", What: ofStarts},
	{Path: ".rbenv", What: ofStarts},
	{Path: ".asdf", What: ofStarts},
	{Path: ".bashrc.d", What: ofStarts},
	{Path: ".bash_completion.d", What: ofStarts},
	{Path: ".zsh", What: ofStarts},
	{Path: ".zshrc.d", What: ofStarts},
	{Path: ".oh-my-zsh", What: ofStarts},
	{Path: ".oh-my-bash", What: ofStarts},
	{Path: "Library/LaunchAgents", What: ofStarts},
	{Path: "Documents/PowerShell", What: ofStarts},
	{Path: "Documents/WindowsPowerShell", What: ofStarts},
	{Path: "AppData/Roaming/Microsoft/Windows/Start Menu", What: ofStarts},
}

// inXDG are the folders below those that XDG variables name. Where a variable is set the
// usual folder counts, too: another program may not know the variable.
var inXDG = []struct {
	variable, usual string
	folders         []Folder
}{
	{"XDG_CONFIG_HOME", ".config", []Folder{
		{Path: "", What: ofConfig, Itself: true},
		{Path: "opencode", What: ofAgents},
		{Path: "autostart", What: ofStarts},
		{Path: "systemd", What: ofStarts},
		{Path: "environment.d", What: ofStarts},
		{Path: "plasma-workspace", What: ofStarts},
		{Path: "fish", What: ofStarts},
		{Path: "zsh", What: ofStarts},
		{Path: "bash", What: ofStarts},
		{Path: "nushell", What: ofStarts},
		{Path: "git", What: ofStarts},
		{Path: "hypr", What: ofStarts},
		{Path: "sway", What: ofStarts},
		{Path: "i3", What: ofStarts},
		{Path: "gcloud", What: ofKeys},
		{Path: "gh", What: ofKeys},
		{Path: "google-chrome", What: ofBrowser},
		{Path: "chromium", What: ofBrowser},
	}},
	{"XDG_DATA_HOME", ".local/share", []Folder{
		{Path: "opencode", What: ofAgents},
		{Path: "keyrings", What: ofKeys},
		{Path: "systemd", What: ofStarts},
		{Path: "applications", What: ofStarts},
		{Path: "dbus-1", What: ofStarts},
		{Path: "mise", What: ofStarts},
	}},
	{"XDG_STATE_HOME", ".local/state", []Folder{{Path: "opencode", What: ofAgents}}},
	{"XDG_CACHE_HOME", ".cache", []Folder{{Path: "opencode", What: ofAgents}}},
}

// byVariable are folders that a variable names by itself.
var byVariable = []struct {
	variable string
	folder   Folder
}{
	{"CLAUDE_CONFIG_DIR", Folder{What: ofAgents}},
	{"CODEX_HOME", Folder{What: ofAgents}},
	{"OPENCODE_CONFIG_DIR", Folder{What: ofAgents}},
	{"GNUPGHOME", Folder{What: ofKeys}},
	{"ZDOTDIR", Folder{What: ofStarts, Itself: true}},
	{"SystemRoot", Folder{What: ofSystem}},
	{"ProgramFiles", Folder{What: ofSystem}},
	{"ProgramFiles(x86)", Folder{What: ofSystem}},
	{"ProgramData", Folder{What: ofSystem}},
}

// ofUnix are the folders of the system on everything but Windows.
var ofUnix = []Folder{
	{Path: "/", Itself: true},
	{Path: "/bin"},
	{Path: "/boot"},
	{Path: "/dev", Except: "shm"},
	{Path: "/etc"},
	{Path: "/lib"},
	{Path: "/lib32"},
	{Path: "/lib64"},
	{Path: "/proc"},
	{Path: "/run", Except: "media"},
	{Path: "/sbin"},
	{Path: "/sys"},
	{Path: "/usr"},
	{Path: "/nix"},
	{Path: "/snap"},
	{Path: "/opt", Itself: true},
	{Path: "/var", Itself: true},
	{Path: "/var/lib", Itself: true},
	{Path: "/var/spool"},
	{Path: "/var/log"},
	{Path: "/System"},
	{Path: "/Library"},
	{Path: "/Applications"},
	{Path: "/private", Itself: true},
	{Path: "/private/etc"},
}

// Folders lists the folders in which no job of that owner may write, absolute.
func (o Owner) Folders() []Folder {
	var all []Folder
	add := func(folder Folder, parts ...string) {
		if parts[0] == "" || !o.IsAbs(parts[0]) {
			return
		}
		folder.Path = o.Join(parts...)
		all = append(all, folder)
	}
	add(Folder{What: ofBridge, Except: "worktrees"}, o.Bridge)
	add(Folder{What: ofOwner, Itself: true}, o.Home)
	for _, folder := range inHome {
		add(folder, o.Home, folder.Path)
	}
	for _, place := range inXDG {
		for _, folder := range place.folders {
			add(folder, o.Home, place.usual, folder.Path)
			add(folder, o.Getenv(place.variable), folder.Path)
		}
	}
	for _, named := range byVariable {
		add(named.folder, o.Getenv(named.variable))
	}
	if o.System == "windows" {
		return all
	}
	for _, folder := range ofUnix {
		folder.What = ofSystem
		add(folder, folder.Path)
	}
	return all
}

// Trail is one way to a folder, as the disk has it: the folders on it that are there, the
// topmost first, each by a number that every name of that folder has, and the names of the
// rest, which is not there so far.
type Trail struct {
	Folders []int
	Missing []string
}

// holds reports whether the folder at the end of t is that at the end of other, or holds it.
func (t Trail) holds(other Trail) bool {
	if len(t.Folders) == 0 {
		return false
	}
	last := t.Folders[len(t.Folders)-1]
	if len(t.Missing) == 0 {
		for _, folder := range other.Folders {
			if folder == last {
				return true
			}
		}
		return false
	}
	if len(other.Folders) == 0 || other.Folders[len(other.Folders)-1] != last || len(other.Missing) < len(t.Missing) {
		return false
	}
	for i, name := range t.Missing { // in one letter case or the other: the disk cannot be asked
		if !strings.EqualFold(name, other.Missing[i]) {
			return false
		}
	}
	return true
}

// Located is a reserved folder with every way that leads to it: by its own name, and past
// each link. Except are the ways to its exception, none where it has none.
type Located struct {
	Folder
	Ways   []Trail
	Except []Trail
}

// Check refuses a folder in which no job may write, or that holds one, with Denied. path is
// what people read; at is where the folder leads, with all links followed.
func Check(path string, at Trail, folders []Located) error {
	for _, relation := range []string{is, liesIn, contains} { // the nearest reason is told
		for _, folder := range folders {
			for _, way := range folder.Ways {
				if relate(at, way, folder) == relation {
					return refuse(path, relation, folder.Folder)
				}
			}
		}
	}
	return nil
}

// How a folder lies to a reserved one, as a sentence says it.
const (
	is       = "is"
	liesIn   = "lies in"
	contains = "contains"
)

// relate says how a folder and a reserved one lie to each other, "" where a job may write.
func relate(at, way Trail, folder Located) string {
	within, holds := way.holds(at), at.holds(way)
	switch {
	case within && holds:
		return is
	case holds:
		return contains
	case within && !folder.Itself && !isExcepted(at, folder.Except):
		return liesIn
	}
	return ""
}

// isExcepted reports whether a folder lies in the exception; the exception itself does not.
func isExcepted(at Trail, except []Trail) bool {
	for _, way := range except {
		if way.holds(at) && !at.holds(way) {
			return true
		}
	}
	return false
}

// RefuseTop refuses the whole of a disk, which holds more than one knows.
func RefuseTop(path string) error { return refuse(path, is, Folder{Path: path, What: ofSystem}) }

func refuse(path, relation string, folder Folder) error {
	where := relation + " " + folder.Path + ", which holds " + folder.What
	switch {
	case relation == is && folder.What == ofOwner:
		where = "is " + ofOwner
	case relation == is:
		where = "holds " + folder.What
	case folder.What == ofOwner:
		where = relation + " " + folder.Path + ", " + ofOwner
	}
	return bridge.Errorf(bridge.Denied, "no job may write in %s: that folder %s. Name a project's folder, or use access read", path, where)
}
