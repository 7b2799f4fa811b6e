package ipc

import "bridge/backend/platform/ipc/api"

// Protocol is the version of the local link. A broker refuses other versions.
const Protocol = 1

// The operations of the connection itself. The handler serves all other operations.
const (
	opHello  = "hello"
	opCancel = "cancel" // names a request by its id; it gets no answer
)

// Hello is the first frame of every connection.
type Hello struct {
	Protocol int      `json:"protocol"`
	Token    string   `json:"token"`
	Role     api.Role `json:"role"`
	PID      int      `json:"pid"`
	Version  string   `json:"version"`
}

// with returns the hello with the protocol version and the token.
func (h Hello) with(token string) Hello {
	h.Protocol, h.Token = Protocol, token
	return h
}

// Welcome is the answer to Hello.
type Welcome struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	URL     string `json:"url"` // dashboard address without its key; "" without a dashboard
}
