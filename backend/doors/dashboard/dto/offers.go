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

// AgentModels lists the models of one agent CLI.
type AgentModels struct {
	Agent  bridge.AgentKind  `json:"agent"`
	AsOf   bridge.UnixMillis `json:"asOf"` // time of the query
	Models []Model           `json:"models"`
	Note   string            `json:"note"` // why the list is empty or incomplete
}

// Model is a model of a CLI; its id is the CLI's own name for it.
type Model struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Efforts []string `json:"efforts"`
	Default bool     `json:"default"`
}

// AgentUsage lists the account limits of one agent CLI.
type AgentUsage struct {
	Agent  bridge.AgentKind  `json:"agent"`
	AsOf   bridge.UnixMillis `json:"asOf"`
	Plan   string            `json:"plan"`
	Limits []Limit           `json:"limits"`
	Note   string            `json:"note"` // why the list is empty
}

// Limit is one limit of an account.
type Limit struct {
	Name        string             `json:"name"`
	UsedPercent float64            `json:"usedPercent"`
	ResetsAt    *bridge.UnixMillis `json:"resetsAt"` // null if the CLI does not report it
}
