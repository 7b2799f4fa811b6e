package app

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/app/mark"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/needs"
	"bridge/backend/storage/maintain/check"
)

// State is the state that the tray's icon shows.
type State string

// The states.
const (
	Idle           State = "idle"
	Working        State = "working"
	NeedsYou       State = "needs you"
	StorageWarning State = "storage warning"
	StorageError   State = "storage error"
	Offline        State = "offline"
)

// badges gives every state a shape of its own.
var badges = map[State]mark.Badge{
	Idle: mark.Plain, Working: mark.Dots, NeedsYou: mark.Circle,
	StorageWarning: mark.Triangle, StorageError: mark.Cross, Offline: mark.Broken,
}

// Facts are all that a Status is made of.
type Facts struct {
	// Starting holds until the first broker answered or could not be had.
	Starting bool
	// Problem says, in one sentence, why there is no broker; "" with one.
	Problem string
	// URL is the dashboard's address and Port the one that the settings ask for,
	// 0 for any.
	URL  string
	Port int

	Sessions int // live ones
	Busy     int // of them
	// Known holds the facts about what needs the owner; nil while they are unknown.
	Known *needs.Facts
	// Jobs are the delegated jobs; nil while they are unknown. Since is when the app
	// began: jobs that had ended before are no news.
	Jobs  []Job
	Since time.Time

	Storage Storage

	// Autostart says whether the app starts at login; NoAutostart says why it can
	// not, "" where it can.
	Autostart   bool
	NoAutostart string
}

// Job is a delegated job, as far as the tray is concerned.
type Job struct {
	Name    string
	State   job.State
	EndedAt time.Time // zero while it goes on
}

// Storage is what is known about the home's storage.
type Storage struct {
	Summary check.Summary
	// First is the worst finding in words, "" without any.
	First string
	// Problem says why the storage could not be looked at.
	Problem string
	// BadSince is when errors or a problem were first seen, zero while there are none.
	BadSince time.Time
	// Doing is the work under way: backingUp, checking or "".
	Doing string
	// Result is what became of the last work that the owner asked for here, and
	// Failed whether it came to nothing.
	Result string
	Failed bool
}

// The works that the owner can ask for.
const (
	backingUp = "Backing up…"
	checking  = "Checking…"
)

// Sorts of notices beside the sorts of needs. They need no answer.
const (
	jobFinished needs.Sort = "job-finished"
	workFailed  needs.Sort = "work-failed"
)

// Status is what the tray shows, whole.
type Status struct {
	State    State
	Words    string       // what the icon tells, in words
	Needs    []needs.Item // as every other place lists them
	Told     []needs.Item // what notices tell: needs, and what has happened while the app ran
	Whole    bool         // Told is complete; false while some facts are unknown
	Backup   string       // how old the newest backup is
	Busy     string       // the work under way, which no other may join; "" without
	Result   string       // of the last work, "" before any
	Address  string       // why the dashboard is not where it is expected, "" where it is
	Live     bool         // a broker answers: the dashboard can be opened
	Login    bool         // it starts at login
	LoginWhy string       // why that cannot be changed, "" where it can
}

// Describe is the one rule for what the tray shows. What keeps Bridge from
// working at all comes first, then what may cost data, then who waits for you.
func Describe(f Facts, now time.Time) Status {
	status := Status{
		Needs: needs.List(f.needs(), now), Backup: backupAge(f.Storage, now), Busy: f.Storage.Doing, Result: f.Storage.Result,
		Whole: f.Known != nil && f.Jobs != nil,
		Live:  f.Problem == "" && !f.Starting, Login: f.Autostart, LoginWhy: f.NoAutostart,
	}
	status.Told = told(f, status.Needs)
	status.State = state(f, status.Needs)
	status.Words = bridge.VisibleLine(words(f, status))
	if status.Live {
		status.Address = elsewhere(f)
	}
	return status
}

