// Package connect is how the agent CLIs of this computer come to know a home's
// bridge, and how that is taken back (row MSG-11). The command line and the page
// use it alike: both show a plan, ask, and apply exactly what was shown. What is
// written into which file is package agent's matter.
package connect

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bridge/backend/agent"
	"bridge/backend/agent/programs"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/proc"
)

// Agents are the agent CLIs of this computer, as far as one home goes.
type Agents struct {
	Home   config.Home
	Getenv func(string) string
	// Program is the bridge program that the CLIs are told to start; this one
	// when "".
	Program string
	// Where says where CLIs are looked for; its zero value is this process's own PATH.
	Where agent.Lookup
	// Refusal says why nothing may be connected from here, as in a demo whose home
	// goes away; "" where it may.
	Refusal string
}

// Agent is one agent CLI as lists show it.
type Agent struct {
	Kind      bridge.AgentKind `json:"kind"`
	Found     bool             `json:"found"`
	Path      string           `json:"path"`
	Version   string           `json:"version"`
	Connected bool             `json:"connected"` // Bridge is registered with it
	Detail    string           `json:"detail"`    // a sentence for people, or ""
	Refused   string           `json:"refused"`   // why this version is not connected, "" where it may be
	// Missing says what of a connected agent is not in place any more, or not yet:
	// entries that somebody took out, hooks that are not trusted. Connecting it
	// again mends that.
	Missing []string `json:"missing"`
	// Jobs is set where its sessions may start agents on this PC without a question.
	Jobs bool `json:"jobs"`
}

// List looks for every kind of agent CLI. It starts each that it finds, for its
// version, and so takes a second or two.
func (a Agents) List(ctx context.Context) []Agent {
	standings, err := a.Standings()
	if err != nil {
		standings = nil // they are then shown as not connected
	}
	kinds := bridge.Kinds()
	list := make([]Agent, len(kinds))
	var looks sync.WaitGroup
	for i, kind := range kinds {
		looks.Go(func() {
			at := slices.IndexFunc(standings, func(s Standing) bool { return s.Kind == kind })
			list[i] = a.look(ctx, kind, at >= 0)
			list[i].Jobs = at >= 0 && standings[at].Jobs
		})
	}
	looks.Wait()
	return list
}

func (a Agents) look(ctx context.Context, kind bridge.AgentKind, connected bool) Agent {
	shown := Agent{Kind: kind, Connected: connected, Missing: []string{}}
	found, err := agent.Detect(ctx, kind, a.lookup(kind))
	if err != nil {
		shown.Detail = err.Error()
		return shown
	}
	shown.Found, shown.Path, shown.Version, shown.Detail = true, found.Path, found.Version, found.Note
	if shown.Refused = agent.UnknownLayout(kind, found.Version); shown.Refused != "" {
		shown.Detail = ""
	}
	if connected && shown.Refused == "" {
		shown.Missing = a.missing(ctx, kind, found)
	}
	return shown
}

// missing says what connecting a connected agent again would change.
func (a Agents) missing(ctx context.Context, kind bridge.AgentKind, found agent.Found) []string {
	plan, err := a.plan(ctx, kind, found, setup.Choices{})
	if err != nil {
		return []string{err.Error()}
	}
	missing := []string{}
	for _, edit := range plan.Edits {
		missing = append(missing, edit.Path+" is not as Bridge left it. Connecting it again mends that: "+edit.Adds)
	}
	return append(missing, plan.Notes...)
}

// Plan works out how to connect the CLI of kind. It changes nothing; its code is
// NotFound where there is no such CLI and Conflict where somebody else's entry
// is in the way.
func (a Agents) Plan(ctx context.Context, kind bridge.AgentKind, choices setup.Choices) (setup.Plan, error) {
	if err := a.allowed(); err != nil {
		return setup.Plan{}, err
	}
	if userHome, err := os.UserHomeDir(); err == nil { // else the plan says so
		if err := config.CheckOwner(userHome); err != nil { // before a CLI is started there, which keeps files, too
			return setup.Plan{}, err
		}
	}
	found, err := agent.Detect(ctx, kind, a.lookup(kind))
	if err != nil {
		return setup.Plan{}, err
	}
	return a.plan(ctx, kind, found, choices)
}

