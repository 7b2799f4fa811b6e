package dto

import (
	"encoding/json"

	"bridge/backend/core/bridge"
)

// Drafts is the answer of GET /api/drafts.
type Drafts struct {
	Drafts []Draft `json:"drafts"`
}

// Draft is what the owner typed and did not send, under a key of the page.
type Draft struct {
	Key   string            `json:"key"`
	At    bridge.UnixMillis `json:"at"` // of its last change
	Value json.RawMessage   `json:"value"`
}

// DraftSet is the answer of POST /api/drafts.
type DraftSet struct {
	Key string `json:"key"`
}
