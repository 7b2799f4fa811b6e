// Package sharing is what paired PCs do for each other besides jobs, over whichever
// transport brings their frames: messages cross to sessions of the other PC and what
// became of them comes back, decisions for all sessions are exchanged, and each shows
// the other a list of its sessions and jobs. The owner's policy is asked anew for
// each; the rules are those of remote, and what is durable is in the store.
package sharing

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/remote"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/storage/store"
)

// Broker is what sharing needs of this PC's broker.
type Broker interface {
	// Watch brings a signal whenever something changed, until stop is called.
	Watch() (changes <-chan struct{}, stop func())
	// TakeFrom stores letters for the sessions that they name, each once, and tells of
	// each why it is not stored.
	TakeFrom(ctx context.Context, pc remote.PC, letters []remote.Letter, shift int64) []error
	// Import stores decisions of another PC, each once, and tells the sessions of those
	// that are new and current.
	Import(ctx context.Context, pc remote.PC, revisions []decision.Revision, tell bool) (fresh int, err error)
	// Tell tells the sessions of decisions of other PCs, once each, and says which of them
	// there was a session for.
	Tell(ctx context.Context, news []decision.News) (heard map[string]bool, err error)
	Peers(ctx context.Context) ([]api.Peer, error)
	Changed()
}

// Options say what sharing works with. All are required but Team, Spool, Jobs, Refused,
// Waits and Pace.
type Options struct {
	Transport pairing.Transport
	// Spool keeps messages for PCs that are away; nil where they wait here alone.
	Spool pairing.Spool
	// Team is the way to the decisions of this PC's team; false while there is none.
	Team func() (pairing.TeamStream, bool)
	// Policy is what the owner of this PC allows now.
	Policy func() (remote.Policy, error)
	DB     *store.DB
	Broker Broker
	// Jobs lists the delegated jobs of this PC; nil where there are none.
	Jobs func() []api.JobView
	// Refused is told of messages and decisions of a PC that were not taken.
	Refused func(from remote.PC, why error)
	// Waits is told how many decisions wait for the team's hub, which is reached, and why;
	// 0 says that none does for such a reason. nil is told nothing.
	Waits func(decisions int, why error)
	Now   func() time.Time
	Log   *slog.Logger
	Pace  Pace
}

// Pace is how long sharing waits for others.
type Pace struct {
	Look   time.Duration // how often the settings are looked at
	Resend time.Duration // what was not answered for so long is sent again
	Recall time.Duration // what lies in the spool so long beside a PC that is there is sent to it
	Held   time.Duration // what the spool did not take is offered to it again
	Answer time.Duration // how long a list is waited for
	Fresh  time.Duration // how old a list may be that is shown as the present one
}

var usualPace = Pace{Look: 5 * time.Second, Resend: 20 * time.Second, Recall: time.Minute, Held: 30 * time.Second, Answer: 1500 * time.Millisecond, Fresh: 5 * time.Second}

// Capabilities are what this PC can do with paired ones by this package.
func Capabilities() []string {
	return []string{remote.MessagesCapability, remote.DecisionsCapability, remote.WithdrawalsCapability, remote.DashboardCapability}
}

// Sharing does it for all paired PCs.
type Sharing struct {
	opts Options

	team *team // nil without Options.Team

	seen   seen             // by the goroutine that follows, and by no other
	sooner lifecycle.Signal // look again

	mu    sync.Mutex // guards below
	pairs map[string]*pair

	tasks *lifecycle.Tasks
}

// New makes it; Run begins.
func New(opts Options) *Sharing {
	if opts.Pace == (Pace{}) {
		opts.Pace = usualPace
	}
	s := &Sharing{opts: opts, pairs: map[string]*pair{}, sooner: lifecycle.NewSignal()}
	s.tasks = lifecycle.NewTasks(context.Background())
	if opts.Team != nil {
		s.team = newTeam(s)
	}
	return s
}

