package dto

import "bridge/backend/core/needs"

// Needs is what `bridge needs --json` prints, and the answer of POST /api/needs/<id>.
type Needs struct {
	Needs []needs.Item `json:"needs"`
}
