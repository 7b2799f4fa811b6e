// Package connect connects the agent CLIs of this computer to a home's bridge, and
// disconnects them (row MSG-11). The command line and the page both use it: they
// show a plan, ask, and apply exactly the shown plan. Package setup decides the
// content of the files.
package connect

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bridge/backend/agent"
	"bridge/backend/agent/kinds"
	"bridge/backend/agent/programs"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/proc"
)

// Agents are the agent CLIs of this computer for one home.
type Agents struct {
	Home   config.Home
	Getenv func(string) string
	// Program is the bridge program that the CLIs must start; "" means this one.
	Program string
	// Where controls the search for CLIs; the zero value means this process's own PATH.
	Where agent.Lookup
	// Refusal is why no agent may be connected from here, as in a demo's temporary
	// home; or "".
	Refusal string
}

// Agent is one agent CLI in a list.
type Agent struct {
	Kind      bridge.AgentKind `json:"kind"`
	Found     bool             `json:"found"`
	Path      string           `json:"path"`
	Version   string           `json:"version"`
	Connected bool             `json:"connected"` // Bridge is registered with it
	Detail    string           `json:"detail"`    // a sentence for people, or ""
	Refused   string           `json:"refused"`   // why this version is not connected; "" if it may be
	// Missing lists the missing parts of a connected agent's setup: removed
	// entries, or untrusted hooks. Connecting it again repairs that.
	Missing []string `json:"missing"`
	// Jobs is set if its sessions may start agents on this PC without a question.
	Jobs bool `json:"jobs"`
}

// List searches every kind of agent CLI. It starts each one it finds for its
// version, so it takes a second or two.
func (a Agents) List(ctx context.Context) []Agent {
	standings, err := a.Standings()
	if err != nil {
		standings = nil // they are then listed as not connected
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

// missing returns what a repeated connection of a connected agent would change.
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

// Plan returns the plan that connects the CLI of kind. It changes nothing. It fails
// with NotFound without such a CLI, and with Conflict if a foreign entry is in the
// way.
func (a Agents) Plan(ctx context.Context, kind bridge.AgentKind, choices setup.Choices) (setup.Plan, error) {
	if err := a.allowed(); err != nil {
		return setup.Plan{}, err
	}
	if userHome, err := os.UserHomeDir(); err == nil { // otherwise the plan reports it
		if err := config.CheckOwner(userHome); err != nil { // before a CLI is started there, because it creates files, too
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
	in := setup.Input{Home: userHome, Env: a.Getenv, Bridge: program, Hook: proc.Sibling(program, "bridge", "bridge-hook"), State: a.state(), CLI: found, Choices: choices}
	if a.Where.Environ != nil {
		in.Environ = a.Where.Environ()
	}
	if !a.Home.IsDefault() {
		in.BridgeHome = a.Home.Dir()
	}
	plan, err := kinds.PlanInstall(ctx, kind, in)
	return plan, cmp.Or(err, checkOwner(plan))
}

// checkOwner fails for a plan that would leave this user's files in another user's
// folder (RWM-10).
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

// PlanRemoval returns the plan that reverts the connection of the kind.
func (a Agents) PlanRemoval(kind bridge.AgentKind) (setup.Plan, error) {
	if err := a.allowed(); err != nil {
		return setup.Plan{}, err
	}
	plan, err := setup.PlanRemoval(kind, a.state())
	return plan, cmp.Or(err, checkOwner(plan))
}

// Connected returns the kinds that are connected to this home.
func (a Agents) Connected() ([]bridge.AgentKind, error) { return setup.Installed(a.state()) }

// Standing is a connected agent CLI, and whether its sessions may start agents on this
// PC without a question (JOB-26).
type Standing struct {
	Kind bridge.AgentKind `json:"kind"`
	Jobs bool             `json:"jobs"`
	// Gone is a missing program of Bridge that its settings start, or "".
	Gone string `json:"gone,omitempty"`
}

// Standings returns the connected agent CLIs. It starts none.
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

// Apply executes a plan completely or not at all. It creates the home on first use.
func (a Agents) Apply(plan setup.Plan) error {
	if err := a.Home.Ensure(); err != nil {
		return err
	}
	return setup.Apply(plan)
}

// CommandLine returns the command that a person types to run the program on this
// home: its path, the arguments, and --home unless the home is the default.
func (a Agents) CommandLine(words ...string) string {
	program, err := proc.ProgramOr(a.Program)
	if err != nil {
		program = "bridge"
	}
	return a.Home.CommandLine(program, words...)
}

// Refused returns why no agent may be connected from here, or "".
func (a Agents) Refused() string { return a.Refusal }

func (a Agents) allowed() error {
	if a.Refusal == "" {
		return nil
	}
	return bridge.Errorf(bridge.Conflict, "%s", a.Refusal)
}

// Looked returns the folders of the PATH in which List searches, each once.
func (a Agents) Looked() []string {
	where := a.Where
	where.Env = a.Getenv
	return where.Folders()
}

func (a Agents) state() string { return setup.StateFolder(a.Home.Dir()) }

func (a Agents) lookup(kind bridge.AgentKind) agent.Lookup {
	where := a.Where
	where.Env = a.Getenv
	if settings, err := a.Home.Settings(a.Getenv); err == nil {
		where.Configured = settings.Bin(kind)
	}
	return where
}
