package inventory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"path/filepath"

	"bridge/backend/platform/disk"
)

// TestResult is the record of one restore test: that a snapshot can be restored, or why
// not.
type TestResult struct {
	At       int64  `json:"at"`       // Unix milliseconds
	Snapshot string `json:"snapshot"` // its folder's name
	OK       bool   `json:"ok"`
	Detail   string `json:"detail"` // what was proven or what failed, as a text
	Files    int    `json:"files"`
	Rows     int    `json:"rows"`
}

// ResultsName is the record of all restore tests, one JSON line each.
const ResultsName = "drills.jsonl"

// maxResultsBytes limits that record: some 300,000 tests.
const maxResultsBytes = 64 << 20

// TestResults returns the results of the restore tests that the folder of snapshots
// records, newest first. It skips unreadable lines, such as one left by a crash. It fails
// if the record is unreadable or too large.
func TestResults(backups string) ([]TestResult, error) {
	data, err := disk.ReadLimited(filepath.Join(backups, ResultsName), maxResultsBytes)
	if IsGone(err) {
		return []TestResult{}, nil
	}
	if err != nil {
		return nil, err
	}
	results := []TestResult{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var result TestResult
		if json.Unmarshal(lines.Bytes(), &result) == nil && result.At > 0 {
			results = append([]TestResult{result}, results...)
		}
	}
	return results, lines.Err()
}

// LastPassed returns the newest successful restore test; ok is false without one.
func LastPassed(backups string) (result TestResult, ok bool) {
	results, err := TestResults(backups)
	if err != nil {
		return TestResult{}, false
	}
	for _, result := range results {
		if result.OK {
			return result, true
		}
	}
	return TestResult{}, false
}
