package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/daemon"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/storage/maintain"
	"bridge/backend/storage/maintain/check"
)

// storage holds the state of the home's storage. It makes a quick check after each change in the
// home except mail. It makes a full check when the quick result changes, when the owner asks,
// and at least once in checkEvery.
type storage struct {
	opts    daemon.Options
	changed func() // gather the facts anew

	requests chan work // what the owner wants done; one waits

	mu       sync.Mutex // guards below
	known    Storage
	quick    check.Summary // the last quick look
	atCheck  check.Summary // the quick look before the last whole check
	lastFull check.Report  // the last whole check
	checked  bool
	lastTook time.Duration // of the last whole check
	lastEnd  time.Time
}

// work is something that the owner can ask for.
type work struct {
	doing string
	do    func(context.Context, *storage) (result string, err error)
}

const (
	// settle is how long the home must be quiet before it is looked at: what
	// belongs together is seen together.
	settle = 200 * time.Millisecond
	// checkEvery is the longest time between two full checks without a request.
	checkEvery = time.Hour
	// checkRest is how many times longer than a check the time between two is.
	checkRest = 20
)

func newStorage(opts daemon.Options, changed func()) *storage {
	return &storage{opts: opts, changed: changed, requests: make(chan work, 1)}
}

// facts are what is known now.
func (s *storage) facts() Storage {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known
	known.Summary = s.quick.Worse(s.lastFull.Summary())
	if isBad := known.Summary.Errors > 0 || known.Problem != ""; isBad && s.known.BadSince.IsZero() {
		s.known.BadSince = s.opts.Now()
	} else if !isBad {
		s.known.BadSince = time.Time{}
	}
	known.BadSince = s.known.BadSince
	if len(s.lastFull.Findings) > 0 {
		first := s.lastFull.Findings[0]
		known.First = first.Path + ": " + first.Detail
	}
	return known
}

// run watches the home and does what is asked until ctx ends.
func (s *storage) run(ctx context.Context) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		s.opts.Log.Warn("changes of the home cannot be watched; it is looked at once an hour", "err", err)
		watcher = &fsnotify.Watcher{} // its channels are nil: they never bring anything
	} else {
		defer func() { _ = watcher.Close() }() // it holds nothing
	}
	hourly := time.NewTicker(checkEvery)
	defer hourly.Stop()
	later := s.look(ctx, watcher)
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-watcher.Events:
			if !telling(event) {
				continue
			}
			s.untilQuiet(ctx, watcher)
		case err := <-watcher.Errors:
			s.opts.Log.Warn("changes of the home may have been missed", "err", err)
		case work := <-s.requests:
			s.perform(ctx, work)
		case <-hourly.C:
			_ = s.check(ctx) // the facts tell it
		case <-later:
		}
		later = s.look(ctx, watcher)
	}
}

// telling reports whether an event may change the result of a check. Writes to databases and
// logs do not count, because mail causes them all day.
func telling(event fsnotify.Event) bool {
	name := filepath.Base(event.Name)
	for _, suffix := range []string{"-wal", "-shm", "-journal", ".sock", ".lock"} {
		if strings.HasSuffix(name, suffix) {
			return false
		}
	}
	return event.Op != fsnotify.Write || strings.HasSuffix(name, ".json")
}

// untilQuiet waits while more happens, but not for long.
func (s *storage) untilQuiet(ctx context.Context, watcher *fsnotify.Watcher) {
	const most = 3 // a home that never rests is looked at all the same
	for range most {
		if !ipc.Pause(ctx, settle) {
			return
		}
		if drain(watcher.Events) == 0 {
			return
		}
	}
}

// drain removes the waiting events and returns how many of them count.
func drain(events <-chan fsnotify.Event) int {
	count := 0
	for {
		select {
		case event := <-events:
			if telling(event) {
				count++
			}
		default:
			return count
		}
	}
}

// maintenance is the app's, with the settings in force.
func (s *storage) maintenance() maintain.Maintenance {
	settings, err := s.opts.Home.Settings(s.opts.Getenv)
	if err != nil {
		settings = config.Settings{} // it keeps all snapshots
	}
	return maintain.New(s.opts.Home, "the desktop app", settings, s.opts.Now)
}

// look makes a quick check, and a full one if the quick result has changed. If the last full
// check was just now, it returns a channel for the next one, else nil.
func (s *storage) look(ctx context.Context, watcher *fsnotify.Watcher) (later <-chan time.Time) {
	s.watch(watcher)
	quick, err := s.maintenance().Doctor().QuickCheck(ctx)
	if ctx.Err() != nil {
		return nil
	}
	s.mu.Lock()
	s.known.Problem = ""
	if err != nil {
		s.known.Problem = err.Error()
	} else {
		s.quick = quick.Summary
	}
	news := err == nil && (!s.checked || s.quick.Errors != s.atCheck.Errors || s.quick.Warnings != s.atCheck.Warnings)
	rest := checkRest*s.lastTook - s.opts.Now().Sub(s.lastEnd)
	s.mu.Unlock()
	s.changed()
	if !news {
		return nil
	}
	if rest > 0 {
		return time.After(rest)
	}
	_ = s.check(ctx) // the facts tell it
	return nil
}

// watch looks after the folders in which backups and settings come and go; those
// that are not there yet are watched once they are.
func (s *storage) watch(watcher *fsnotify.Watcher) {
	if watcher.Events == nil {
		return
	}
	for _, dir := range []string{s.opts.Home.Dir(), s.opts.Home.Backups(), s.opts.Home.MessageBackups()} {
		if err := watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.opts.Log.Warn("a folder cannot be watched; it is looked at once an hour", "path", dir, "err", err)
		}
	}
}

// check reads everything.
func (s *storage) check(ctx context.Context) error {
	began := s.opts.Now()
	s.mu.Lock()
	before := s.quick
	s.mu.Unlock()
	report, err := s.maintenance().Doctor().Check(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	s.checked, s.lastEnd = true, s.opts.Now()
	s.lastTook = s.lastEnd.Sub(began)
	s.known.Problem = ""
	if err != nil {
		s.known.Problem = err.Error()
	} else {
		s.lastFull, s.atCheck = report, before
	}
	s.mu.Unlock()
	s.changed()
	return err
}

// ask has something done, unless something else is under way.
func (s *storage) ask(w work) {
	select {
	case s.requests <- w:
	default: // the menu says what is under way
	}
}

func (s *storage) perform(ctx context.Context, w work) {
	s.tell(func(known *Storage) { known.Doing = w.doing })
	result, err := w.do(ctx, s)
	at := s.opts.Now().Format("15:04")
	s.tell(func(known *Storage) {
		known.Doing, known.Failed, known.Result = "", err != nil, fmt.Sprintf("%s, at %s", result, at)
		if err != nil {
			known.Result = fmt.Sprintf("%s failed at %s: %s", strings.TrimSuffix(w.doing, "…"), at, err)
		}
	})
}

func (s *storage) tell(change func(*Storage)) {
	s.mu.Lock()
	change(&s.known)
	s.mu.Unlock()
	s.changed()
}

// backUp makes a full snapshot, as `bridge doctor --backup` does.
var backUp = work{backingUp, func(ctx context.Context, s *storage) (string, error) {
	made, err := s.maintenance().Snapshots().Backup(ctx)
	return "Backed up and verified: " + bridge.Counted(made.Files, "file"), err
}}

// checkNow reads everything, as `bridge doctor` does.
var checkNow = work{checking, func(ctx context.Context, s *storage) (string, error) {
	err := s.check(ctx)
	return "Checked: " + s.facts().Summary.Words(), err
}}
