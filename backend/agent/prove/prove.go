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

	"bridge/backend/agent"
	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/core/proof"
)

// What a proof is made of: package proof says what it means for people.
type (
	// Route is one way of Bridge into a session.
	Route = proof.Route
	// State is what came of a route.
	State = proof.State
	// Result is what came of one route.
	Result = proof.Result
)

// The routes.
const (
	Connects         = proof.Connects
	StartNote        = proof.StartNote
	MailAtPrompt     = proof.MailAtPrompt
	MailAtTool       = proof.MailAtTool
	MailAtStop       = proof.MailAtStop
	Wake             = proof.Wake
	YourWords        = proof.YourWords
	ToChild          = proof.ToChild
	PermissionPrompt = proof.PermissionPrompt
	DelegatedJob     = proof.DelegatedJob
)

// The states.
const (
	Works      = proof.Works
	Broken     = proof.Broken
	NotTried   = proof.NotTried
	NotOffered = proof.NotOffered
)

// Routes returns all routes, in the order in which they are tried.
func Routes() []Route { return proof.Routes() }

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

// Kinds returns the kinds of agents that can be tried: those with tested versions, whose
// model package scripted can stand in for.
func Kinds() []bridge.AgentKind {
	return slices.DeleteFunc(bridge.Kinds(), func(kind bridge.AgentKind) bool { return agent.Tried(kind) == "" })
}

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
	Kind        bridge.AgentKind
	Program     string        // the agent's, an absolute path
	Bridge      string        // the program bridge, an absolute path
	StepTimeout time.Duration // for each step
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
		fmt.Fprintf(&b, "  %-24s %s\n", route.Route.Title(), resultText(route))
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

func resultText(r Result) string {
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
