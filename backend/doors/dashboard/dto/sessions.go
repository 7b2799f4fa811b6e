package dto

import "bridge/backend/core/bridge"

// EndedSessions is the answer of GET /api/sessions/ended.
type EndedSessions struct {
	Sessions []EndedSession `json:"sessions"` // last seen first
	More     bool           `json:"more"`     // older ones are not listed
}

// EndedSession is a session that is not connected now.
type EndedSession struct {
	Name   string            `json:"name"`
	Agent  bridge.AgentKind  `json:"agent"`
	SeenAt bridge.UnixMillis `json:"seenAt"`
}
