// Package proof holds what Bridge knows of the routes into one version of an agent: which
// of them work, since which version a broken one is broken, and what that means for people
// (CAN-02). It decides which versions are still to be proven. It does no I/O.
package proof

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

// Title returns the route's name for people.
func (r Route) Title() string { return texts[r].title }

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
	// Since is the first version in which a broken route was broken, and Worked the last
	// one before in which it worked. Both are "" if they are unknown.
	Since  string `json:"since,omitempty"`
	Worked string `json:"worked,omitempty"`
}

// Proof is what came of all routes into one version of a kind.
type Proof struct {
	Kind    bridge.AgentKind  `json:"kind"`
	Version string            `json:"version"`
	At      bridge.UnixMillis `json:"at"`
	// Problem is why the routes could not be tried, "" if they were.
	Problem string   `json:"problem,omitempty"`
	Routes  []Result `json:"routes"`
}

// Broken returns the broken routes, in their order.
func (p Proof) Broken() (broken []Result) {
	for _, result := range p.Routes {
		if result.State == Broken {
			broken = append(broken, result)
		}
	}
	return broken
}

// Faults are the broken routes of one version, each with the version since which it is.
type Faults map[Route]string

// Faults returns the broken routes.
func (p Proof) Faults() Faults {
	faults := Faults{}
	for _, result := range p.Broken() {
		faults[result.Route] = result.Since
	}
	return faults
}

// Has reports whether all of these routes are broken.
func (f Faults) Has(routes ...Route) bool {
	for _, route := range routes {
		if _, isBroken := f[route]; !isBroken {
			return false
		}
	}
	return true
}

// HasNew reports whether a route of p is broken that is not among the known faults.
func (p Proof) HasNew(known Faults) bool {
	return slices.ContainsFunc(p.Broken(), func(r Result) bool { return !known.Has(r.Route) })
}

// Confirm returns what two tries of one version found together. The better state of each
// route counts, because a busy PC can break a try by slowness: a route is broken only if
// both tries found it broken. If the second try could not run, or if it leaves open what the
// first one found broken, the result has a problem, and nothing in it is broken.
func Confirm(first, second Proof) Proof {
	if second.Problem != "" {
		problem := "the first try found a broken route, and the second one could not run: " + second.Problem
		return Proof{Kind: first.Kind, Version: first.Version, At: second.At, Problem: problem}
	}
	both := Proof{Kind: first.Kind, Version: first.Version, At: second.At, Routes: []Result{}}
	var open []string
	for _, route := range Routes() {
		a, inFirst := first.result(route)
		b, inSecond := second.result(route)
		if !inFirst && !inSecond {
			continue
		}
		result := better(a, b)
		if result.State == NotTried && (a.State == Broken || b.State == Broken) {
			open = append(open, route.Title())
		}
		both.Routes = append(both.Routes, result)
	}
	if len(open) > 0 && len(both.Broken()) == 0 {
		both.Problem = "one of two tries found this broken, and the other one did not reach it: " + strings.Join(open, ", ")
	}
	return both
}

// result returns what came of a route, and whether p knows it. An unknown one is not tried.
func (p Proof) result(route Route) (Result, bool) {
	i := slices.IndexFunc(p.Routes, func(r Result) bool { return r.Route == route })
	if i < 0 {
		return Result{Route: route, State: NotTried, Why: "one of two tries did not reach it"}, false
	}
	return p.Routes[i], true
}

// better returns the result with the better state, or b if they are the same.
func better(a, b Result) Result {
	order := []State{Works, NotOffered, NotTried, Broken}
	if slices.Index(order, a.State) < slices.Index(order, b.State) {
		return a
	}
	return b
}

// keptVersions is how many versions of a kind stay known.
const keptVersions = 12

// Retry is the time after which routes that could not be tried are tried again.
const Retry = 24 * time.Hour

// Find returns the proof of a version of a kind, and whether there is one.
func Find(proofs []Proof, kind bridge.AgentKind, version string) (Proof, bool) {
	for _, p := range proofs {
		if p.Kind == kind && p.Version == version {
			return p, true
		}
	}
	return Proof{}, false
}

// Newest returns the proof of a kind that was made last, and whether there is one.
func Newest(proofs []Proof, kind bridge.AgentKind) (newest Proof, found bool) {
	for _, p := range proofs {
		if p.Kind == kind && (!found || p.At >= newest.At) {
			newest, found = p, true
		}
	}
	return newest, found
}

// IsDue reports whether the routes of a version are to be tried: they have no proof yet, or a
// day has passed since they could not be tried.
func IsDue(proofs []Proof, kind bridge.AgentKind, version string, now time.Time) bool {
	p, found := Find(proofs, kind, version)
	if !found {
		return true
	}
	return p.Problem != "" && now.Sub(time.UnixMilli(p.At)) >= Retry
}

