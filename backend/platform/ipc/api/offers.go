package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// AgentArgs names one agent kind, or none for all agents of this PC.
type AgentArgs struct {
	Caller
	Agent bridge.AgentKind `json:"agent,omitempty"`
}

// ModelsResult lists the models that the agent CLIs report (JOB-21).
type ModelsResult struct {
	Agents []AgentModels `json:"agents"`
}

// AgentModels lists the models of one CLI. Note is the reason if the list is empty or incomplete.
type AgentModels struct {
	Agent  bridge.AgentKind `json:"agent"`
	AsOf   int64            `json:"asOf"` // when it was asked, in Unix milliseconds
	Models []Model          `json:"models"`
	Note   string           `json:"note,omitempty"`
}

// Model is a model of a CLI; ID is the CLI's own name for it.
type Model struct {
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	Efforts []string `json:"efforts,omitempty"`
	Default bool     `json:"default,omitempty"`
}

// UsageResult lists the account limits that the agent CLIs report (JOB-21).
type UsageResult struct {
	Agents []AgentUsage `json:"agents"`
}

// AgentUsage lists the limits of one CLI. Note is the reason if there are none.
type AgentUsage struct {
	Agent  bridge.AgentKind `json:"agent"`
	AsOf   int64            `json:"asOf"` // when it was asked, in Unix milliseconds
	Plan   string           `json:"plan,omitempty"`
	Limits []Limit          `json:"limits"`
	Note   string           `json:"note,omitempty"`
}

// Limit is one limit of an account.
type Limit struct {
	Name        string  `json:"name"`
	UsedPercent float64 `json:"usedPercent"`
	ResetsAt    int64   `json:"resetsAt,omitempty"` // in Unix milliseconds; 0 if the CLI does not report it
}

// Models returns the models that the agents of this PC offer. It fails with Denied before
// Register, and with Unsupported if the broker queries no agents. An agent that cannot be
// queried has the reason in its entry.
func (c JobCalls) Models(ctx context.Context, args AgentArgs) (ModelsResult, error) {
	return OpModels.Call(ctx, c.link, args)
}

// Usage returns how much of their limits the agents of this PC have used. It fails as Models
// does.
func (c JobCalls) Usage(ctx context.Context, args AgentArgs) (UsageResult, error) {
	return OpUsage.Call(ctx, c.link, args)
}
