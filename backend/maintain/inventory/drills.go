package inventory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"path/filepath"

	"bridge/backend/disk"
)

// Proof is the record of one drill: that a snapshot can be restored, or why it
// could not.
type Proof struct {
	At       int64  `json:"at"`       // Unix milliseconds
	Snapshot string `json:"snapshot"` // its folder's name
	OK       bool   `json:"ok"`
	Detail   string `json:"detail"` // what was proven or what failed, in words
	Files    int    `json:"files"`
	Rows     int    `json:"rows"`
}

// DrillsName is the record of all drills, one JSON line each.
const DrillsName = "drills.jsonl"

// maxDrillsBytes bounds that record: some 300,000 drills.
const maxDrillsBytes = 64 << 20

// Drills returns the proofs that are recorded in the folder of snapshots, the newest first. Lines that cannot be
// read, as a crash may leave one, are passed over.
func Drills(backups string) ([]Proof, error) {
	data, err := disk.ReadLimited(filepath.Join(backups, DrillsName), maxDrillsBytes)
	if IsGone(err) {
		return []Proof{}, nil
	}
	if err != nil {
		return nil, err
	}
	proofs := []Proof{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var proof Proof
		if json.Unmarshal(lines.Bytes(), &proof) == nil && proof.At > 0 {
			proofs = append([]Proof{proof}, proofs...)
		}
	}
	return proofs, lines.Err()
}

// LastProof returns the newest drill that succeeded; ok is false without one.
func LastProof(backups string) (proof Proof, ok bool) {
	proofs, err := Drills(backups)
	if err != nil {
		return Proof{}, false
	}
	for _, proof := range proofs {
		if proof.OK {
			return proof, true
		}
	}
	return Proof{}, false
}
