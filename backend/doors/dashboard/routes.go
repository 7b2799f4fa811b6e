package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"bridge/backend/doors/dashboard/guard"
)

// route is one row of the table. A segment in braces is a variable of the
// path; one that ends in "..." takes the rest.
type route struct {
	method  string
	pattern string
	kind    guard.Kind
	handle  func(http.ResponseWriter, *http.Request) error
}

// table returns every route of the dashboard, in the order of the specification.
func (d *Dashboard) table() []route {
	return slices.Concat(d.decisions.routes(), d.networkRoutes(), []route{
		{http.MethodGet, "/api/sessions/ended", guard.Read, d.states.ended},
		{http.MethodPost, "/api/sessions/{name}/message", guard.Mutation, d.chats.messageSession},
		{http.MethodPost, "/api/jobs/{job}/message", guard.Mutation, d.chats.messageJob},
		{http.MethodGet, "/api/chat-delivery/{id}", guard.Read, d.chats.delivery},
		{http.MethodGet, "/api/state", guard.Read, d.states.show},
		{http.MethodGet, "/api/activity", guard.Read, d.activity.Show},
		{http.MethodGet, "/api/activity/hours", guard.Read, d.activity.Hours},
		{http.MethodGet, "/api/cost", guard.Read, d.states.costs},
		{http.MethodGet, "/api/questions", guard.Read, d.queue.List},
		{http.MethodPost, "/api/questions/{id}", guard.Mutation, d.queue.Answer},
		{http.MethodPost, "/api/exchanges", guard.Mutation, d.queue.Exchange},
		{http.MethodGet, "/api/rules", guard.Read, d.queue.ListRules},
		{http.MethodDelete, "/api/rules/{id}", guard.Mutation, d.queue.Revoke},
		{http.MethodPost, "/api/needs/{id}", guard.Mutation, d.queue.Put},
		{http.MethodGet, "/api/runs/{run}", guard.Read, d.runs.Show},
		{http.MethodGet, "/api/runs/{run}/diff", guard.Read, d.runs.Diff},
		{http.MethodGet, "/api/runs/{run}/turns", guard.Read, d.runs.Turns},
		{http.MethodPost, "/api/runs/{run}/comments", guard.Mutation, d.runs.Comment},
		{http.MethodPost, "/api/runs/{run}/finish", guard.Mutation, d.runs.Finish},
		{http.MethodGet, "/api/models", guard.Read, d.runs.Models},
		{http.MethodGet, "/api/usage", guard.Read, d.runs.Usage},
		{http.MethodGet, "/api/usage/kept", guard.Read, d.runs.CachedUsage},
		{http.MethodGet, "/api/approvals", guard.Read, d.runs.ListApprovals},
		{http.MethodPost, "/api/approvals/{id}", guard.Mutation, d.runs.Answer},
		{http.MethodPost, "/api/away", guard.Mutation, d.runs.SetAway},
		{http.MethodPost, "/api/subagents/message", guard.Mutation, d.runs.Message},
		{http.MethodPost, "/api/subagents/settings", guard.Mutation, d.runs.Settings},
		{http.MethodPost, "/api/subagents/cancel", guard.Mutation, d.runs.Cancel},
		{http.MethodGet, "/api/storage", guard.Read, d.storage.Show},
		{http.MethodGet, "/api/storage/drills", guard.Read, d.storage.Drills},
		{http.MethodGet, "/api/storage/sizes", guard.Read, d.tasks.Sizes},
		{http.MethodGet, "/api/storage/work", guard.Read, d.tasks.Show},
		{http.MethodPost, "/api/storage/work", guard.Mutation, d.tasks.Start},
		{http.MethodGet, "/api/archive/messages", guard.Read, d.messages.searchArchive},
		{http.MethodGet, "/api/search", guard.Read, d.messages.search},
		{http.MethodGet, "/api/events", guard.Stream, d.events.stream},
		{http.MethodGet, "/api/messages", guard.Read, d.messages.list},
		{http.MethodPost, "/api/messages", guard.Mutation, d.chats.messageAny},
		{http.MethodGet, "/api/messages/{id}", guard.Read, d.messages.show},
		{http.MethodGet, "/api/agents", guard.Read, d.agents.show},
		{http.MethodGet, "/api/agents/connected", guard.Read, d.agents.connected},
		{http.MethodPost, "/api/agents/{kind}/connect", guard.Mutation, d.agents.connect},
		{http.MethodPost, "/api/agents/{kind}/disconnect", guard.Mutation, d.agents.disconnect},
		{http.MethodGet, "/api/settings", guard.Read, d.settings.show},
		{http.MethodPut, "/api/settings", guard.Mutation, d.settings.change},
		{http.MethodGet, "/api/drafts", guard.Read, d.browser.drafts.List},
		{http.MethodPost, "/api/drafts", guard.Mutation, d.browser.drafts.Set},
		{http.MethodPost, "/api/open", guard.Mutation, d.browser.open},
		{http.MethodGet, "/launch", guard.Entry, d.guard.Launch},
		{http.MethodGet, "/", guard.Page, d.page.index},
		{http.MethodGet, "/assets/{file...}", guard.Page, d.page.asset},
	})
}

