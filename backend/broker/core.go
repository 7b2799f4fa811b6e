package broker

import (
	"context"
	"os"
	"time"

	"bridge/backend/broker/events"
	"bridge/backend/broker/presence"
	"bridge/backend/broker/wake"
	"bridge/backend/core/needs"
	"bridge/backend/core/session"
	"bridge/backend/platform/lifecycle"
)

// core is what the parts of a broker share: who is here, what tells of changes, the
// broker's own life, and the parts themselves. Each part has a file by its noun,
// holds the state that only it needs, and serves the operations of its noun.
type core struct {
	presence.Callers
	parts
	opts    Options
	ledger  wake.Ledger
	feed    *events.Feed
	jobs    Delegated // nil where there are none; set before anybody connects
	pairs   Pairs     // as jobs
	prompts Prompts   // as jobs
	gather  func(context.Context) (needs.Facts, error)

	// tasks are the broker's own goroutines: wakes and looks under way.
	tasks *lifecycle.Tasks
}

// parts are the parts of a broker.
type parts struct {
	sessions  *sessions  // who registers, calls and leaves
	hooks     *hooks     // what hooks and plugins tell, and take
	leases    *leases    // mail given out until it is acknowledged
	activity  *activity  // what a sign of life says about mail that was handed over
	messages  *messages  // what is sent
	inbox     *inbox     // what is read by tools
	history   *history   // what is looked up
	decisions *decisions // what is decided
	chats     *chats     // the owner's words
	children  *children  // the native children of sessions
	idleness  *idleness  // sessions that were left at work
	wakes     *wakes     // what became of wakes
	wakeHooks *wakeHooks // claude's hooks that wait
	channels  *channels  // claude's channels
	mods      *mods      // claude's mods
	queues    *queues    // codex's queue
	status    *status    // what is shown of all this
	pairMail  *pairMail  // what goes to paired PCs and comes from them
}

// point is a moment in the broker's work that a test can hold.
type point string

func (c *core) at(p point) {
	if c.opts.step != nil {
		c.opts.step(p)
	}
}

// link is what is kept of one connection.
type link = presence.Link

// nowMillis is the present in Unix epoch milliseconds.
func (c *core) nowMillis() int64 { return c.opts.Now().UnixMilli() }

// changed counts a revision and tells everyone who watches.
func (c *core) changed() { c.feed.Changed() }

// setBusyLocked keeps whether a session is at work, and, of a live one, from when on:
// nobody would note the end of one that has left.
func (c *core) setBusyLocked(s *session.Session, busy bool) {
	s.Busy = busy
	if c.Boxes[s.ID] != nil {
		c.Turns.Note(s.ID, busy, c.nowMillis())
	}
}

// soon runs do by itself after a pause, unless the broker ends before.
func (c *core) soon(pause time.Duration, do func(context.Context)) {
	c.tasks.Go(func() {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
			do(c.tasks.Context())
		case <-c.tasks.Done():
		}
	})
}

func ownPID() int { return os.Getpid() }
