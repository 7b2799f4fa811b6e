package remote

import (
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// Policy is what this PC's owner currently permits other PCs in config.json (RMT-06).
// Missing values deny.
type Policy struct {
	Enabled    bool       // network.enabled
	RemoteJobs RemoteJobs // network.remoteJobs
	Files      Files      // network.files
	// Shares are the names of the paired PCs for each share.
	Shares map[Share][]string
}

// Share is data that the owner shares with other PCs, by its name below network in
// config.json.
type Share string

// The shares in addition to jobs and files.
const (
	ShareMessages  Share = "messages"  // the other PCs may write to sessions here
	ShareDecisions Share = "decisions" // decisions for all sessions are exchanged
	ShareDashboard Share = "dashboard" // the other PCs may see the sessions and jobs here
)

// AllowShare fails with Denied unless that PC has a share. It is called for every
// request.
func (p Policy) AllowShare(share Share, name string) error {
	switch {
	case !p.Enabled:
		return bridge.Errorf(bridge.Denied, "links to other PCs are off here (network.enabled)")
	case !slices.Contains(p.Shares[share], name):
		return bridge.Errorf(bridge.Denied, "%s of %s are not allowed here (network.%s.allowPeers)", shareWords[share], name, share)
	}
	return nil
}

var shareWords = map[Share]string{ShareMessages: "messages", ShareDecisions: "decisions", ShareDashboard: "views"}

// RemoteJobs is network.remoteJobs of config.json.
type RemoteJobs struct {
	Enabled    bool               `json:"enabled"`
	AllowRoots []string           `json:"allowRoots"` // absolute folders
	Agents     []bridge.AgentKind `json:"agents"`
	AllowPeers []string           `json:"allowPeers"` // names of paired PCs
}

// Place is one folder that a job would use, in two forms: as given, and with every link
// resolved.
type Place struct {
	What      string // for the error: "the folder", "its git directory"
	Given     string
	Canonical string
}

// AllowPeer fails with Denied unless that PC may make requests about jobs. It is called
// for every request.
func (p Policy) AllowPeer(name string) error {
	switch {
	case !p.Enabled:
		return bridge.Errorf(bridge.Denied, "links to other PCs are off here (network.enabled)")
	case !p.RemoteJobs.Enabled:
		return bridge.Errorf(bridge.Denied, "jobs for other PCs are off here (network.remoteJobs.enabled)")
	case !slices.Contains(p.RemoteJobs.AllowPeers, name):
		return bridge.Errorf(bridge.Denied, "jobs for %s are not allowed here (network.remoteJobs.allowPeers)", name)
	}
	return nil
}

// AllowAgent fails with Denied unless other PCs may use agents of that kind.
func (p Policy) AllowAgent(kind bridge.AgentKind) error {
	if !slices.Contains(p.RemoteJobs.Agents, kind) {
		return bridge.Errorf(bridge.Denied, "jobs of %s are not allowed for other PCs here (network.remoteJobs.agents)", kind)
	}
	return nil
}

// AllowPlaces fails with Denied unless each folder of a job is within an allowed root,
// in any spelling (RMT-09). roots are the canonical forms of RemoteJobs.AllowRoots, in
// the same order; "" is a missing one. The error names the rule and reveals nothing
// about other folders.
func (p Policy) AllowPlaces(peer string, roots []string, places []Place) error {
	if len(places) == 0 {
		return bridge.Errorf(bridge.Denied, "a job needs a folder")
	}
	for _, place := range places {
		if err := checkSpelling(place.Given); err != nil {
			return err
		}
		within := slices.ContainsFunc(roots, func(root string) bool { return root != "" && IsWithin(root, place.Canonical) })
		if !within {
			return bridge.Errorf(bridge.Denied, "%s is outside the folders that are allowed for %s here (network.remoteJobs.allowRoots)", place.What, peer)
		}
	}
	return nil
}

// checkSpelling refuses ambiguous paths before any link is resolved.
func checkSpelling(path string) error {
	switch {
	case path == "" || !filepath.IsAbs(path):
		return bridge.Errorf(bridge.Denied, "the folder must be an absolute path of this PC")
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return bridge.Errorf(bridge.Denied, "the folder's path has control characters")
	case slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator }), ".."):
		return bridge.Errorf(bridge.Denied, "the folder's path has '..' in it: say where it is")
	}
	return nil
}

// IsWithin reports whether a canonical path is a canonical folder or below it.
func IsWithin(folder, path string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(relative)
}
