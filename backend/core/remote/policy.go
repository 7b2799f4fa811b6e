package remote

import (
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// Policy is what the owner of this PC allows other PCs, as config.json says it now
// (RMT-06). What is left out is denied.
type Policy struct {
	Enabled    bool       // network.enabled
	RemoteJobs RemoteJobs // network.remoteJobs
	Files      Files      // network.files
	// Shares are the paired PCs, by name, with which each is shared.
	Shares map[Share][]string
}

// Share is something that the owner shares with other PCs, as config.json calls it
// below network.
type Share string

// What can be shared besides jobs and files.
const (
	ShareMessages  Share = "messages"  // they may write to sessions here
	ShareDecisions Share = "decisions" // decisions for all sessions are exchanged
	ShareDashboard Share = "dashboard" // they may see the sessions and jobs here
)

// AllowShare decides whether that PC has a share in something. It is asked on every
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

// Place is one folder that a job would use, in each of its spellings: as it was given,
// and as it is with every link followed.
type Place struct {
	What      string // for the refusal: "the folder", "its git directory"
	Given     string
	Canonical string
}

// AllowPeer decides whether that PC may ask anything about jobs. It is asked on every
// request.
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

// AllowAgent decides whether other PCs may use agents of that kind.
func (p Policy) AllowAgent(kind bridge.AgentKind) error {
	if !slices.Contains(p.RemoteJobs.Agents, kind) {
		return bridge.Errorf(bridge.Denied, "jobs of %s are not allowed for other PCs here (network.remoteJobs.agents)", kind)
	}
	return nil
}

// AllowPlaces decides whether every folder that a job would use lies within one of the
// allowed roots, however it is spelled (RMT-09). roots are the canonical forms of
// RemoteJobs.AllowRoots, in the same order; "" is one that is not there. A refusal
// names the rule and never what else lies anywhere.
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

// checkSpelling refuses paths that say one thing and may mean another, before anybody
// looks where they lead.
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

// IsWithin reports whether a canonical path is a canonical folder, or lies in it.
func IsWithin(folder, path string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(relative)
}
