package dto

import "bridge/backend/core/bridge"

// Report is the answer of GET /api/storage: the doctor's report (seed 2.7). Paths
// are relative to the home, with slashes.
type Report struct {
	CheckedAt  bridge.UnixMillis `json:"checkedAt"`
	OK         bool              `json:"ok"` // no finding is an error
	Schema     []Schema          `json:"schema"`
	Findings   []Finding         `json:"findings"` // errors first
	Sizes      []Size            `json:"sizes"`    // every file and folder right in the home
	TotalBytes int64             `json:"totalBytes"`
	Backups    []Backup          `json:"backups"` // published sets, the newest first
}

// Schema is the version of one database that exists.
type Schema struct {
	Path     string `json:"path"`
	Actual   int    `json:"actual"`
	Expected int    `json:"expected"`
}

// Finding is one thing that is wrong.
type Finding struct {
	Severity string `json:"severity"` // error or warning
	Code     string `json:"code"`
	Path     string `json:"path"`
	Detail   string `json:"detail"`
	Fixable  bool   `json:"fixable"`
}

// Size is how much one file, or everything in one folder, takes.
type Size struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Backup is one published set.
type Backup struct {
	Path      string            `json:"path"`
	CreatedAt bridge.UnixMillis `json:"createdAt"`
}

// Drills is the answer of GET /api/storage/drills: the newest first.
type Drills struct {
	Drills []Drill `json:"drills"`
}

// Drill is one restore that was tried.
type Drill struct {
	At       bridge.UnixMillis `json:"at"`
	Snapshot string            `json:"snapshot"` // its folder's name
	OK       bool              `json:"ok"`
	Detail   string            `json:"detail"` // what was proven or what failed, in words
	Files    int               `json:"files"`
	Rows     int               `json:"rows"`
}

// Sizes is the answer of GET /api/storage/sizes.
type Sizes struct {
	Points []SizePoint `json:"points"` // one a day, the oldest first
}

// SizePoint is how much the home took at one time.
type SizePoint struct {
	At    bridge.UnixMillis `json:"at"`
	Total int64             `json:"total"` // bytes
	Parts map[string]int64  `json:"parts"` // bytes by file or folder right in the home, side files with their database
}