func (a Agents) plan(ctx context.Context, kind bridge.AgentKind, found agent.Found, choices setup.Choices) (setup.Plan, error) {
	program, err := proc.ProgramOr(a.Program)
	if err != nil {
		return setup.Plan{}, err
	}
	userHome, err := os.UserHomeDir()
	if err != nil {
		return setup.Plan{}, bridge.Errorf(bridge.Invalid, "there is no user home folder: set HOME")
	}
	in := setup.Input{Home: userHome, Env: a.Getenv, Bridge: program, Hook: proc.Beside(program, "bridge", "bridge-hook"), State: a.state(), CLI: found, Choices: choices}
	if a.Where.Environ != nil {
		in.Environ = a.Where.Environ()
	}
	if !a.Home.IsDefault() {
		in.BridgeHome = a.Home.Dir()
	}
	plan, err := setup.PlanInstall(ctx, kind, in)
	return plan, cmp.Or(err, checkOwner(plan))
}

// checkOwner refuses a plan that would leave files of this user in a folder of another
// user's (RWM-10).
func checkOwner(plan setup.Plan) error {
	for _, edit := range plan.Edits {
		target, err := disk.CanonicalTarget(edit.Path)
		if err == nil {
			err = config.CheckOwner(filepath.Dir(target))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PlanRemoval works out how to take back what connecting the kind changed.
func (a Agents) PlanRemoval(kind bridge.AgentKind) (setup.Plan, error) {
	if err := a.allowed(); err != nil {
		return setup.Plan{}, err
	}
	plan, err := setup.PlanRemoval(kind, a.state())
	return plan, cmp.Or(err, checkOwner(plan))
}

// Connected lists the kinds that are connected to this home.
func (a Agents) Connected() ([]bridge.AgentKind, error) { return setup.Installed(a.state()) }

// Standing is a connected agent CLI, and whether its sessions may start agents on this
// PC without a question (JOB-26).
type Standing struct {
	Kind bridge.AgentKind `json:"kind"`
	Jobs bool             `json:"jobs"`
	// Gone is a program of Bridge's that its settings start and that is not there any
	// more; "" where all are.
	Gone string `json:"gone,omitempty"`
}

// Standings lists the agent CLIs that are connected. It starts none.
func (a Agents) Standings() ([]Standing, error) {
	kinds, err := a.Connected()
	if err != nil {
		return nil, err
	}
	allowed, err := setup.JobsAllowed(a.state())
	if err != nil {
		return nil, err
	}
	gone, err := programs.Gone(a.Home.Dir())
	if err != nil {
		return nil, err
	}
	list := []Standing{}
	for _, kind := range kinds {
		list = append(list, Standing{kind, slices.Contains(allowed, kind), gone[kind]})
	}
	return list, nil
}

// Apply carries a plan out, all of it or nothing. The home is made when this is
// the first use.
func (a Agents) Apply(plan setup.Plan) error {
	if err := a.Home.Ensure(); err != nil {
		return err
	}
	return setup.Apply(plan)
}

// CommandLine is what a person types to run the program on this home: its path,
// the words, and --home where that is not the default one.
func (a Agents) CommandLine(words ...string) string {
	program, err := proc.ProgramOr(a.Program)
	if err != nil {
		program = "bridge"
	}
	return a.Home.CommandLine(program, words...)
}

// Refused says why nothing may be connected from here, "" where it may.
func (a Agents) Refused() string { return a.Refusal }

func (a Agents) allowed() error {
	if a.Refusal == "" {
		return nil
	}
	return bridge.Errorf(bridge.Conflict, "%s", a.Refusal)
}

// state is the folder of the home that holds the copies and the manifest of what
// was connected.
func (a Agents) state() string { return filepath.Join(a.Home.Dir(), "install") }

func (a Agents) lookup(kind bridge.AgentKind) agent.Lookup {
	where := a.Where
	where.Env = a.Getenv
	if settings, err := a.Home.Settings(a.Getenv); err == nil {
		where.Configured = settings.Bin(kind)
	}
	return where
}
