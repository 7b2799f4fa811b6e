package api

import (
	"slices"

	"bridge/backend/bridge"
)

// Role says what a connection is. It bounds what it may ask.
type Role string

// The roles.
const (
	RoleSession   Role = "session"   // the MCP server of a session
	RolePlugin    Role = "plugin"    // a host's plugin: several sessions
	RoleHook      Role = "hook"      // one hook call
	RoleMod       Role = "mod"       // claude's mod: one conversation
	RoleOwner     Role = "owner"     // the owner's command line
	RoleDashboard Role = "dashboard" // the owner's desktop app
)

// roles lists them all: a connection that says to be anything else is refused.
var roles = []Role{RoleSession, RolePlugin, RoleHook, RoleMod, RoleOwner, RoleDashboard}

// callers is the table of the operations and the roles that may call each
// (JOB-11). An operation that does not stand here is open to nobody.
var callers = map[string][]Role{
	// A session comes, reads and goes.
	OpRegister: {RoleSession, RolePlugin},
	OpLeave:    {RolePlugin},
	OpHook:     {RoleHook, RolePlugin},
	OpWakeWait: {RoleHook},
	OpTake:     {RoleSession},
	OpConfirm:  {RoleSession, RolePlugin, RoleHook},
	OpReturn:   {RoleSession, RolePlugin, RoleHook},

	// Claude's mod.
	OpMod:       {RoleMod},
	OpModReport: {RoleMod},

	// The tools of a session.
	OpPeers:     {RoleSession},
	OpSend:      {RoleSession, RoleOwner},
	OpSent:      {RoleSession},
	OpInbox:     {RoleSession},
	OpWait:      {RoleSession},
	OpDecide:    {RoleSession},
	OpDecisions: {RoleSession},
	OpSearch:    {RoleSession},
	OpAutoWake:  {RoleSession},
	OpTicket:    {RoleSession, RoleOwner, RoleDashboard},

	// The owner's programs.
	OpStatus:    {RoleOwner, RoleDashboard},
	OpSubscribe: {RoleDashboard},
	OpRetire:    {RoleOwner},
	OpShow:      {RoleOwner}, // served by the desktop app
}

// CheckRole refuses a role that does not exist.
func CheckRole(role Role) error {
	if !slices.Contains(roles, role) {
		return bridge.Errorf(bridge.Invalid, "unknown role %q", role)
	}
	return nil
}

// CheckCaller refuses an operation to a role that may not call it.
func CheckCaller(op string, role Role) error {
	if !slices.Contains(callers[op], role) {
		return bridge.Errorf(bridge.Denied, "%q may not be called by a connection of the role %q", op, role)
	}
	return nil
}