// networkRoutes returns the routes of paired PCs and teams.
func (d *Dashboard) networkRoutes() []route {
	return []route{
		{http.MethodGet, "/api/network", guard.Read, d.network.Show},
		{http.MethodGet, "/api/network/lists", guard.Read, d.network.ShowLists},
		{http.MethodPost, "/api/network/invite", guard.Mutation, d.network.Invite},
		{http.MethodDelete, "/api/network/invite", guard.Mutation, d.network.Withdraw},
		{http.MethodPost, "/api/network/link", guard.Mutation, d.network.Link},
		{http.MethodDelete, "/api/network/peers/{id}", guard.Mutation, d.network.Unpair},
		{http.MethodPut, "/api/network/policy", guard.Mutation, d.network.Change},
	}
}

// routes returns the routes of decisions.
func (d decisions) routes() []route {
	return []route{
		{http.MethodGet, "/api/decisions", guard.Read, d.list},
		{http.MethodPost, "/api/decisions", guard.Mutation, d.pin},
		{http.MethodPost, "/api/decisions/{topic}/withdraw", guard.Mutation, d.withdraw},
		{http.MethodGet, "/api/decisions/{topic}/history", guard.Read, d.history},
		{http.MethodGet, "/api/decisions/{topic}/notices", guard.Read, d.notices},
	}
}

// match returns the route of r and sets its path values. Without a route it returns
// the methods of the path, or none for an unknown path.
//
// It compares the escaped path by segments, so that a topic may contain "/" or be
// "..". http.ServeMux would redirect an empty or dotted segment away from the
// handler with the readable refusal.
func match(routes []route, r *http.Request) (*route, []string) {
	segments, ok := splitPath(r.URL)
	if !ok {
		return nil, nil
	}
	var allowed []string
	for i := range routes {
		candidate := &routes[i]
		values, matches := candidate.fit(segments)
		if !matches {
			continue
		}
		methods := candidate.methods()
		if !slices.Contains(methods, r.Method) {
			allowed = append(allowed, methods...)
			continue
		}
		for name, value := range values {
			r.SetPathValue(name, value)
		}
		return candidate, nil
	}
	return nil, allowed
}

// methods returns the methods of the route. HEAD is a GET without its body, but not
// if the GET has an effect (the launch link uses up its ticket) or never ends.
func (rt *route) methods() []string {
	if rt.kind == guard.Read || rt.kind == guard.Page {
		return []string{rt.method, http.MethodHead}
	}
	return []string{rt.method}
}

func splitPath(u *url.URL) ([]string, bool) {
	path, ok := strings.CutPrefix(u.EscapedPath(), "/")
	if !ok {
		return nil, false
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, false
		}
		segments[i] = plain
	}
	return segments, true
}

func (rt *route) fit(segments []string) (map[string]string, bool) {
	values := map[string]string{}
	parts := strings.Split(rt.pattern[1:], "/")
	for i, part := range parts {
		if i >= len(segments) {
			return nil, false
		}
		name, variable := strings.CutPrefix(strings.TrimSuffix(part, "}"), "{")
		if rest, ok := strings.CutSuffix(name, "..."); variable && ok {
			values[rest] = strings.Join(segments[i:], "/")
			return values, true
		}
		if variable {
			values[name] = segments[i]
		} else if part != segments[i] {
			return nil, false
		}
	}
	return values, len(parts) == len(segments)
}
