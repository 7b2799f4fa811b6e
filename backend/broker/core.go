package broker

import (
	"context"
	"os"
	"time"

	"bridge/backend/broker/costs"
	"bridge/backend/broker/events"
	"bridge/backend/broker/exchanges"
	"bridge/backend/broker/presence"
	"bridge/backend/broker/wake"
	"bridge/backend/core/needs"
	"bridge/backend/platform/lifecycle"
)

// core is the state that the parts of a broker share: presence, the event feed, the
// broker's own goroutines, and the parts. Each part has a file named by its noun. It
// holds the state that only it needs and serves the operations of its noun.
type core struct {
	presence.Callers
	parts
	opts   Options
	ledger wake.Ledger
	feed   *events.Feed
	costs  costs.Service
	// Exchanges holds back the mail of the pairs of sessions that the owner paused.
	Exchanges *exchanges.Service
	jobs      Delegated // nil if there are none; set before the first connection
	pairs     Pairs     // like jobs
	prompts   Prompts   // like jobs
	gather    func(context.Context) (needs.Facts, error)

	// tasks runs the broker's own goroutines, such as pending wakes and checks.
	tasks *lifecycle.Tasks
}

// parts holds the parts of a broker.
type parts struct {
	sessions  *sessions         // registration, callers and leaving
	hooks     *hooks            // the calls of hooks and plugins, and their mail
	leases    *leases           // mail that is leased until it is acknowledged
	activity  *activity         // the effect of activity on handed-over mail
	messages  *messages         // sending
	inbox     *inbox            // reading by tools
	history   *history          // searching
	decisions *decisions        // decisions
	chats     *chats            // the owner's chat messages
	children  *children         // the native children of sessions
	idleness  presence.Idleness // whether sessions are still at work
	wakes     *wakes            // the outcome of wakes
	wakeHooks *wakeHooks        // claude's waiting hooks
	channels  *channels         // claude's channels
	mods      *mods             // claude's mods
	queues    *queues           // codex's queue
	status    *status           // the status of all of them
	pairMail  *pairMail         // mail to and from paired PCs
}

// point names a moment in the broker's work at which a test can block it.
type point string

const doubting point = "a session that claude called idle is looked at again"

func (c *core) at(p point) {
	if c.opts.step != nil {
		c.opts.step(p)
	}
}

// link is the broker's state of one connection.
type link = presence.Link

// nowMillis returns the present in Unix epoch milliseconds.
func (c *core) nowMillis() int64 { return c.opts.Now().UnixMilli() }

// changed increments the revision and notifies all watchers.
func (c *core) changed() { c.feed.Changed() }

// soon runs do in the background after pause, unless the broker ends before.
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
