package rules

import (
	"encoding/json"
	"fmt"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/rule"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

// MaxBytes limits rules.json.
const MaxBytes = maxBytes

// TakenBackSince returns a restored rules.json in which every rule is revoked that the
// present file has as revoked: no older copy may grant it again. alreadyRevoked counts those rules,
// and stillLive the live ones that the present file lacks. A file that this build does not
// know stays unchanged: merged is nil. It fails if the result cannot be encoded as JSON.
func TakenBackSince(restored, present []byte, at job.Millis) (merged []byte, alreadyRevoked, stillLive int, err error) {
	var old, now file
	if !isKnown(restored, &old) {
		return nil, 0, 0, nil
	}
	if !isKnown(present, &now) {
		now.Rules = nil
	}
	for i, item := range old.Rules {
		if item.TakenBack != 0 {
			continue
		}
		found := slices.IndexFunc(now.Rules, func(other rule.Rule) bool { return other.ID == item.ID })
		switch {
		case found < 0 && (item.Until == 0 || at < item.Until):
			stillLive++
		case found >= 0 && now.Rules[found].TakenBack != 0:
			old.Rules[i].TakenBack = now.Rules[found].TakenBack
			alreadyRevoked++
		}
	}
	if alreadyRevoked == 0 {
		return nil, 0, stillLive, nil
	}
	if merged, err = json.Marshal(old); err != nil {
		return nil, 0, 0, fmt.Errorf("encode the restored rules: %w", err)
	}
	return append(merged, '\n'), alreadyRevoked, stillLive, nil
}

func isKnown(data []byte, into *file) bool {
	return disk.DecodeJSON(data, into) == nil && into.Version == config.RulesVersion
}

// RestoredNote returns what the owner must know of the rules of a restored file, "" for
// nothing.
func RestoredNote(alreadyRevoked, stillLive int) string {
	text := ""
	if alreadyRevoked > 0 {
		text = bridge.Counted(alreadyRevoked, "standing rule") + " of the snapshot that you took back since: taken back as before."
	}
	if stillLive > 0 {
		if text != "" {
			text += " "
		}
		text += bridge.Counted(stillLive, "standing rule") + " of the snapshot, not known here any more, allow again: `bridge rules` lists them."
	}
	return text
}
