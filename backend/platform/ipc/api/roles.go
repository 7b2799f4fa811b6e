package api

import (
	"slices"

	"bridge/backend/core/bridge"
)

// Role is the role of a connection. It bounds the operations that it may call.
type Role string

// The roles.
const (
	RoleSession   Role = "session"   // the MCP server of a session
	RolePlugin    Role = "plugin"    // a host's plugin: several sessions
	RoleHook      Role = "hook"      // one hook call
	RoleMod       Role = "mod"       // Claude Code's mod: one conversation
	RoleRunner    Role = "runner"    // the process that drives one delegated job
	RoleOwner     Role = "owner"     // the owner's command line
	RoleDashboard Role = "dashboard" // the owner's desktop app
)

// roles lists all roles; a connection with another role is refused.
var roles = []Role{RoleSession, RolePlugin, RoleHook, RoleMod, RoleRunner, RoleOwner, RoleDashboard}

// CheckRole fails with Invalid for an unknown role.
func CheckRole(role Role) error {
	if !slices.Contains(roles, role) {
		return bridge.Errorf(bridge.Invalid, "unknown role %q", role)
	}
	return nil
}
