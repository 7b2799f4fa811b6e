package api

import (
	"context"

	"bridge/backend/core/bridge"
)

// AgentArgs names one kind of agent, or none for all that are on this PC.
type AgentArgs struct {
	Caller
	Agent bridge.AgentKind `json:"agent,omitempty"`
}

// ModelsResult is what the agent CLIs tell of their models (JOB-21).
type ModelsResult struct {
	Agents []AgentModels `json:"agents"`
}

// AgentModels is what one CLI tells. Note says why there is nothing, or not all.
type AgentModels struct {
	Agent  bridge.AgentKind `json:"agent"`
	AsOf   int64            `json:"asOf"` // when it was asked, in Unix milliseconds
	Models []Model          `json:"models"`
	Note   string           `json:"note,omitempty"`
}

// Model is one that a CLI offers; ID is what it wants to hear.
type Model struct {
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	Efforts []string `json:"efforts,omitempty"`
	Default bool     `json:"default,omitempty"`
}

// UsageResult is what the agent CLIs tell of the limits of their accounts (JOB-21).
type UsageResult struct {
	Agents []AgentUsage `json:"agents"`
}

// AgentUsage is what one CLI tells. Note says why there is nothing.
type AgentUsage struct {
	Agent  bridge.AgentKind `json:"agent"`
	AsOf   int64            `json:"asOf"` // when it was asked, in Unix milliseconds
	Plan   string           `json:"plan,omitempty"`
	Limits []Limit          `json:"limits"`
	Note   string           `json:"note,omitempty"`
}

// Limit is one of an account's limits.
type Limit struct {
	Name        string  `json:"name"`
	UsedPercent float64 `json:"usedPercent"`
	ResetsAt    int64   `json:"resetsAt,omitempty"` // in Unix milliseconds; 0 where the CLI does not say it
}

// Models tells what models the agents of this PC offer.
func (c JobCalls) Models(ctx context.Context, args AgentArgs) (ModelsResult, error) {
	return OpModels.Call(ctx, c.link, args)
}

// Usage tells how much of their limits the agents of this PC have used.
func (c JobCalls) Usage(ctx context.Context, args AgentArgs) (UsageResult, error) {
	return OpUsage.Call(ctx, c.link, args)
}
