package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/reserved"
	"bridge/backend/platform/disk"
)

// Reserved checks the folders of this PC in which no job may write (SEC-09).
type Reserved struct{ owner reserved.Owner }

// ReservedFolders returns the reserved folders of the owner of home h. getenv reads
// the environment of the agents.
func ReservedFolders(h Home, getenv func(string) string) Reserved {
	user, _ := userHomeDir(getenv) // without it, no folder below it can be listed
	return Reserved{reserved.Owner{
		System: runtime.GOOS, Home: user, Bridge: h.dir, Getenv: getenv, Join: filepath.Join, IsAbs: filepath.IsAbs,
	}}
}

// Check fails with Denied if no job may write in folder; the text names the folder
// and the reason. It reads the disk on each call and follows every link.
func (r Reserved) Check(folder string) error {
	if folder == "" {
		return bridge.Errorf(bridge.Denied, "a job that writes needs a folder: name one as cwd")
	}
	canonical, err := disk.CanonicalTarget(folder)
	if err != nil {
		return bridge.Errorf(bridge.Denied, "no job may write in %s: Bridge cannot see where it leads (%s). Name another folder", folder, disk.Reason(err))
	}
	if filepath.Dir(canonical) == canonical {
		return reserved.RefuseTop(folder)
	}
	var seen folders
	at := seen.trail(canonical)
	var located []reserved.Located
	for _, folder := range r.owner.Folders() {
		place := reserved.Located{Folder: folder, Ways: seen.ways(folder.Path)}
		if folder.Except != "" {
			place.Except = seen.ways(filepath.Join(folder.Path, folder.Except))
		}
		located = append(located, place)
	}
	return reserved.Check(folder, at, located)
}

// folders gives each folder a number, the same for every path to it. The system
// compares the folders, so letter case and mounts do not matter.
type folders struct {
	known  []os.FileInfo
	byName map[string]int
}

// none is the number of a missing folder.
const none = -1

// number returns the number of the folder at the path name, with links followed.
func (f *folders) number(name string) int {
	if number, has := f.byName[name]; has {
		return number
	}
	if f.byName == nil {
		f.byName = map[string]int{}
	}
	f.byName[name] = none
	info, err := os.Stat(name)
	if err != nil {
		return none
	}
	for i, other := range f.known {
		if os.SameFile(other, info) {
			f.byName[name] = i
			return i
		}
	}
	f.known = append(f.known, info)
	f.byName[name] = len(f.known) - 1
	return f.byName[name]
}

// trail returns the folders on the path to name.
func (f *folders) trail(name string) (trail reserved.Trail) {
	var names []string
	for at := filepath.Clean(name); ; at = filepath.Dir(at) {
		names = append(names, at)
		if filepath.Dir(at) == at {
			break
		}
	}
	for i := len(names) - 1; i >= 0; i-- {
		number := f.number(names[i])
		if number == none {
			trail.Missing = append(trail.Missing, filepath.Base(names[i]))
			continue
		}
		trail.Folders, trail.Missing = append(trail.Folders, number), nil
	}
	return trail
}

// mostLinks bounds the links followed on the path to one folder, as systems do.
const mostLinks = 40

// ways returns the trails to a folder: by its path, and by its path after each link
// is resolved. A job could replace a link where the link is stored.
func (f *folders) ways(name string) []reserved.Trail {
	ways := []reserved.Trail{f.trail(name)}
	for range mostLinks {
		next := pastLink(name)
		if next == "" {
			break
		}
		name = next
		ways = append(ways, f.trail(name))
	}
	return ways
}

// pastLink returns the path with its first link replaced by the link's target, or
// "" if no part is a link.
func pastLink(name string) string {
	volume := filepath.VolumeName(name)
	at := volume + string(filepath.Separator)
	parts := strings.Split(strings.Trim(filepath.Clean(name[len(volume):]), string(filepath.Separator)), string(filepath.Separator))
	for i, part := range parts {
		link := filepath.Join(at, part)
		target, err := os.Readlink(link)
		if err != nil {
			at = link
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(at, target)
		}
		return filepath.Join(append([]string{target}, parts[i+1:]...)...)
	}
	return ""
}
