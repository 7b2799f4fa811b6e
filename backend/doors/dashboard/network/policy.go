package network

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/doors/dashboard/httpjson"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc/api"
)

// policyRequest is the body of PUT /api/network/policy. Omitted members stay unchanged.
type policyRequest struct {
	// Revision is the revision of the config.json that the change is based on.
	Revision string `json:"revision"`
	// DryRun saves nothing.
	DryRun      bool                `json:"dryRun"`
	Enabled     *bool               `json:"enabled"`
	Name        *string             `json:"name"`
	Listen      *[]string           `json:"listen"`
	JobsEnabled *bool               `json:"jobsEnabled"`
	Roots       *[]string           `json:"allowRoots"`
	Agents      *[]bridge.AgentKind `json:"agents"`
	Peers       []peerRequest       `json:"peers"`
	// Team holds the permissions of this PC's whole team.
	Team *teamRequest `json:"team"`
	// Forget lists names without a paired PC, or @ with the name of another team:
	// they lose all permissions.
	Forget []string `json:"forget"`
}

// peerRequest holds the permissions of a paired PC.
type peerRequest struct {
	ID        string `json:"id"`
	Jobs      *bool  `json:"jobs"`
	Messages  *bool  `json:"messages"`
	Decisions *bool  `json:"decisions"`
	Dashboard *bool  `json:"dashboard"`
	Files     *bool  `json:"files"`
}

// Change answers PUT /api/network/policy (RMT-06) with descriptions of the changes
// and the new network. Saved changes apply from the next request.
func (n *Network) Change(w http.ResponseWriter, r *http.Request) error {
	var request policyRequest
	if err := httpjson.ReadJSON(w, r, &request); err != nil {
		return err
	}
	if request.Revision == "" {
		return bridge.Errorf(bridge.Invalid, "revision is missing: it names the config.json that is to be changed, as GET /api/network tells it")
	}
	if err := n.ready(); err != nil {
		return err
	}
	n.opts.Changing.Lock()
	defer n.opts.Changing.Unlock()
	present, err := n.opts.Peering.Network()
	if err != nil {
		return err
	}
	edit, err := n.opts.Settings.Plan(request.Revision, func(c *config.Config) error {
		return request.applyTo(&c.Network, present, n.opts.Folders)
	})
	if err != nil {
		return err
	}
	plan := dto.NetworkPlan{Saved: !request.DryRun, Changes: changes(present, edit.Before, edit.After), Warnings: n.warnings(edit.After)}
	after, revision := edit.After, request.Revision
	if !request.DryRun {
		if err := edit.Save(); err != nil {
			return err
		}
		n.opts.Peering.Refresh()
		if after, revision, err = n.opts.Settings.Read(); err != nil {
			return err
		}
		if present, err = n.opts.Peering.Network(); err != nil {
			return err
		}
	}
	plan.Network = n.toDTO(present, after, revision)
	return httpjson.WriteJSON(w, plan)
}

// applyTo makes the change. It replaces lists and never modifies them, because the
// previous settings share them.
func (p policyRequest) applyTo(network *config.Network, present api.Network, folders Folders) error {
	set(&network.Enabled, p.Enabled)
	set(&network.Name, p.Name)
	set(&network.RemoteJobs.Enabled, p.JobsEnabled)
	if p.Listen != nil {
		network.Listen = replaced(network.Listen, *p.Listen)
	}
	if p.Agents != nil {
		network.RemoteJobs.Agents = replaced(network.RemoteJobs.Agents, *p.Agents)
	}
	if p.Roots != nil {
		roots, err := folders.check(network.RemoteJobs.AllowRoots, *p.Roots)
		if err != nil {
			return err
		}
		network.RemoteJobs.AllowRoots = replaced(network.RemoteJobs.AllowRoots, roots)
	}
	for _, peer := range p.Peers {
		pc, err := find(present.Peers, peer.ID)
		if err != nil {
			return err
		}
		peer.applyTo(network, pc.Name)
	}
	if p.Team != nil {
		if err := p.Team.applyTo(network, present.Team); err != nil {
			return err
		}
	}
	for _, name := range p.Forget {
		if present.Team != nil && name == remote.TeamShare(present.Team.Team) {
			return bridge.Errorf(bridge.Conflict, "this PC is in the team %s by now: what is shared with it is changed under its name", present.Team.Team)
		}
		if slices.ContainsFunc(present.Peers, func(pc api.PC) bool { return pc.Name == name }) {
			return bridge.Errorf(bridge.Conflict, "a PC named %q is paired by now: what it may do is changed under its name", name)
		}
		*network = network.Without(name)
	}
	return nil
}

