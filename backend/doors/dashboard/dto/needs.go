package dto

import "bridge/backend/core/needs"

// Needs is the output of `bridge needs --json` and the answer of POST /api/needs/<id>.
type Needs struct {
	Needs []needs.Item `json:"needs"`
}
