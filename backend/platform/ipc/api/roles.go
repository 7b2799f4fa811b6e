package api

import (
	"slices"

	"bridge/backend/core/bridge"
)

// Role says what a connection is. It bounds what it may ask.
type Role string

// The roles.
const (
	RoleSession   Role = "session"   // the MCP server of a session
	RolePlugin    Role = "plugin"    // a host's plugin: several sessions
	RoleHook      Role = "hook"      // one hook call
	RoleMod       Role = "mod"       // claude's mod: one conversation
	RoleRunner    Role = "runner"    // what drives one delegated job
	RoleOwner     Role = "owner"     // the owner's command line
	RoleDashboard Role = "dashboard" // the owner's desktop app
)

// roles lists them all: a connection that says to be anything else is refused.
var roles = []Role{RoleSession, RolePlugin, RoleHook, RoleMod, RoleRunner, RoleOwner, RoleDashboard}

// CheckRole refuses a role that does not exist.
func CheckRole(role Role) error {
	if !slices.Contains(roles, role) {
		return bridge.Errorf(bridge.Invalid, "unknown role %q", role)
	}
	return nil
}