// teamRequest holds the permissions of a whole team. It names the team, because
// this PC may be in another one by now.
type teamRequest struct {
	Team      string `json:"team"`
	Decisions *bool  `json:"decisions"`
	// Seal encrypts this PC's traffic to each member; it is not a permission.
	Seal *bool `json:"seal"`
}

func (t teamRequest) applyTo(network *config.Network, present *api.Team) error {
	if t.Team == "" || present == nil || present.Team != t.Team {
		return bridge.Errorf(bridge.Conflict, "this PC is not in a team %q: it has left it, or never joined it", t.Team)
	}
	set(&network.Hub.Seal, t.Seal)
	if t.Decisions != nil {
		network.Decisions.AllowPeers = config.Listed(network.Decisions.AllowPeers, remote.TeamShare(t.Team), *t.Decisions)
	}
	return nil
}

func (p peerRequest) applyTo(network *config.Network, name string) {
	may := map[string]*bool{"messages": p.Messages, "decisions": p.Decisions, "dashboard": p.Dashboard, "files": p.Files, "jobs": p.Jobs}
	for _, list := range network.AllowLists() {
		if allows := may[list.Permission]; allows != nil {
			*list.Peers = config.Listed(*list.Peers, name, *allows)
		}
	}
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// replaced returns the list without duplicates. It keeps an unset list unset
// instead of empty, so that nothing is written for it.
func replaced[T comparable](before, after []T) []T {
	if len(before) == 0 && len(after) == 0 {
		return before
	}
	list := []T{}
	for _, item := range after {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// changes describes the changes for this PC and for each paired one.
func changes(present api.Network, before, after config.Config) []dto.NetworkChange {
	found := []dto.NetworkChange{}
	add := func(name, was, is string) {
		if was != is {
			found = append(found, dto.NetworkChange{Name: name, Before: was, After: is})
		}
	}
	teamWas, teamIs := teamWords(present, before.Network), teamWords(present, after.Network)
	shared := teamWas != teamIs
	if present.Team != nil && before.Network.Hub != after.Network.Hub {
		teamWas, teamIs = teamWas+" "+sealWords(before.Network), teamIs+" "+sealWords(after.Network)
	}
	add(teamName(present), teamWas, teamIs)
	for _, pc := range present.Peers {
		team := present.TeamOf(pc)
		own := func(c config.Config) string { return c.Network.May(pc.Name, "", c.Jobs.MaxAccess).Words(pc.Name) }
		if team != "" && shared && own(before) == own(after) {
			continue // the change for all of them is listed once
		}
		add(pc.Name, before.Network.May(pc.Name, team, before.Jobs.MaxAccess).Words(pc.Name), after.Network.May(pc.Name, team, after.Jobs.MaxAccess).Words(pc.Name))
	}
	for _, name := range before.Network.Names() {
		if !slices.Contains(after.Network.Names(), name) && !slices.ContainsFunc(present.Peers, func(pc api.PC) bool { return pc.Name == name }) {
			add(name, "A PC that pairs as "+name+" would be allowed something at once.", "A PC that pairs as "+name+" is allowed nothing.")
		}
	}
	for _, team := range before.Network.Teams() {
		if !slices.Contains(after.Network.Teams(), team) && remote.TeamShare(team) != teamName(present) {
			add(remote.TeamShare(team), "Were this PC to join a team named "+team+", decisions would be shared with all of it at once.", "A team named "+team+" shares nothing.")
		}
	}
	was, is := openWords(before.Network), openWords(after.Network)
	if before.Network.Name != after.Network.Name {
		is += " " + nameWords(after.Network.Name)
	}
	add("", was, is)
	return found
}

// teamName names the team among the changes; teamWords describes what it shares, or is "".
func teamName(present api.Network) string {
	if present.Team == nil {
		return ""
	}
	return remote.TeamShare(present.Team.Team)
}

func teamWords(present api.Network, settings config.Network) string {
	if present.Team == nil || present.Team.Team == "" {
		return ""
	}
	return remote.TeamWords(present.Team.Team, settings.Enabled, settings.SharesWith(present.Team.Team))
}

// sealWords describes who can read this PC's traffic to one other member.
func sealWords(settings config.Network) string {
	if settings.Hub.Seal {
		return "What this PC says to another one of the team only that one can read; to a PC that cannot open it, because its Bridge is older, nothing goes."
	}
	return "Whoever runs what carries the team's words can read what this PC says to another one."
}

func nameWords(name string) string {
	if name == "" {
		return "Other PCs know it by the name of this machine."
	}
	return "Other PCs that pair from now on know it as " + name + "."
}

// openWords describes whether and where other PCs reach this one.
func openWords(n config.Network) string {
	if !n.Enabled {
		return "Links with other PCs are off."
	}
	port := fmt.Sprintf("port %d", n.Port)
	if n.Port == 0 {
		port = "any free port"
	}
	where := strings.Join(n.Addresses(), ", ")
	if isLocal(doors(n)) {
		return fmt.Sprintf("Links are on, at %s (%s): no other PC can call this one, it calls them.", where, port)
	}
	return fmt.Sprintf("Links are on: paired PCs can call this one at %s (%s).", where, port)
}

// doors returns host:port of each address.
func doors(n config.Network) []string {
	var list []string
	for _, address := range n.Addresses() {
		list = append(list, net.JoinHostPort(address, strconv.Itoa(n.Port)))
	}
	return list
}

// readWarning is shown whenever another PC may run jobs.
const readWarning = "The agent of such a job runs as you: it can read your other files, too, and what it answers goes to the PC that asked."

// warnings returns sentences about the allowed permissions.
func (n *Network) warnings(c config.Config) []string {
	list := []string{}
	for _, root := range c.Network.RemoteJobs.AllowRoots {
		if warning := n.opts.Folders.warning(root); warning != "" {
			list = append(list, warning)
		}
	}
	jobs := c.Network.RemoteJobs
	if c.Network.Enabled && jobs.Enabled && len(jobs.AllowPeers) > 0 && len(jobs.Agents) > 0 && len(jobs.AllowRoots) > 0 {
		list = append(list, readWarning)
	}
	if slices.ContainsFunc(c.Network.Listen, func(address string) bool { return strings.Trim(address, "0:.") == "" }) {
		list = append(list, "This PC listens at all of its addresses, also in networks that you join later. Only paired PCs get past the first handshake.")
	}
	return list
}

func (n *Network) policyShape(c config.Config, revision string) dto.NetworkPolicy {
	network := c.Network
	wire := dto.NetworkPolicy{
		Revision: revision, Listen: dto.List(network.Listen), Port: network.Port, Own: dto.List(n.opts.Peering.OwnAddresses()),
		JobsEnabled: network.RemoteJobs.Enabled, Roots: []dto.JobRoot{}, Agents: dto.List(network.RemoteJobs.Agents),
		Kinds: remote.Agents(), MaxAccess: c.Jobs.MaxAccess, Unpaired: []string{}, OtherTeams: []string{},
	}
	if !c.Jobs.Enabled {
		wire.JobsOff = "Delegated jobs are off on this PC (jobs.enabled in config.json), so none starts for another PC."
	}
	for _, root := range network.RemoteJobs.AllowRoots {
		wire.Roots = append(wire.Roots, dto.JobRoot{Path: root, Warning: n.opts.Folders.warning(root)})
	}
	return wire
}