// Run follows what changes until Close.
func (s *Sharing) Run() {
	if s.team != nil {
		s.tasks.Go(s.team.run)
	}
	changes, stop := s.opts.Broker.Watch()
	s.tasks.Go(func() {
		defer stop()
		look := time.NewTicker(s.opts.Pace.Look)
		defer look.Stop()
		for {
			s.follow()
			select {
			case <-changes:
				s.settle()
			case <-s.sooner:
			case <-look.C:
			case <-s.tasks.Done():
				return
			}
		}
	})
}

// Close ends it. What waits is in the store.
func (s *Sharing) Close() {
	s.mu.Lock() // nothing is begun after
	s.tasks.Cancel()
	s.mu.Unlock()
	s.tasks.Wait()
}

// pair is what runs for one PC; nil once this ends.
func (s *Sharing) pair(pc remote.PC) *pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks.HasEnded() {
		return nil
	}
	p := s.pairs[pc.ID]
	if p == nil {
		p = newPair(s, pc)
		s.pairs[pc.ID] = p
		s.tasks.Go(p.run)
	}
	return p
}

// begun is what runs for a PC; nil where nothing does.
func (s *Sharing) begun(id string) *pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pairs[id]
}

// FrameTypes are those of the frames that Take is for.
func FrameTypes() []string {
	return []string{remote.MessagesFrame, remote.DecisionsFrame, remote.DashboardFrame}
}

// Take takes a frame that came from a PC, as the transport has proved it. It does not
// wait: what a PC sends faster than it is worked on is dropped. Letters and receipts are
// sent again, decisions asked for again.
func (s *Sharing) Take(from remote.PC, frame remote.Frame) {
	p := s.pair(remote.PC{ID: from.ID, Name: from.Name})
	if p == nil {
		return
	}
	select {
	case p.in <- frame:
	default:
		if frame.Type == remote.DecisionsFrame {
			p.overrun.note(frame.Payload, s.now())
			p.wake()
		}
		err := bridge.Errorf(bridge.Busy, "it sends more than this PC keeps up with")
		s.opts.Log.Warn("a frame of another PC was dropped", "peer", from.Name, "type", frame.Type, "err", err)
		s.refused(from, frame.Type, err)
	}
}

// refused tells of a frame, or of a part of one, that was not taken. What only could not be
// taken now, or what a right sender cannot know before, such as a session that is gone, is
// none; a list that is not shown is asked for again and again, and its asker told each time.
func (s *Sharing) refused(from remote.PC, frameType string, why error) {
	counts := []bridge.Code{bridge.Denied, bridge.Invalid, bridge.TooLarge, bridge.Unauthorized, bridge.Busy}
	if s.opts.Refused != nil && frameType != remote.DashboardFrame && slices.Contains(counts, bridge.CodeOf(why)) {
		s.opts.Refused(from, why)
	}
}

// PC is broker.Pairs': a paired PC to which messages can be sent, now or later.
func (s *Sharing) PC(name string) (remote.PC, error) {
	for _, status := range s.opts.Transport.Status() {
		if status.Name != name {
			continue
		}
		if status.Up && !status.Can(remote.MessagesCapability) {
			return remote.PC{}, remote.ErrUpdate(status, remote.MessagesCapability)
		}
		return remote.PC{ID: status.ID, Name: status.Name}, nil
	}
	return remote.PC{}, bridge.Errorf(bridge.NotFound, "no PC named %q is paired with this one or in its team", name)
}

// Waiting is broker.Pairs'.
func (s *Sharing) Waiting(pc string) {
	if p := s.begun(pc); p != nil {
		p.wake()
		return
	}
	s.sooner.Notify()
}

// allows asks the owner's policy as it is now. What cannot be read allows nothing.
func (s *Sharing) allows(share remote.Share, name string) error {
	policy, err := s.opts.Policy()
	if err != nil {
		return bridge.WithCause(bridge.Denied, err, "the settings of this PC cannot be read: nothing is allowed")
	}
	return policy.AllowShare(share, name)
}

func (s *Sharing) now() int64 { return s.opts.Now().UnixMilli() }