// Record returns the proofs with p, which replaces an earlier one of its version. It fills
// in since which version a broken route is broken. A p that could not be tried replaces no
// results. The oldest proofs of a kind with many versions are left out.
func Record(proofs []Proof, p Proof) []Proof {
	earlier, found := Find(proofs, p.Kind, p.Version)
	if found && p.Problem != "" && earlier.Problem == "" {
		return proofs
	}
	rest := slices.DeleteFunc(slices.Clone(proofs), func(other Proof) bool { return other.Kind == p.Kind && other.Version == p.Version })
	p.Routes = append([]Result{}, p.Routes...)
	for i := range p.Routes {
		p.Routes[i].Since, p.Routes[i].Worked = "", ""
		if p.Routes[i].State == Broken {
			p.Routes[i].Since, p.Routes[i].Worked = history(rest, p, p.Routes[i].Route)
		}
	}
	rest = append(rest, p)
	slices.SortStableFunc(rest, func(a, b Proof) int { return cmp.Compare(a.At, b.At) })
	extra := -keptVersions
	for _, other := range rest {
		if other.Kind == p.Kind {
			extra++
		}
	}
	return slices.DeleteFunc(rest, func(other Proof) bool {
		if other.Kind != p.Kind || extra <= 0 {
			return false
		}
		extra--
		return true
	})
}

// history returns the first version in which a route was broken, and the last one before
// in which it worked. The newest proof that tried the route decides.
func history(proofs []Proof, p Proof, route Route) (since, worked string) {
	var last Result
	version, at := "", bridge.UnixMillis(-1)
	for _, other := range proofs {
		for _, result := range other.Routes {
			isTried := result.State == Works || result.State == Broken
			if other.Kind == p.Kind && result.Route == route && isTried && other.At > at && other.At <= p.At {
				last, version, at = result, other.Version, other.At
			}
		}
	}
	switch last.State {
	case Works:
		return p.Version, version
	case Broken:
		return last.Since, last.Worked
	default:
		return p.Version, ""
	}
}

// Summary is the part of a proof that people see.
type Summary struct {
	Kind    bridge.AgentKind  `json:"kind"`
	Version string            `json:"version"`
	At      bridge.UnixMillis `json:"at"`
	Problem string            `json:"problem"` // why the routes could not be tried, "" if they were
	Broken  []BrokenRoute     `json:"broken"`
}

// BrokenRoute is a broken route in a Summary.
type BrokenRoute struct {
	Route Route  `json:"route"`
	Since string `json:"since"` // the first version in which it was broken
	// Worked is the last version before in which it worked, "" if unknown.
	Worked string `json:"worked"`
	Text   string `json:"text"` // what is broken since when, and what that means
}

// Sum returns the summary of a proof.
func (p Proof) Sum() Summary {
	sum := Summary{Kind: p.Kind, Version: p.Version, At: p.At, Problem: p.Problem, Broken: []BrokenRoute{}}
	for _, result := range p.Broken() {
		sum.Broken = append(sum.Broken, BrokenRoute{Route: result.Route, Since: result.Since, Worked: result.Worked, Text: result.Text()})
	}
	return sum
}

// Text returns the texts of the broken routes as sentences, or "" for none.
func (s Summary) Text() string {
	lines := make([]string, len(s.Broken))
	for i, broken := range s.Broken {
		lines[i] = broken.Sentence()
		if broken.Worked != "" {
			lines[i] += " It worked in " + broken.Worked + "."
		}
	}
	return strings.Join(lines, " ")
}

// Sentence returns the text of a broken route as a sentence.
func (b BrokenRoute) Sentence() string {
	first, size := utf8.DecodeRuneInString(b.Text)
	return string(unicode.ToUpper(first)) + b.Text[size:] + "."
}

// Text returns which route is broken, since which version, and what that means.
func (r Result) Text() string {
	about := texts[r.Route]
	text := about.broken + " broken"
	if r.Since != "" {
		text += " since " + r.Since
	}
	return text + ": " + about.means
}

// about holds the texts about a route.
type about struct {
	title  string
	broken string // with its verb, before "broken"
	means  string // what it means that it is broken
}

var texts = map[Route]about{
	Connects:     {"connects", "the connection is", "sessions get no mail and none of Bridge's tools"},
	StartNote:    {"start note", "the start note is", "new sessions are not told of your decisions"},
	MailAtPrompt: {"mail at the prompt", "mail at the prompt is", "mail waits for a tool call or the end of a turn"},
	MailAtTool:   {"mail at a tool", "mail at a tool is", "mail waits for the end of the turn or the next prompt"},
	MailAtStop:   {"mail at the stop", "mail at the stop is", "mail that comes late in a turn waits for the next prompt"},
	Wake:         {"wake of an idle session", "wake is", "mail waits for the next prompt"},
	YourWords:    {"your words", "the way of your words is", "your words may come late, so type them in the terminal"},
	ToChild:      {"words to a sub-agent", "the way to sub-agents is", "send a note to their session"},

	PermissionPrompt: {"a permission prompt", "the answer to a permission prompt is", "answer in the terminal"},
	DelegatedJob:     {"a job", "the way of jobs is", "jobs with this agent may fail"},
}
