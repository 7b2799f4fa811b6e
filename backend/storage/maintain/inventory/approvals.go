package inventory

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"bridge/backend/platform/disk"
)

// Approvals are questions of delegated jobs, one file each (STO-04). An answered one
// records what the owner allowed, and belongs in a snapshot. An open one is of use only
// to the process that asked. The private token for the answer to that process must not
// get into a copy. So a file with a token is never copied whole, and never replaced.

// maxApprovalBytes limits one approval; a request has at most 16,000 characters.
const maxApprovalBytes = 1 << 20

// telling is the minimum length of a secret for which a match elsewhere is no coincidence.
const telling = 8

// Approval holds the relevant parts of an approval's file.
type Approval struct {
	Answered bool
	Private  bool   // it holds data that stays in the home
	Public   []byte // the rest; nil if it cannot be separated
}

// IsApproval reports whether name, relative to the home, is that of an approval.
func IsApproval(name string) bool {
	return path.Dir(name) == "approvals" && path.Ext(name) == ".json"
}

// ReadApproval reads the approval at path; an invalid one is not answered.
func ReadApproval(path string) Approval {
	members, public := redact(path, maxApprovalBytes, isPrivate)
	if members == nil {
		return Approval{}
	}
	return Approval{Answered: isAnswered(members.rest), Private: len(members.secrets) > 0, Public: public}
}

// redacted is a JSON object without its private members.
type redacted struct {
	rest    map[string]any
	secrets []string // the private values, as in the file
}

// redact reads the JSON object at path. public is everything but its private members: the
// original bytes if there are none, and nil if they cannot be separated.
func redact(path string, limit int64, isPrivate func(member string) bool) (read *redacted, public []byte) {
	data, err := disk.ReadLimited(path, limit)
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err != nil || !json.Valid(data) || decoder.Decode(&members) != nil {
		return nil, nil
	}
	read = &redacted{rest: members, secrets: removePrivate(members, isPrivate)}
	if len(read.secrets) == 0 {
		return read, data
	}
	public, err = json.MarshalIndent(members, "", "  ")
	leaks := func(secret string) bool { return len(secret) >= telling && strings.Contains(string(public), secret) }
	if err != nil || slices.ContainsFunc(read.secrets, leaks) {
		return read, nil
	}
	return read, append(public, '\n')
}

// isPrivate reports whether a member of an approval stays in the home.
func isPrivate(member string) bool {
	return strings.Contains(member, "token") || strings.Contains(member, "secret")
}

// isAnswered reports whether an approval was decided. Without a state, as in other
// programs' files, its decision counts.
func isAnswered(members map[string]any) bool {
	if state, has := members["state"]; has {
		return slices.Contains([]any{"answered", "delivered", "applied"}, state)
	}
	return slices.Contains([]any{"allow", "deny"}, members["decision"])
}

// removePrivate removes every private member from a JSON value and returns their values.
// isPrivate gets the names in lower case.
func removePrivate(value any, isPrivate func(member string) bool) (secrets []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			secrets = append(secrets, removePrivate(item, isPrivate)...)
		}
	case map[string]any:
		for name, item := range value {
			if !isPrivate(strings.ToLower(name)) {
				secrets = append(secrets, removePrivate(item, isPrivate)...)
				continue
			}
			delete(value, name)
			text, _ := json.Marshal(item) //nolint:errchkjson // it came from JSON
			secrets = append(secrets, strings.Trim(string(text), `"`))
		}
	}
	return secrets
}

// Belongs reports whether a managed file of the home dir goes into a snapshot.
func Belongs(dir, name string) bool {
	if !IsRedacted(name) {
		return true
	}
	_, ok := PublicPart(dir, name)
	return ok
}

// KeepsPrivate reports whether the file in the home holds data that no set may have. A
// restore keeps such a file, because its process may need it. A runner's secret is of no
// use after the runner's end, and restores run only then.
func KeepsPrivate(dir, name string) bool {
	return IsApproval(name) && ReadApproval(JoinHome(dir, name)).Private || isUnreadableSecret(dir, name)
}
