package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/job"
	"bridge/backend/core/remote"
)

// DefaultLinkPort is the port for links of other PCs, if the owner enables them.
const DefaultLinkPort = 4778

// Network holds the settings for other PCs in config.json (RMT-06). Missing settings mean off.
type Network struct {
	// Enabled lets paired PCs connect to this one.
	Enabled bool `json:"enabled"`
	// Name is this PC's name for other PCs; empty means the machine's own name.
	Name string `json:"name,omitempty"`
	// Listen lists the addresses of this PC that accept links; none means loopback
	// only.
	Listen []string `json:"listen,omitempty"`
	// Port is the port at those addresses.
	Port int `json:"port"`
	// RemoteJobs controls which PCs may run jobs here.
	RemoteJobs remote.RemoteJobs `json:"remoteJobs"`
	// Messages, Decisions and Dashboard list the PCs that share each.
	Messages  Sharing `json:"messages"`
	Decisions Sharing `json:"decisions"`
	Dashboard Sharing `json:"dashboard"`
	// Files controls which PCs may send files here, and how much.
	Files remote.Files `json:"files"`
	// Hub controls the traffic through this PC's team.
	Hub Hub `json:"hub"`
}

// Hub controls how this PC communicates with its team.
type Hub struct {
	// Seal encrypts traffic to one PC, so that the hub's owner cannot read it.
	Seal bool `json:"seal"`
}

// Sharing lists the paired PCs of one kind of sharing.
type Sharing struct {
	AllowPeers []string `json:"allowPeers,omitempty"`
}

// AllowList is the list of the PCs with one permission here.
type AllowList struct {
	Permission string    // the word of `bridge allow`: "jobs"
	Member     string    // of network in config.json: "remoteJobs"
	Peers      *[]string // points into the settings
}

// AllowLists returns the lists of n, one for each permission. A caller can change them.
func (n *Network) AllowLists() []AllowList {
	return []AllowList{
		{"messages", "messages", &n.Messages.AllowPeers},
		{"decisions", "decisions", &n.Decisions.AllowPeers},
		{"dashboard", "dashboard", &n.Dashboard.AllowPeers},
		{"files", "files", &n.Files.AllowPeers},
		{"jobs", "remoteJobs", &n.RemoteJobs.AllowPeers},
	}
}

// Policy returns the permissions of other PCs here.
func (n Network) Policy() remote.Policy {
	return remote.Policy{Enabled: n.Enabled, RemoteJobs: n.RemoteJobs, Files: n.Files, Shares: map[remote.Share][]string{
		remote.ShareMessages: n.Messages.AllowPeers, remote.ShareDecisions: n.Decisions.AllowPeers, remote.ShareDashboard: n.Dashboard.AllowPeers,
	}}
}

// Addresses returns the addresses on which this PC accepts links.
func (n Network) Addresses() []string {
	if len(n.Listen) == 0 {
		return []string{"127.0.0.1"}
	}
	return n.Listen
}

// May returns the permissions of that PC, if it were paired. team is its team, or "".
func (n Network) May(name, team string, access job.Access) remote.May {
	listed := func(peers []string) bool { return slices.Contains(peers, name) }
	jobs := n.RemoteJobs
	return remote.May{
		Linked: n.Enabled, Jobs: jobs.Enabled && access != "" && listed(jobs.AllowPeers), Roots: jobs.AllowRoots, Agents: jobs.Agents, Access: access,
		Messages: listed(n.Messages.AllowPeers), Decisions: listed(n.Decisions.AllowPeers) || n.SharesWith(team), Dashboard: listed(n.Dashboard.AllowPeers), Files: listed(n.Files.AllowPeers),
	}
}

// SharesWith reports whether decisions are shared with that whole team; false for "".
func (n Network) SharesWith(team string) bool {
	return team != "" && slices.Contains(n.Decisions.AllowPeers, remote.TeamShare(team))
}

// Teams returns the teams that share decisions, sorted and without duplicates.
func (n Network) Teams() []string {
	teams := []string{}
	for _, name := range n.Decisions.AllowPeers {
		if team, is := strings.CutPrefix(name, remote.TeamMark); is {
			teams = append(teams, team)
		}
	}
	slices.Sort(teams)
	return slices.Compact(teams)
}

// Names returns the PCs with any permission, sorted and without duplicates.
func (n Network) Names() []string {
	var names []string
	for _, list := range n.AllowLists() {
		names = append(names, *list.Peers...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, remote.TeamMark) })
	slices.Sort(names)
	return slices.Compact(names)
}

// Without returns the settings without any permission for the PC of that name.
func (n Network) Without(name string) Network {
	for _, list := range n.AllowLists() {
		*list.Peers = Listed(*list.Peers, name, false)
	}
	return n
}

// Listed returns the list with or without the name. It does not change the given
// list, and returns it if there is nothing to change.
func Listed(list []string, name string, listed bool) []string {
	switch is := slices.Contains(list, name); {
	case is == listed:
		return list
	case listed:
		return append(slices.Clone(list), name)
	default:
		return slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == name })
	}
}

// check returns an error that names the first invalid network setting.
func (n Network) check() error {
	if n.Name != "" {
		if err := remote.CheckName(n.Name); err != nil {
			return fmt.Errorf("network.name: %w", err)
		}
	}
	if n.Port < 0 || n.Port > 65535 {
		return fmt.Errorf("network.port must be between 0 and 65535, not %d", n.Port)
	}
	for _, address := range n.Listen {
		if net.ParseIP(address) == nil {
			return fmt.Errorf("network.listen must name addresses of this PC such as 192.168.1.20, not %q", address)
		}
	}
	for _, root := range n.RemoteJobs.AllowRoots {
		if !filepath.IsAbs(root) {
			return fmt.Errorf("network.remoteJobs.allowRoots must be absolute folders: %q is not", root)
		}
	}
	for _, kind := range n.RemoteJobs.Agents {
		if !slices.Contains(remote.Agents(), kind) {
			return fmt.Errorf("network.remoteJobs.agents: there are no remote jobs of %q, only of %v", kind, remote.Agents())
		}
	}
	if err := n.Files.Check(); err != nil {
		return err
	}
	for _, list := range n.AllowLists() {
		for _, name := range *list.Peers {
			if team, is := strings.CutPrefix(name, remote.TeamMark); is && list.Member == "decisions" {
				name = team
			}
			if err := remote.CheckName(name); err != nil {
				return fmt.Errorf("network.%s.allowPeers: %w", list.Member, err)
			}
		}
	}
	return nil
}
