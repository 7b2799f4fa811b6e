package api

import (
	"context"

	"bridge/backend/core/bridge"
	"bridge/backend/core/session"
)

// maxCostReports bounds the sessions of one report.
const maxCostReports = 200

// CostReport is what a process put into the context of its sessions (CTX-03). With a
// Reporter, each cost is a total since the process began: Bridge counts what it exceeds
// the last one by. Without one, it is a single text.
type CostReport struct {
	Reporter string           `json:"reporter,omitempty"`
	Agent    bridge.AgentKind `json:"agent,omitempty"` // for a process without a registration
	Costs    []HostCost       `json:"costs"`
}

// HostCost is the cost of the session with that host id, or of the only session of the
// connection if it is "".
type HostCost struct {
	SessionID string `json:"session_id,omitempty"`
	session.Cost
}

// Check fails with Invalid for a report beyond the limits.
func (r CostReport) Check() error {
	if len(r.Costs) > maxCostReports {
		return bridge.Errorf(bridge.Invalid, "a report names at most %d sessions", maxCostReports)
	}
	if r.Reporter != "" {
		if err := bridge.CheckID("the reporter", r.Reporter); err != nil {
			return err
		}
	}
	for _, cost := range r.Costs {
		if cost.SessionID != "" {
			if err := bridge.CheckID("the host session id", cost.SessionID); err != nil {
				return err
			}
		}
		if min(cost.Tools, cost.Notes, cost.Mail, cost.Notices) < 0 {
			return bridge.Errorf(bridge.Invalid, "a cost is at least 0")
		}
	}
	return nil
}

// SessionCost is what Bridge put into one session, as an estimate in tokens.
type SessionCost struct {
	ID    string           `json:"id"`
	Name  string           `json:"name"`
	Agent bridge.AgentKind `json:"agent"`
	Total session.Cost     `json:"total"`
	Days  []DayTokens      `json:"days"` // newest first
}

// DayTokens is the estimate of one day.
type DayTokens struct {
	Day string `json:"day"` // such as 2026-01-31, in the time zone of this PC
	session.Cost
}

// Costs is what Bridge put into the sessions of the last KeptDays days, in tokens of
// BytesPerToken bytes.
type Costs struct {
	BytesPerToken int           `json:"bytesPerToken"`
	KeptDays      int           `json:"keptDays"`
	Sessions      []SessionCost `json:"sessions"` // those with the most tokens first
}

// CostCalls holds the operations on costs.
type CostCalls struct{ link Link }

// ReportCost reports the size of the texts that this process put into its sessions. It fails
// with Invalid if Check refuses the report, and with Unavailable while the connection has no
// session.
func (c CostCalls) ReportCost(ctx context.Context, report CostReport) error {
	_, err := OpCostReport.Call(ctx, c.link, report)
	return err
}

// Costs returns the size of Bridge's texts in each session. It fails with Denied for a role
// other than RoleOwner and RoleDashboard.
func (c CostCalls) Costs(ctx context.Context) (Costs, error) {
	return OpCosts.Call(ctx, c.link, Empty{})
}
