package app

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bridge/app/mark"
	"bridge/backend/bridge"
	"bridge/backend/maintain/check"
)

// State is what the tray's icon tells.
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
	// Waiting is what idle sessions have not read for long: each needs a turn.
	Waiting []Waiting

	Storage Storage

	// Autostart says whether the app starts at login; NoAutostart says why it can
	// not, "" where it can.
	Autostart   bool
	NoAutostart string
}

// Waiting is the mail that one idle session has not read for long.
type Waiting struct {
	Session  string // its name
	Messages int
	Since    time.Time // when the oldest came
}

// Storage is what is known about the home's storage.
type Storage struct {
	Summary check.Summary
	// First is the worst finding in words, "" without any.
	First string
	// Problem says why the storage could not be looked at.
	Problem string
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

// Kind is what a need is about.
type Kind string

// The kinds of needs.
const (
	SessionWaits  Kind = "session"
	StorageBroken Kind = "storage"
	WorkFailed    Kind = "work"
)

// Need is one thing that needs the owner.
type Need struct {
	Kind Kind
	// ID tells this need from others, and from the same one at another time.
	ID    string
	Title string
	Place string // in the dashboard, as "#/storage"
}

// Status is what the tray shows, whole.
type Status struct {
	State    State
	Words    string // what the icon tells, in words
	Needs    []Need // the most urgent first
	Backup   string // how old the newest backup is
	Busy     string // the work under way, which no other may join; "" without
	Result   string // of the last work, "" before any
	Address  string // why the dashboard is not where it is expected, "" where it is
	Live     bool   // a broker answers: the dashboard can be opened
	Login    bool   // it starts at login
	LoginWhy string // why that cannot be changed, "" where it can
}

// Describe is the one rule for what the tray shows. What keeps Bridge from
// working at all comes first, then what may cost data, then who waits for you.
func Describe(f Facts, now time.Time) Status {
	status := Status{
		Needs: needs(f, now), Backup: backupAge(f.Storage, now), Busy: f.Storage.Doing, Result: f.Storage.Result,
		Live: f.Problem == "" && !f.Starting, Login: f.Autostart, LoginWhy: f.NoAutostart,
	}
	status.State = state(f, status.Needs)
	status.Words = words(f, status)
	if status.Live {
		status.Address = elsewhere(f)
	}
	return status
}

func state(f Facts, needs []Need) State {
	switch sum := f.Storage.Summary; {
	case f.Problem != "" || f.Starting:
		return Offline
	case sum.Errors > 0 || f.Storage.Problem != "":
		return StorageError
	case len(needs) > 0:
		return NeedsYou
	case sum.Warnings > 0:
		return StorageWarning
	case f.Busy > 0:
		return Working
	}
	return Idle
}

const storagePlace = "#/storage"

func needs(f Facts, now time.Time) []Need {
	var needs []Need
	if sum := f.Storage.Summary; sum.Errors > 0 {
		needs = append(needs, Need{StorageBroken, "errors " + strconv.Itoa(sum.Errors), "The storage has " + bridge.Counted(sum.Errors, "error"), storagePlace})
	}
	if f.Storage.Problem != "" {
		needs = append(needs, Need{StorageBroken, "unknown", "The storage cannot be looked at: " + f.Storage.Problem, storagePlace})
	}
	if f.Storage.Failed {
		needs = append(needs, Need{WorkFailed, f.Storage.Result, f.Storage.Result, storagePlace})
	}
	for _, w := range f.Waiting {
		needs = append(needs, Need{
			SessionWaits, fmt.Sprintf("%s %d", w.Session, w.Since.UnixMilli()),
			fmt.Sprintf("%s has not read %s for %s", w.Session, bridge.Counted(w.Messages, "message"), bridge.Span(now.Sub(w.Since))),
			"#/sessions/" + url.PathEscape(w.Session),
		})
	}
	return needs
}

// Tooltip is what the icon says by itself.
func (s Status) Tooltip() string { return "Bridge: " + s.Words }

// Line is the menu's first line: desktops that show no tooltip have the words
// there. Where something needs the owner, the needs say it.
func (s Status) Line() string {
	if len(s.Needs) > 0 {
		return ""
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
		return headline(f, s)
	case StorageWarning:
		return strings.TrimSuffix("The storage has "+bridge.Counted(f.Storage.Summary.Warnings, "warning")+". "+f.Storage.First, ". ")
	case Working:
		return fmt.Sprintf("%d of %s at work", f.Busy, bridge.Counted(f.Sessions, "session"))
	case Idle:
	}
	if f.Sessions == 0 {
		return "OK, no sessions"
	}
	return "OK, " + bridge.Counted(f.Sessions, "session")
}

// headline is the first need, with its detail or the number of the others.
func headline(f Facts, s Status) string {
	first := s.Needs[0]
	if first.Kind == StorageBroken && f.Storage.First != "" {
		return first.Title + ". " + f.Storage.First
	}
	if others := len(s.Needs) - 1; others > 0 {
		return fmt.Sprintf("%s, and %d more", first.Title, others)
	}
	return first.Title
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
