package inventory

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"bridge/backend/platform/disk"
)

// Approvals are questions of delegated jobs, one file each (STO-04). One that was
// answered says what the owner allowed, and belongs into a snapshot. One that is
// open is of use only to the process that asked. The private token by which its
// asker is answered leaves the file for no copy: a file that holds one is never
// put into a set whole, and never replaced.

// maxApprovalBytes bounds one approval; what is asked for is at most 16,000
// characters.
const maxApprovalBytes = 1 << 20

// telling is how long a secret is at least to be told from an accident elsewhere.
const telling = 8

// Approval is what of an approval's file counts here.
type Approval struct {
	Answered bool
	Private  bool   // it holds what stays in the home
	Public   []byte // all the rest; nil where that cannot be told apart
}

// IsApproval reports whether name, relative to the home, is that of an approval.
func IsApproval(name string) bool {
	return path.Dir(name) == "approvals" && path.Ext(name) == ".json"
}

// ReadApproval reads the approval at path; what is none is not answered.
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
	secrets []string // what was private, as it stands in the file
}

// redact reads the JSON object at path. public is all but its private members, the
// very bytes where there are none, and nil where they cannot be told from the rest.
func redact(path string, limit int64, isPrivate func(member string) bool) (read *redacted, public []byte) {
	data, err := disk.ReadLimited(path, limit)
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err != nil || !json.Valid(data) || decoder.Decode(&members) != nil {
		return nil, nil
	}
	read = &redacted{rest: members, secrets: takePrivate(members, isPrivate)}
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

// isPrivate knows the members of an approval that stay in the home.
func isPrivate(member string) bool {
	return strings.Contains(member, "token") || strings.Contains(member, "secret")
}

// isAnswered reports whether somebody decided. What has no state, as in the field,
// is judged by its decision.
func isAnswered(members map[string]any) bool {
	if state, has := members["state"]; has {
		return slices.Contains([]any{"answered", "delivered", "applied"}, state)
	}
	return slices.Contains([]any{"allow", "deny"}, members["decision"])
}

// takePrivate takes every private member out of a JSON value and returns their
// values. isPrivate is asked about names in lower case.
func takePrivate(value any, isPrivate func(member string) bool) (secrets []string) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			secrets = append(secrets, takePrivate(one, isPrivate)...)
		}
	case map[string]any:
		for name, one := range value {
			if !isPrivate(strings.ToLower(name)) {
				secrets = append(secrets, takePrivate(one, isPrivate)...)
				continue
			}
			delete(value, name)
			text, _ := json.Marshal(one) //nolint:errchkjson // it came from JSON
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

// KeepsPrivate reports whether the file in the home holds what no set may have, so
// that a restore leaves it as it is: the process that it belongs to may need it. The
// secret of a runner is of no use once that has ended, and where a restore may work it has.
func KeepsPrivate(dir, name string) bool {
	return IsApproval(name) && ReadApproval(JoinHome(dir, name)).Private || isUnreadableSecret(dir, name)
}
