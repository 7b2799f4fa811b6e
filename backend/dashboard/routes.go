package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// kind says which guard a route needs.
type kind int

const (
	read     kind = iota // JSON, changes nothing
	stream               // server-sent events
	mutation             // changes something
	page                 // the page's files
	entry                // the launch link: the only way in without a cookie
)

// route is one row of the table. A segment in braces is a variable of the
// path; one that ends in "..." takes the rest.
type route struct {
	method  string
	pattern string
	kind    kind
	handle  func(http.ResponseWriter, *http.Request) error
}

// table is every address of the dashboard, in the order of the specification.
func (d *Dashboard) table() []route {
	return []route{
		{http.MethodGet, "/api/decisions", read, d.decisions.list},
		{http.MethodGet, "/api/decisions/{topic}/history", read, d.decisions.history},
		{http.MethodGet, "/api/decisions/{topic}/notices", read, d.decisions.notices},
		{http.MethodPost, "/api/sessions/{name}/message", mutation, d.chats.messageSession},
		{http.MethodPost, "/api/jobs/{job}/message", mutation, d.chats.messageJob},
		{http.MethodGet, "/api/chat-delivery/{id}", read, d.chats.delivery},
		{http.MethodGet, "/api/state", read, d.states.show},
		{http.MethodGet, "/api/storage", read, d.storage.show},
		{http.MethodGet, "/api/storage/drills", read, d.storage.drills},
		{http.MethodGet, "/api/storage/sizes", read, d.tasks.sizes},
		{http.MethodGet, "/api/storage/work", read, d.tasks.show},
		{http.MethodPost, "/api/storage/work", mutation, d.tasks.start},
		{http.MethodGet, "/api/archive/messages", read, d.messages.searchArchive},
		{http.MethodGet, "/api/search", read, d.messages.search},
		{http.MethodGet, "/api/events", stream, d.events.stream},
		{http.MethodGet, "/api/messages", read, d.messages.list},
		{http.MethodPost, "/api/messages", mutation, d.chats.messageAny},
		{http.MethodGet, "/api/messages/{id}", read, d.messages.show},
		{http.MethodGet, "/api/agents", read, d.agents.show},
		{http.MethodPost, "/api/agents/{kind}/connect", mutation, d.agents.connect},
		{http.MethodPost, "/api/agents/{kind}/disconnect", mutation, d.agents.disconnect},
		{http.MethodGet, "/api/settings", read, d.settings.show},
		{http.MethodPut, "/api/settings", mutation, d.settings.change},
		{http.MethodPost, "/api/open", mutation, d.browser.open},
		{http.MethodGet, "/launch", entry, d.guard.launch},
		{http.MethodGet, "/", page, d.page.index},
		{http.MethodGet, "/assets/{file...}", page, d.page.asset},
	}
}

// match finds the route of r and sets its path values. Without one it returns
// the methods that the path takes, none for an unknown path.
//
// It works on the escaped path, segment by segment, so that a topic may hold
// "/" or be ".."; http.ServeMux would redirect an empty or dotted segment away
// from the handler that refuses it in words.
func match(routes []route, r *http.Request) (*route, []string) {
	segments, ok := splitPath(r.URL)
	if !ok {
		return nil, nil
	}
	var allowed []string
	for i := range routes {
		candidate := &routes[i]
		values, fits := candidate.fit(segments)
		if !fits {
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

// methods lists what the route answers. HEAD is a GET without its body, but not
// where a GET does something (the launch link uses its ticket up) or never ends.
func (rt *route) methods() []string {
	if rt.kind == read || rt.kind == page {
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
