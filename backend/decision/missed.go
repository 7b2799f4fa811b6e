package decision

import (
	"fmt"
	"slices"
)

// MaxImportedNotices is how many decisions of other PCs a session is told one by one when
// it is caught up (SEC-12).
const MaxImportedNotices = 20

// Missed returns the decisions that a session was not told of, oldest first: all of this
// PC's, and the newest [MaxImportedNotices] of other PCs. rest are the older ones of other
// PCs. current has the newest first; told has the ids of what the session was told of.
func Missed(current []Revision, told map[string]bool) (missed, rest []Revision) {
	imported := 0
	for _, revision := range current {
		if told[revision.ID] {
			continue
		}
		if (Placed{Revision: revision}).IsImported() {
			if imported++; imported > MaxImportedNotices {
				rest = append(rest, revision)
				continue
			}
		}
		missed = append(missed, revision)
	}
	slices.Reverse(missed)
	return missed, rest
}

// restWords says how many decisions of other PCs a session is not told one by one.
func restWords(rest int) string {
	if rest == 0 {
		return ""
	}
	return fmt.Sprintf("\n\nBridge tells you the newest %d decisions of other PCs. %d older ones are in force here, too: the tool `decisions` lists them.", MaxImportedNotices, rest)
}