// needs are the broker's facts, with the storage as the app itself sees it: it looks
// oftener, and also where there is no broker.
func (f Facts) needs() (facts needs.Facts) {
	if f.Known != nil {
		facts = *f.Known
	}
	s := f.Storage
	facts.Storage = needs.StorageFact{
		Home: facts.Storage.Home, Errors: s.Summary.Errors, Warnings: s.Summary.Warnings, First: s.First, Problem: s.Problem, Since: s.BadSince.UnixMilli(),
	}
	return facts
}

func state(f Facts, list []needs.Item) State {
	switch sum := f.Storage.Summary; {
	case f.Problem != "" || f.Starting:
		return Offline
	case sum.Errors > 0 || f.Storage.Problem != "":
		return StorageError
	case len(list) > 0:
		return NeedsYou
	case sum.Warnings > 0:
		return StorageWarning
	case f.Busy > 0 || atWork(f.Jobs) > 0:
		return Working
	}
	return Idle
}

// told returns the needs with notices, and the jobs that have ended since the app began. A
// cancelled job is no news.
func told(f Facts, list []needs.Item) (items []needs.Item) {
	for _, item := range list {
		if item.Sort != needs.JobEnded || item.Since >= f.Since.UnixMilli() {
			items = append(items, item)
		}
	}
	for _, entry := range f.Jobs {
		if entry.State == job.Finished && !entry.EndedAt.Before(f.Since) {
			items = append(items, needs.Item{Sort: jobFinished, ID: fmt.Sprintf("%s %d", entry.Name, entry.EndedAt.UnixMilli())})
		}
	}
	if f.Storage.Failed {
		items = append(items, needs.Item{Sort: workFailed, ID: f.Storage.Result})
	}
	return items
}

// atWork counts the jobs that go on.
func atWork(jobs []Job) (count int) {
	for _, entry := range jobs {
		if entry.State.IsActive() {
			count++
		}
	}
	return count
}

// Tooltip is what the icon says by itself.
func (s Status) Tooltip() string { return "Bridge: " + s.Words }

// Line is the menu's first line: desktops that show no tooltip have the words
// there. Where something needs the owner, it counts what does: the needs follow.
func (s Status) Line() string {
	if n := len(s.Needs); n > 0 {
		return bridge.Counted(n, "thing") + " for you"
	}
	return s.Words
}

// words says what the icon shows.
func words(f Facts, s Status) string {
	switch s.State {
	case Offline:
		if f.Starting {
			return "Starting"
		}
		return "Offline. " + f.Problem
	case StorageError, NeedsYou:
		return headline(s)
	case StorageWarning:
		return strings.TrimSuffix("The storage has "+bridge.Counted(f.Storage.Summary.Warnings, "warning")+". "+f.Storage.First, ". ")
	case Working:
		text := fmt.Sprintf("%d of %s at work", f.Busy, bridge.Counted(f.Sessions, "session"))
		if jobs := atWork(f.Jobs); jobs > 0 {
			text += ", " + bridge.Counted(jobs, "job")
		}
		return text
	case Idle:
	}
	if f.Sessions == 0 {
		return "OK, no sessions"
	}
	return "OK, " + bridge.Counted(f.Sessions, "session")
}

// headline is the first need, what may cost data before all else, and the number of
// the others. An agent's words are left out: others see the screen, too.
func headline(s Status) string {
	first := s.Needs[0]
	if at := slices.IndexFunc(s.Needs, func(i needs.Item) bool { return i.Sort == needs.Storage }); at >= 0 {
		first = s.Needs[at]
		return first.Title + ". " + strings.TrimSuffix(first.Detail, ".")
	}
	if others := len(s.Needs) - 1; others > 0 {
		return fmt.Sprintf("%s, and %d more", first.Plain(), others)
	}
	return first.Plain()
}

func backupAge(s Storage, now time.Time) string {
	if s.Summary.LastBackup == nil {
		return "No backup yet"
	}
	return "Last backup: " + bridge.Ago(*s.Summary.LastBackup, now)
}

// elsewhere says that another program has the port that the settings ask for.
func elsewhere(f Facts) string {
	address, err := url.Parse(f.URL)
	if err != nil || f.Port == 0 || address.Port() == strconv.Itoa(f.Port) {
		return ""
	}
	return fmt.Sprintf("The dashboard is at %s: port %d is not free", address.Host, f.Port)
}
