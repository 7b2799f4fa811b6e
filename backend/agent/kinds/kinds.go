// Package kinds is the table of the agent kinds' parts that only the broker and the
// commands need: how Bridge changes the settings of a CLI, how it asks the CLI for its
// models, and how it reads the CLI's own store of sessions. The parts themselves are in
// the packages setup, models and clidata, each in files of its kind.
//
// A kind is added by files of its own, and by one line in each of three lists:
//
//   - registered in core/bridge/kinds.go: its traits, which shared code asks for
//   - starters in agent/driver/driver.go: its driver of jobs
//   - table in this file
//
// They are three, because each program links no more than it needs: bridge-hook only the
// traits, bridge-worker also the drivers, and bridge all of them.
//
// docs/adding.md lists the files of an existing kind.
package kinds

import (
	"context"

	"bridge/backend/agent/clidata"
	"bridge/backend/agent/models"
	"bridge/backend/agent/setup"
	"bridge/backend/core/bridge"
)

// parts are the parts of one kind.
type parts struct {
	connector setup.Connector // writes and removes what connects the CLI
	queries   models.Queries  // ask the CLI for its models and its account's limits
	store     clidata.Store   // the zero value if Bridge does not read it
}

// table has the parts of each kind of [bridge.Kinds], one line for each. A test fails for a
// kind that is missing, and for a line with the parts of another kind.
var table = map[bridge.AgentKind]parts{
	bridge.Claude:      {setup.Claude, models.Claude, clidata.Claude},
	bridge.Codex:       {setup.Codex, models.Codex, clidata.Codex},
	bridge.OpenCode:    {setup.OpenCode, models.OpenCode, clidata.OpenCode},
	bridge.Antigravity: {setup.Antigravity, models.Antigravity, clidata.Store{}},
}

// PlanInstall returns the plan that connects the CLI of a kind, as
// [setup.Connector.PlanInstall] does. It also fails with Invalid for a kind that is no
// agent CLI.
func PlanInstall(ctx context.Context, kind bridge.AgentKind, in setup.Input) (setup.Plan, error) {
	found, known := table[kind]
	if !known {
		return setup.Plan{}, bridge.Errorf(bridge.Invalid, "%s is no agent CLI", kind)
	}
	return found.connector.PlanInstall(ctx, in)
}

// QueriesOf returns the queries for a kind's models and for the limits of its account. It
// returns the zero value for a kind that is no agent CLI.
func QueriesOf(kind bridge.AgentKind) models.Queries { return table[kind].queries }

// StoreOf returns the reader of a kind's own store. It returns the zero value, which finds
// nothing, for a kind whose store Bridge does not read.
func StoreOf(kind bridge.AgentKind) clidata.Store { return table[kind].store }
