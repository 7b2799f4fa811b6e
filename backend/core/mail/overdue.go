package mail

import (
	"cmp"
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// UnreadTooLong is how long mail may wait for a session before the owner is notified.
const UnreadTooLong = 15 * time.Minute

// Overdue is the mail that one session has left unread for too long.
type Overdue struct {
	Recipient string // peer id
	Messages  int
	Oldest    string // the id of the message that waits longest
	Since     int64  // when that message arrived
}

// FindOverdue returns the overdue mail, one entry for each session, the longest wait
// first. It skips notices of decisions, which wake no session and wait for the next
// turn by design.
func FindOverdue(rows []HistoryRow, now time.Time) []Overdue {
	found := []Overdue{}
	at := map[string]int{} // places in found by recipient
	for _, row := range rows {
		if row.IsDecision() || now.Sub(time.UnixMilli(row.CreatedAt)) < UnreadTooLong {
			continue
		}
		for _, d := range row.Deliveries {
			if stage := d.Stage(); stage != bridge.StageDurable && stage != bridge.StageWoken && stage != bridge.StageArrived && stage != bridge.StageAtHub {
				continue
			}
			i, known := at[d.Recipient]
			if !known {
				i = len(found)
				at[d.Recipient] = i
				found = append(found, Overdue{Recipient: d.Recipient, Oldest: row.ID, Since: row.CreatedAt})
			}
			found[i].add(row)
		}
	}
	slices.SortStableFunc(found, func(a, b Overdue) int { return cmp.Compare(a.Since, b.Since) })
	return found
}

func (o *Overdue) add(row HistoryRow) {
	o.Messages++
	if row.CreatedAt < o.Since {
		o.Oldest, o.Since = row.ID, row.CreatedAt
	}
}

// IsDecision reports whether the message is the notice of a decision.
func (r HistoryRow) IsDecision() bool { return IsNotice(r.ConversationID, r.ReplyTo, r.Hop) }
