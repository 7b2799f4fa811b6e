package ipc

import "bridge/backend/platform/ipc/api"

// Protocol is the version of the local link. A broker refuses another one.
const Protocol = 1

// What the connection itself says: every other operation is the handler's.
const (
	opHello  = "hello"
	opCancel = "cancel" // names a request by its id; it has no answer of its own
)

// Hello opens every connection.
type Hello struct {
	Protocol int      `json:"protocol"`
	Token    string   `json:"token"`
	Role     api.Role `json:"role"`
	PID      int      `json:"pid"`
	Version  string   `json:"version"`
}

// with is the hello as it goes out: it proves the token.
func (h Hello) with(token string) Hello {
	h.Protocol, h.Token = Protocol, token
	return h
}

// Welcome answers Hello.
type Welcome struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	URL     string `json:"url"` // dashboard address without its key, "" when none is served
}
