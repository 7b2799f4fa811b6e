// Package needs decides what needs the owner, for every place that shows it: the
// page, the tray, `bridge status` and `bridge needs` (row NED-01). Facts go in, an
// ordered list comes out. It does no I/O and asks no clock: who gathers the facts, and
// when, is not its business.
package needs

import (
	"cmp"
	"slices"
	"time"

	"bridge/backend/core/bridge"
)

// Sort is what an item is about.
type Sort string

// The sorts, in the order in which items of one moment stand.
const (
	Offline   Sort = "offline"    // no broker serves the home
	Storage   Sort = "storage"    // the home's storage has errors
	Approval  Sort = "approval"   // a job asks before it goes on
	Question  Sort = "question"   // a session asks its owner
	JobAsks   Sort = "job-asks"   // a job was stopped and goes on at somebody's word
	JobEnded  Sort = "job-ended"  // a job has ended badly
	JobReview Sort = "job-review" // what a job has changed waits for its owner
	Mail      Sort = "mail"       // a session leaves its mail unread for too long
	Expired   Sort = "expired"    // a message expired before anybody read it
	Agent     Sort = "agent"      // an agent CLI is not connected as it was
)

// Sorts lists them all.
func Sorts() []Sort {
	return []Sort{Offline, Storage, Approval, Question, JobAsks, JobEnded, JobReview, Mail, Expired, Agent}
}

// Item is one thing that needs the owner.
type Item struct {
	// ID names this need for as long as it is there, and no other.
	ID     string             `json:"id"`
	Sort   Sort               `json:"sort"`
	Title  string             `json:"title"`  // who, and what of him
	Detail string             `json:"detail"` // what exactly, never cut
	Since  int64              `json:"since"`  // Unix milliseconds
	Until  *bridge.UnixMillis `json:"until"`  // when it will be over by itself, null for never
	Place  string             `json:"place"`  // the folder that it is about, "" where it is about none
	Link   string             `json:"link"`   // where on the page it is dealt with
	// News is told until it is put away; everything else is there until it is dealt with.
	News bool `json:"news"`

	plain string
	// What its model asks itself, where the owner chooses the answer.
	choices []bridge.Choice
	options []string // the labels of the answers that a question offers
	told    bool     // it is dealt with elsewhere: no command and no click of here does it
}

// Plain is the title without a word of an agent's, for places that others can see.
func (i Item) Plain() string { return bridge.VisibleLine(cmp.Or(i.plain, i.Title)) }

// List is what needs the owner at that moment, oldest first: the order is total, so
// that what is shown stays where it is while others arrive.
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

// compare orders items: by their time, then by their sort, then by their id, which
// says the sort.
func compare(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(rank(a.Sort), rank(b.Sort)), cmp.Compare(a.ID, b.ID))
}

func rank(s Sort) int { return slices.Index(Sorts(), s) }

// Counts says how many items there are of each sort.
func Counts(items []Item) map[Sort]int {
	counts := map[Sort]int{}
	for _, item := range items {
		counts[item.Sort]++
	}
	return counts
}
