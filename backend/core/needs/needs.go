// Package needs determines what needs the owner, for every display: the page, the tray,
// `bridge status` and `bridge needs` (row NED-01). It turns facts into an ordered list.
// It does no I/O and reads no clock: the caller gathers the facts.
package needs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
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
	Exchange  Sort = "exchange"   // two sessions write each other without the owner, or are paused
	Mail      Sort = "mail"       // a session leaves its mail unread for too long
	Expired   Sort = "expired"    // a message expired unread
	Agent     Sort = "agent"      // an agent CLI's connection has changed
	Routes    Sort = "routes"     // a route into an agent is broken in its version
)

// Sorts returns all sorts.
func Sorts() []Sort {
	return []Sort{Offline, Storage, Approval, Question, JobAsks, JobEnded, JobReview, Exchange, Mail, Expired, Agent, Routes}
}

// Urgency is how soon an item needs the owner.
type Urgency string

// The urgencies, the most urgent first.
const (
	Now  Urgency = "now"  // someone waits for the owner, or the item ends by itself
	Next Urgency = "next" // the owner's decision lets work continue
	Info Urgency = "info" // for the owner to know
)

// urgencies lists all urgencies in order.
var urgencies = []Urgency{Now, Next, Info}

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
	// Urgency groups the list; see [List].
	Urgency Urgency `json:"urgency"`
	// By is the session that waits for the owner, "" if none does. The session of a job is
	// its supervisor.
	By string `json:"by"`
	// News stays until it is dismissed; every other item stays until it is handled.
	News bool `json:"news"`
	// Exchange names the two sessions of an item of that sort.
	Exchange *ExchangeItem `json:"exchange,omitempty"`

	plain   string
	session string // whose mail it is
	// choices are the model's own questions, if the owner chooses the answer.
	choices     []bridge.Choice
	options     []string // the labels of a question's offered answers
	isElsewhere bool     // it is handled elsewhere: no command and no click here can do it
}

// ExchangeItem is two sessions, and whether the owner has paused them.
type ExchangeItem struct {
	A      ExchangeSession `json:"a"`
	B      ExchangeSession `json:"b"`
	Paused bool            `json:"paused"`
}

// Plain returns the title without an agent's text, for displays that others can see.
func (i Item) Plain() string { return bridge.VisibleLine(cmp.Or(i.plain, i.Title)) }

// List returns the items that need the owner at that time, by urgency. Within Now the item
// that ends first comes first; all others are ordered by age, oldest first. The order is
// total, so that items keep their places while others arrive.
func List(f Facts, now time.Time) []Item {
	items := slices.Concat(
		f.offline(), f.Storage.items(), f.approvals(now), f.questions(), f.jobs(now), f.exchanges(), f.mail(), f.expired(), f.agents(), f.routes(),
	)
	isPutAway := func(i Item) bool { return i.News && slices.Contains(f.PutAway, i.ID) }
	items = slices.DeleteFunc(mergeMail(slices.DeleteFunc(items, isPutAway)), isPutAway)
	for i := range items {
		items[i].Urgency = items[i].urgency()
	}
	slices.SortFunc(items, compare)
	list, listed := []Item{}, map[string]bool{}
	for _, item := range items {
		if !listed[item.ID] {
			list, listed[item.ID] = append(list, item), true
		}
	}
	return list
}

// compare orders items by urgency, by their end, by age, by sort, and by id, which includes
// the sort.
func compare(a, b Item) int {
	return cmp.Or(
		cmp.Compare(slices.Index(urgencies, a.Urgency), slices.Index(urgencies, b.Urgency)), cmp.Compare(a.end(), b.end()),
		cmp.Compare(a.Since, b.Since), cmp.Compare(rank(a.Sort), rank(b.Sort)), cmp.Compare(a.ID, b.ID),
	)
}

// end returns when the item ends by itself, in Unix milliseconds; an item that does not end
// comes after all others.
func (i Item) end() int64 {
	if i.Until == nil {
		return math.MaxInt64
	}
	return *i.Until
}

// urgency returns how soon the item needs the owner.
func (i Item) urgency() Urgency {
	switch i.Sort {
	case Offline, Storage, Approval, JobAsks:
		return Now
	case Question:
		if i.By != "" {
			return Now
		}
		return Next
	case JobReview:
		return Next
	case Exchange:
		if i.Exchange != nil && i.Exchange.Paused {
			return Info // the owner has decided
		}
		return Next
	case JobEnded, Mail, Expired, Agent, Routes:
		return Info
	}
	return Info
}

// mergeMail replaces the items of sessions with unread mail by one item if there are several:
// in a crowd they would hide everything else.
func mergeMail(items []Item) []Item {
	isMail := func(i Item) bool { return i.Sort == Mail }
	var mail []Item
	for _, item := range items {
		if isMail(item) {
			mail = append(mail, item)
		}
	}
	if len(mail) < 2 {
		return items
	}
	slices.SortFunc(mail, compare)
	ids, names := sha256.New(), make([]string, len(mail))
	for i, item := range mail {
		ids.Write([]byte(item.ID + "\n"))
		names[i] = item.session
	}
	merged := Item{
		ID: "mail:several:" + hex.EncodeToString(ids.Sum(nil)[:8]), Sort: Mail, Title: bridge.Counted(len(mail), "session") + " have unread mail",
		Detail: strings.Join(names, ", "), Since: mail[0].Since, Link: "#/sessions", News: true,
	}
	return append(slices.DeleteFunc(items, isMail), merged)
}

// Pressing returns how many items are more than news for the owner: the number of badges.
func Pressing(items []Item) (count int) {
	for _, item := range items {
		if item.Urgency != Info {
			count++
		}
	}
	return count
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
