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

// DefaultLinkPort is where links of other PCs come in, if the owner wants them.
const DefaultLinkPort = 4778

// Network is what config.json says about other PCs (RMT-06). What is left out is off.
type Network struct {
	// Enabled lets paired PCs link with this one.
	Enabled bool `json:"enabled"`
	// Name is what other PCs call this one; empty means the machine's own name.
	Name string `json:"name,omitempty"`
	// Listen are the addresses of this PC at which it can be reached; none means
	// loopback only.
	Listen []string `json:"listen,omitempty"`
	// Port is the port at those addresses.
	Port int `json:"port"`
	// RemoteJobs says who may have jobs done here.
	RemoteJobs remote.RemoteJobs `json:"remoteJobs"`
	// Messages, Decisions and Dashboard say with whom each is shared.
	Messages  Sharing `json:"messages"`
	Decisions Sharing `json:"decisions"`
	Dashboard Sharing `json:"dashboard"`
	// Files says who may send files here, and how much.
	Files remote.Files `json:"files"`
	// Hub is what goes through this PC's team.
	Hub Hub `json:"hub"`
}

// Hub says how this PC speaks to its team.
type Hub struct {
	// Seal seals what it says to one PC, so that the hub's owner cannot read it.
	Seal bool `json:"seal"`
}

// Sharing names the paired PCs with which something is shared.
type Sharing struct {
	AllowPeers []string `json:"allowPeers,omitempty"`
}

// Policy is what other PCs may do here.
func (n Network) Policy() remote.Policy {
	return remote.Policy{Enabled: n.Enabled, RemoteJobs: n.RemoteJobs, Files: n.Files, Shares: map[remote.Share][]string{
		remote.ShareMessages: n.Messages.AllowPeers, remote.ShareDecisions: n.Decisions.AllowPeers, remote.ShareDashboard: n.Dashboard.AllowPeers,
	}}
}

// Addresses are where links are listened for.
func (n Network) Addresses() []string {
	if len(n.Listen) == 0 {
		return []string{"127.0.0.1"}
	}
	return n.Listen
}

// May is what that PC may do here, were it paired, or as one of that team, "" for none.
func (n Network) May(name, team string, access job.Access) remote.May {
	listed := func(peers []string) bool { return slices.Contains(peers, name) }
	jobs := n.RemoteJobs
	return remote.May{
		Linked: n.Enabled, Jobs: jobs.Enabled && access != "" && listed(jobs.AllowPeers), Roots: jobs.AllowRoots, Agents: jobs.Agents, Access: access,
		Messages: listed(n.Messages.AllowPeers), Decisions: listed(n.Decisions.AllowPeers) || n.SharesWith(team), Dashboard: listed(n.Dashboard.AllowPeers), Files: listed(n.Files.AllowPeers),
	}
}

// SharesWith reports whether decisions are shared with that whole team, "" for none.
func (n Network) SharesWith(team string) bool {
	return team != "" && slices.Contains(n.Decisions.AllowPeers, remote.TeamShare(team))
}

// Teams are those with which decisions are shared, each once.
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

// Names are those of the PCs that are allowed anything, each once.
func (n Network) Names() []string {
	names := slices.Concat(n.RemoteJobs.AllowPeers, n.Messages.AllowPeers, n.Decisions.AllowPeers, n.Dashboard.AllowPeers, n.Files.AllowPeers)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, remote.TeamMark) })
	slices.Sort(names)
	return slices.Compact(names)
}

// Without allows a PC of that name nothing.
func (n Network) Without(name string) Network {
	for _, list := range []*[]string{
		&n.RemoteJobs.AllowPeers, &n.Messages.AllowPeers, &n.Decisions.AllowPeers, &n.Dashboard.AllowPeers, &n.Files.AllowPeers,
	} {
		*list = Listed(*list, name, false)
	}
	return n
}

// Listed has the name in the list, or not; the list that it gets stays as it is, also
// where there is nothing to change.
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

// check names the first value of the network's settings that cannot be meant.
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
	for _, shared := range []struct {
		member string
		peers  []string
	}{
		{"remoteJobs", n.RemoteJobs.AllowPeers},
		{"messages", n.Messages.AllowPeers},
		{"decisions", n.Decisions.AllowPeers},
		{"dashboard", n.Dashboard.AllowPeers},
		{"files", n.Files.AllowPeers},
	} {
		for _, name := range shared.peers {
			if team, is := strings.CutPrefix(name, remote.TeamMark); is && shared.member == "decisions" {
				name = team
			}
			if err := remote.CheckName(name); err != nil {
				return fmt.Errorf("network.%s.allowPeers: %w", shared.member, err)
			}
		}
	}
	return nil
}
