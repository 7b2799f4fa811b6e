// Package needs determines what needs the owner, for every display: the page, the tray,
// `bridge status` and `bridge needs` (row NED-01). It turns facts into an ordered list.
// It does no I/O and reads no clock: the caller gathers the facts.
package needs

import (
	"cmp"
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// Sort is the kind of an item.
type Sort string

// The sorts, in the order of items with the same time.
const (
	Offline   Sort = "offline"    // no broker serves the home
	Storage   Sort = "storage"    // the home's storage has errors
	Approval  Sort = "approval"   // a job asks before it continues
	Question  Sort = "question"   // a session asks its owner
	JobAsks   Sort = "job-asks"   // a job was stopped and needs a decision
	JobEnded  Sort = "job-ended"  // a job has failed
	JobReview Sort = "job-review" // a job's changes wait for the owner
	Mail      Sort = "mail"       // a session leaves its mail unread for too long
	Expired   Sort = "expired"    // a message expired unread
	Agent     Sort = "agent"      // an agent CLI's connection has changed
)

// Sorts returns all sorts.
func Sorts() []Sort {
	return []Sort{Offline, Storage, Approval, Question, JobAsks, JobEnded, JobReview, Mail, Expired, Agent}
}

// Item is one thing that needs the owner.
type Item struct {
	// ID identifies this need alone, as long as it exists.
	ID     string             `json:"id"`
	Sort   Sort               `json:"sort"`
	Title  string             `json:"title"`  // the subject and its need
	Detail string             `json:"detail"` // exact, never cut
	Since  int64              `json:"since"`  // Unix milliseconds
	Until  *bridge.UnixMillis `json:"until"`  // when it ends automatically, null for never
	Place  string             `json:"place"`  // its folder, or ""
	Link   string             `json:"link"`   // the place on the page to handle it
	// News stays until it is dismissed; every other item stays until it is handled.
	News bool `json:"news"`

	plain string
	// choices are the model's own questions, if the owner chooses the answer.
	choices []bridge.Choice
	options []string // the labels of a question's offered answers
	told    bool     // it is handled elsewhere: no command and no click here can do it
}

// Plain returns the title without an agent's text, for displays that others can see.
func (i Item) Plain() string { return bridge.VisibleLine(cmp.Or(i.plain, i.Title)) }

// List returns the items that need the owner at that time, oldest first. The order is
// total, so that items keep their places while others arrive.
func List(f Facts, now time.Time) []Item {
	items := slices.Concat(
		f.offline(), f.Storage.items(), f.approvals(now), f.questions(), f.jobs(now), f.mail(), f.expired(), f.agents(),
	)
	items = slices.DeleteFunc(items, func(i Item) bool { return i.News && slices.Contains(f.PutAway, i.ID) })
	slices.SortFunc(items, compare)
	list, listed := []Item{}, map[string]bool{}
	for _, item := range items {
		if !listed[item.ID] {
			list, listed[item.ID] = append(list, item), true
		}
	}
	return list
}

// compare orders items by time, then by sort, then by id, which includes the sort.
func compare(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(rank(a.Sort), rank(b.Sort)), cmp.Compare(a.ID, b.ID))
}

func rank(s Sort) int { return slices.Index(Sorts(), s) }

// Counts returns the number of items of each sort.
func Counts(items []Item) map[Sort]int {
	counts := map[Sort]int{}
	for _, item := range items {
		counts[item.Sort]++
	}
	return counts
}
