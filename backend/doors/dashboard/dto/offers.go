package dto

import "bridge/backend/core/bridge"

// Models answers GET /api/models.
type Models struct {
	Agents []AgentModels `json:"agents"`
}

// Usage answers GET /api/usage.
type Usage struct {
	Agents []AgentUsage `json:"agents"`
}

// AgentModels is what one agent CLI tells of its models.
type AgentModels struct {
	Agent  bridge.AgentKind  `json:"agent"`
	AsOf   bridge.UnixMillis `json:"asOf"` // when it was asked
	Models []Model           `json:"models"`
	Note   string            `json:"note"` // why there is nothing, or not all
}

// Model is one that a CLI offers; its id is what the CLI wants to hear.
type Model struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Efforts []string `json:"efforts"`
	Default bool     `json:"default"`
}

// AgentUsage is what one agent CLI tells of the limits of its account.
type AgentUsage struct {
	Agent  bridge.AgentKind  `json:"agent"`
	AsOf   bridge.UnixMillis `json:"asOf"`
	Plan   string            `json:"plan"`
	Limits []Limit           `json:"limits"`
	Note   string            `json:"note"` // why there is nothing
}

// Limit is one of an account's limits.
type Limit struct {
	Name        string             `json:"name"`
	UsedPercent float64            `json:"usedPercent"`
	ResetsAt    *bridge.UnixMillis `json:"resetsAt"` // null where the CLI does not say it
}
