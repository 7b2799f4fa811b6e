// Package prove tries each route from Bridge into an agent program that is on this PC
// (CAN-01). It takes the owner's own program, an empty home, a broker of its own and a
// scripted model, in namespaces without a network: so it needs no account, and touches
// nothing of the owner's.
package prove

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
)

// Route is one way of Bridge into a session.
type Route string

// The routes, in the order in which they are tried.
const (
	Connects     Route = "connects"       // the session has Bridge's tools, registers, and says who it is
	StartNote    Route = "start-note"     // a new session is told of the decisions in force
	MailAtPrompt Route = "mail-at-prompt" // mail comes with the person's next prompt
	MailAtTool   Route = "mail-at-tool"   // mail comes after a tool call of a running turn
	MailAtStop   Route = "mail-at-stop"   // mail that came during a turn keeps the session going
	Wake         Route = "wake"           // mail starts a turn of an idle session
	YourWords    Route = "your-words"     // the owner's words reach the session, idle or at work
	ToChild      Route = "child"          // the owner's words reach a sub-agent of the session
	// A permission prompt of the session is answered on the page.
	PermissionPrompt Route = "permission-prompt"
	// A job asks, is cancelled and continued, and its result comes once.
	DelegatedJob Route = "job"
)

// Routes returns all routes, in the order in which they are tried.
func Routes() []Route {
	return []Route{Connects, StartNote, MailAtPrompt, MailAtTool, MailAtStop, Wake, YourWords, ToChild, PermissionPrompt, DelegatedJob}
}

// ParseRoute returns the route of that name. It fails with Invalid, and a suggestion, if
// there is none.
func ParseRoute(name string) (Route, error) {
	if slices.Contains(Routes(), Route(name)) {
		return Route(name), nil
	}
	var names []string
	for _, route := range Routes() {
		names = append(names, string(route))
	}
	if like := bridge.Similar(name, names); len(like) > 0 {
		return "", bridge.Errorf(bridge.Invalid, "there is no route %q. Did you mean %s?", name, strings.Join(like, " or "))
	}
	return "", bridge.Errorf(bridge.Invalid, "there is no route %q: use %s", name, strings.Join(names, ", "))
}

var titles = map[Route]string{
	Connects:     "connects",
	StartNote:    "start note",
	MailAtPrompt: "mail at the prompt",
	MailAtTool:   "mail at a tool",
	MailAtStop:   "mail at the stop",
	Wake:         "wake of an idle session",
	YourWords:    "your words",
	ToChild:      "words to a sub-agent",

	PermissionPrompt: "a permission prompt",
	DelegatedJob:     "a job",
}

// Title returns the route's name for people.
func (r Route) Title() string { return titles[r] }

// State is what came of a route.
type State string

// The states.
const (
	Works      State = "works"
	Broken     State = "broken"
	NotTried   State = "not-tried"   // an earlier route is broken, and this one needs it
	NotOffered State = "not-offered" // Bridge has no such route into this kind
)

// Result is what came of one route.
type Result struct {
	Route Route  `json:"route"`
	State State  `json:"state"`
	Step  string `json:"step,omitempty"` // in which a broken route ended
	// Expected is what that step should bring, and Got what it brought.
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	Why      string `json:"why,omitempty"` // it was not tried or is not offered
}

// Report is what came of all routes into one kind of agent.
type Report struct {
	Kind    bridge.AgentKind `json:"kind"`
	Program string           `json:"program"`
	Version string           `json:"version"` // "" if the program did not say it
	Note    string           `json:"note,omitempty"`
	Millis  int64            `json:"millis"` // how long it took
	Routes  []Result         `json:"routes"`
}

// Broken returns the broken routes.
func (r Report) Broken() []Route {
	var broken []Route
	for _, route := range r.Routes {
		if route.State == Broken {
			broken = append(broken, route.Route)
		}
	}
	return broken
}

// Kinds returns the kinds of agents that can be tried: those whose model package scripted
// can stand in for.
func Kinds() []bridge.AgentKind { return []bridge.AgentKind{"claude", "codex", "opencode"} }

// CheckKind fails with Unsupported for a kind that cannot be tried.
func CheckKind(kind bridge.AgentKind) error {
	if slices.Contains(Kinds(), kind) {
		return nil
	}
	return bridge.Errorf(bridge.Unsupported, "Bridge has no scripted model for %s, so it cannot try its routes", kind)
}

// DefaultPatience is how long a step may take.
const DefaultPatience = 30 * time.Second

// Run is one try of all routes of a kind.
type Run struct {
	Kind     bridge.AgentKind
	Program  string        // the agent's, an absolute path
	Bridge   string        // the program bridge, an absolute path
	Patience time.Duration // for each step
	// Only names the routes to try, nil for all. Connects, which each of them needs, is
	// always tried.
	Only []Route
	// Installed is called once Bridge is installed in the home and before the agent
	// starts, so that a test can break a route; nil does nothing.
	Installed func(*scripted.Home) error
}

// chosen returns the routes to try, in their order.
func (r Run) chosen() []Route {
	if len(r.Only) == 0 {
		return Routes()
	}
	return slices.DeleteFunc(Routes(), func(route Route) bool { return route != Connects && !slices.Contains(r.Only, route) })
}

// InsideCommand is the hidden command of bridge that Do starts in namespaces. Its
// arguments are a kind, the agent's program, and the flags --timeout and --route.
const InsideCommand = "prove-inside"

// Answer is what the program in the namespaces prints.
type Answer struct {
	Report Report      `json:"report"`
	Error  string      `json:"error,omitempty"`
	Code   bridge.Code `json:"code,omitempty"`
}

// Text returns the report for people, one line a route.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Kind, bridge.OneLine(r.Program))
	switch {
	case r.Note != "":
		fmt.Fprintf(&b, "  note: %s\n", r.Note)
	case r.Version != "":
		fmt.Fprintf(&b, "  version %s\n", r.Version)
	}
	for _, route := range r.Routes {
		fmt.Fprintf(&b, "  %-24s %s\n", route.Route.Title(), route.words())
		for _, line := range []struct{ name, text string }{{"step", route.Step}, {"expected", route.Expected}, {"got", route.Got}} {
			if line.text != "" {
				fmt.Fprintf(&b, "    %-9s %s\n", line.name+":", strings.ReplaceAll(line.text, "\n", "\n"+strings.Repeat(" ", 14)))
			}
		}
	}
	fmt.Fprintf(&b, "  %s in %s\n", r.verdict(), (time.Duration(r.Millis) * time.Millisecond).Round(100*time.Millisecond))
	return b.String()
}

var stateWords = map[State]string{Works: "works", Broken: "BROKEN", NotTried: "not tried", NotOffered: "not offered"}

func (r Result) words() string {
	if r.Why == "" {
		return stateWords[r.State]
	}
	return stateWords[r.State] + ": " + r.Why
}

func (r Report) verdict() string {
	if broken := len(r.Broken()); broken > 0 {
		return bridge.Counted(broken, "broken route")
	}
	return "all routes work"
}
