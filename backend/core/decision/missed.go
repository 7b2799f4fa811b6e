package decision

import (
	"fmt"
	"slices"
)

// MaxImportedNotices limits how many decisions of other PCs a session receives one by
// one when it catches up (SEC-12).
const MaxImportedNotices = 20

// Receipts has the receipts of a session: the ids of decisions, each with the id of the
// message about it. The message id is "" if the session received the decision only as
// part of a number.
type Receipts map[string]string

// Has reports whether the session has a receipt for a decision.
func (t Receipts) Has(id string) bool {
	_, has := t[id]
	return has
}

// HasMessage reports whether a message notified the session of a decision.
func (t Receipts) HasMessage(id string) bool { return t[id] != "" }

// Missed returns the decisions without a receipt, oldest first: all of this PC's, and
// the newest [MaxImportedNotices] of other PCs. rest are the older ones of other PCs.
// current has the newest first.
func Missed(current []Revision, receipts Receipts) (missed, rest []Revision) {
	imported := 0
	for _, revision := range current {
		if receipts.Has(revision.ID) {
			continue
		}
		if (OrderedRevision{Revision: revision}).IsImported() {
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

// CatchUp returns the news for a session when it connects, oldest first: the decisions in force
// that reach it, and the withdrawals of decisions that it received. rest are decisions of other
// PCs that it receives only as a number. history has all revisions, newest first.
func CatchUp(history []Revision, receipts Receipts, target Target) (news []News, rest []Revision) {
	missed, rest := Missed(Applicable(history, target), receipts)
	for _, revision := range Withdrawals(history, receipts, target) {
		news = append(news, News{Revision: revision, Newest: true})
	}
	for _, revision := range missed {
		news = append(news, News{Revision: revision, Newest: true})
	}
	if len(missed) > 0 {
		news[len(news)-1].Rest = len(rest)
	}
	return news, rest
}

// restWords returns a note with the number of decisions not sent one by one, or "".
func restWords(rest int) string {
	if rest == 0 {
		return ""
	}
	if rest == 1 {
		return fmt.Sprintf("\n\nBridge tells you the newest %d decisions of other PCs. An older one is in force here, too: the tool `decisions` lists it.", MaxImportedNotices)
	}
	return fmt.Sprintf("\n\nBridge tells you the newest %d decisions of other PCs. %d older ones are in force here, too: the tool `decisions` lists them.", MaxImportedNotices, rest)
}
