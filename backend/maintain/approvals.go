package maintain

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"

	"bridge/backend/disk"
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

// approval is what of an approval's file counts here.
type approval struct {
	answered bool
	private  bool   // it holds what stays in the home
	public   []byte // all the rest; nil where that cannot be told apart
}

func isApproval(name string) bool {
	return path.Dir(name) == "approvals" && path.Ext(name) == ".json"
}

// readApproval reads the approval at path; what is none is not answered.
func readApproval(path string) approval {
	data, err := disk.ReadLimited(path, maxApprovalBytes)
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err != nil || !json.Valid(data) || decoder.Decode(&members) != nil {
		return approval{}
	}
	read := approval{answered: isAnswered(members)}
	secrets := takePrivate(members)
	if read.private = len(secrets) > 0; !read.private {
		read.public = data
		return read
	}
	public, err := json.MarshalIndent(members, "", "  ")
	leaks := func(secret string) bool { return len(secret) >= telling && strings.Contains(string(public), secret) }
	if err == nil && !slices.ContainsFunc(secrets, leaks) {
		read.public = append(public, '\n')
	}
	return read
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
// values.
func takePrivate(value any) (secrets []string) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			secrets = append(secrets, takePrivate(one)...)
		}
	case map[string]any:
		for name, one := range value {
			plain := strings.ToLower(name)
			if !strings.Contains(plain, "token") && !strings.Contains(plain, "secret") {
				secrets = append(secrets, takePrivate(one)...)
				continue
			}
			delete(value, name)
			text, _ := json.Marshal(one) //nolint:errchkjson // it came from JSON
			secrets = append(secrets, strings.Trim(string(text), `"`))
		}
	}
	return secrets
}

// belongs reports whether a managed file of the home goes into a snapshot.
func (c Caretaker) belongs(name string) bool {
	if !isApproval(name) {
		return true
	}
	read := readApproval(in(c.Home.Dir(), name))
	return read.answered && read.public != nil
}

// keepsPrivate reports whether the file in the home holds what no set may have, so
// that a restore leaves it as it is: the process that it belongs to may need it.
func (c Caretaker) keepsPrivate(name string) bool {
	return isApproval(name) && readApproval(in(c.Home.Dir(), name)).private
}

// copyApproval puts the public part of an answered approval into a set.
func (c Caretaker) copyApproval(name, to string) (sum string, size int64, err error) {
	read := readApproval(in(c.Home.Dir(), name))
	if !read.answered || read.public == nil {
		return "", 0, fs.ErrNotExist // it was taken away meanwhile
	}
	if err := c.files().WriteNew(to, read.public, disk.PrivateFile); err != nil {
		return "", 0, err
	}
	return disk.Checksum(to)
}
