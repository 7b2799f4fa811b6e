package dto

import (
	"bridge/backend/core/bridge"
	"bridge/backend/core/needs"
)

// Exchange is the answer of POST /api/exchanges: the state of two sessions, by name.
type Exchange struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Paused bool   `json:"paused"`
	// Waiting is how many of their messages to each other wait; null if it cannot be read.
	Waiting bridge.Count `json:"waiting"`
}

// Needs is the output of `bridge needs --json` and the answer of POST /api/needs/<id>.
type Needs struct {
	Needs []needs.Item `json:"needs"`
	// Unreadable lists what the list may lack because it cannot be read, as sentences.
	Unreadable []string `json:"unreadable,omitempty"`
}
