// Package driver drives the agent CLIs for delegated jobs: it starts each kind
// headless, says in its own protocol what the runner wants, and turns what it
// answers into the events of package job. It judges how a turn ended by what
// each CLI really does, not by whether it calls that a success.
//
// It also knows what each CLI must be able to write when a floor lies below it.
// Its process, environment and book of messages, questions and turns are in
// package run, which all kinds share.
package driver

import (
	"context"
	"path/filepath"
	"strings"

	"bridge/backend/agent/driver/acp"
	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// For returns the driver of a kind; Unsupported for a kind that has none.
func For(kind bridge.AgentKind) (job.Driver, error) {
	start, known := starters[kind]
	if !known {
		return nil, bridge.Errorf(bridge.Unsupported, "no jobs for %s", kind)
	}
	return start, nil
}

// kindDriver starts one kind of CLI. The Spec was checked.
type kindDriver func(job.Spec) (*run.Run, error)

var starters = map[bridge.AgentKind]kindDriver{
	bridge.Claude:      startClaude,
	bridge.Codex:       startCodex,
	bridge.OpenCode:    startOpenCode,
	bridge.Antigravity: startAntigravity,
	job.ACP:            acp.Start,
}

// Start implements job.Driver. It fails with Invalid for an incomplete spec, with Denied
// without the floor that the spec needs, and with Unavailable if the program does not start.
func (start kindDriver) Start(ctx context.Context, spec job.Spec) (job.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := check(spec); err != nil {
		return nil, err
	}
	started, err := start(spec)
	if err != nil {
		return nil, err
	}
	return started, nil
}

func check(spec job.Spec) error {
	switch {
	case spec.Job == "":
		return bridge.Errorf(bridge.Invalid, "a job needs a name")
	case len(spec.Command) == 0 || !filepath.IsAbs(spec.Command[0]):
		return bridge.Errorf(bridge.Invalid, "the %s of job %s is not named by an absolute path", spec.Kind, spec.Job)
	case !filepath.IsAbs(spec.Folder) || !filepath.IsAbs(spec.StateFolder):
		return bridge.Errorf(bridge.Invalid, "the folders of job %s are not absolute", spec.Job)
	case spec.Prompt.ID == "" || strings.TrimSpace(spec.Prompt.Text) == "":
		return bridge.Errorf(bridge.Invalid, "job %s has no prompt", spec.Job)
	}
	switch spec.Access {
	case job.AccessRead, job.AccessAsk, job.AccessEdit:
		return nil
	}
	return bridge.Errorf(bridge.Invalid, "unknown access %q: use read, ask or edit", spec.Access)
}
