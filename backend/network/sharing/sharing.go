// Package sharing exchanges everything but jobs with other PCs, over any transport of
// frames. Messages go to sessions of the other PC and their receipts come back. Decisions
// for all sessions are exchanged. Each PC shows the other a list of its sessions and
// jobs. The owner's policy is checked each time; the rules are in remote, and durable
// data is in the store.
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

// Broker is the part of this PC's broker that sharing uses.
type Broker interface {
	// Watch returns a channel that gets a signal after changes, until stop is called.
	Watch() (changes <-chan struct{}, stop func())
	// StoreFrom stores letters for the sessions that they name, each once. It returns for
	// each why it is not stored.
	StoreFrom(ctx context.Context, pc remote.PC, letters []remote.Letter, shift int64) []error
	// Import stores decisions of another PC, each once, and notifies the sessions of new
	// and current ones.
	Import(ctx context.Context, pc remote.PC, revisions []decision.Revision, tell bool) (added int, err error)
	// NotifyDecisions notifies the sessions of decisions of other PCs, once each. notified holds the
	// ids for which there was a session.
	NotifyDecisions(ctx context.Context, news []decision.News) (notified map[string]bool, err error)
	Peers(ctx context.Context) ([]api.Peer, error)
	Changed()
}

// Options configures a [Sharing]. All fields except Team, Spool, Jobs, Refused, Waits and
// Timing are required.
type Options struct {
	Transport pairing.Transport
	// Spool stores messages for PCs that are away; nil if they wait only here.
	Spool pairing.Spool
	// Team returns the access to the decisions of this PC's team; false while there is none.
	Team func() (pairing.TeamStream, bool)
	// Policy returns what the owner of this PC allows now.
	Policy func() (remote.Policy, error)
	DB     *store.DB
	Broker Broker
	// Jobs returns the delegated jobs of this PC; nil if there are none.
	Jobs func() []api.JobView
	// Refused is called for messages and decisions of a PC that were refused.
	Refused func(from remote.PC, why error)
	// Waits is called with the number of decisions that wait for the team's connected
	// hub, and the reason; 0 if none waits for such a reason. It may be nil.
	Waits  func(decisions int, why error)
	Now    func() time.Time
	Log    *slog.Logger
	Timing Timing
}

// Timing sets the intervals and timeouts of sharing.
type Timing struct {
	PollInterval time.Duration // how often the settings are checked
	Resend       time.Duration // an unanswered frame is sent again after this time
	Recall       time.Duration // letters at the hub are recalled after this time if the PC does not take them
	Held         time.Duration // what the spool refused is offered again after this time
	Answer       time.Duration // how long to wait for a list
	Fresh        time.Duration // the maximum age of a list that counts as current
}

var usualTiming = Timing{PollInterval: 5 * time.Second, Resend: 20 * time.Second, Recall: time.Minute, Held: 30 * time.Second, Answer: 1500 * time.Millisecond, Fresh: 5 * time.Second}

// Capabilities returns what this PC supports with other PCs by this package.
func Capabilities() []string {
	return []string{remote.MessagesCapability, remote.DecisionsCapability, remote.WithdrawalsCapability, remote.DashboardCapability}
}

// Sharing handles the exchange with all other PCs.
type Sharing struct {
	opts Options

	team *team // nil without Options.Team

	seen   seen             // used by the follow goroutine only
	sooner lifecycle.Signal // check again

	mu    sync.Mutex // guards the fields below
	pairs map[string]*pair

	tasks *lifecycle.Tasks
}

// New returns a sharing; Run starts it.
func New(opts Options) *Sharing {
	if opts.Timing == (Timing{}) {
		opts.Timing = usualTiming
	}
	s := &Sharing{opts: opts, pairs: map[string]*pair{}, sooner: lifecycle.NewSignal()}
	s.tasks = lifecycle.NewTasks(context.Background())
	if opts.Team != nil {
		s.team = newTeam(s)
	}
	return s
}

// Run starts to process changes, until Close.
func (s *Sharing) Run() {
	if s.team != nil {
		s.tasks.Go(s.team.run)
	}
	changes, stop := s.opts.Broker.Watch()
	s.tasks.Go(func() {
		defer stop()
		look := time.NewTicker(s.opts.Timing.PollInterval)
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

// Close stops it. Waiting data is in the store.
func (s *Sharing) Close() {
	s.mu.Lock() // no goroutine starts after this
	s.tasks.Cancel()
	s.mu.Unlock()
	s.tasks.Wait()
}

// pair returns the pair of one PC and starts it if needed; nil after Close.
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

// workerOf returns the running pair of a PC; nil if there is none.
func (s *Sharing) workerOf(id string) *pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pairs[id]
}

// FrameTypes returns the types of the frames that Take processes.
func FrameTypes() []string {
	return []string{remote.MessagesFrame, remote.DecisionsFrame, remote.DashboardFrame}
}

// Take queues a frame from a PC, whose identity the transport has verified. It does not
// block: frames that arrive faster than they are processed are dropped. Letters and
// receipts are sent again, decisions requested again.
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
			p.notify()
		}
		err := bridge.Errorf(bridge.Busy, "it sends more than this PC keeps up with")
		s.opts.Log.Warn("a frame of another PC was dropped", "peer", from.Name, "type", frame.Type, "err", err)
		s.refused(from, frame.Type, err)
	}
}

// refused reports a refused frame or part of one. Temporary failures do not count, and neither
// do errors that a correct sender cannot foresee, such as a session that is gone. Refused list
// requests do not count either: their sender repeats them and gets the error each time.
func (s *Sharing) refused(from remote.PC, frameType string, why error) {
	counts := []bridge.Code{bridge.Denied, bridge.Invalid, bridge.TooLarge, bridge.Unauthorized, bridge.Busy}
	if s.opts.Refused != nil && frameType != remote.DashboardFrame && slices.Contains(counts, bridge.CodeOf(why)) {
		s.opts.Refused(from, why)
	}
}

// PC implements broker.Pairs: a PC to which messages can be sent, now or later. It fails with
// NotFound for an unknown PC, and with Unsupported if a connected PC's release cannot receive
// messages.
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

// Waiting implements broker.Pairs.
func (s *Sharing) Waiting(pc string) {
	if p := s.workerOf(pc); p != nil {
		p.notify()
		return
	}
	s.sooner.Notify()
}

// allows checks the owner's present policy. It fails with Denied if the settings cannot be read.
func (s *Sharing) allows(share remote.Share, name string) error {
	policy, err := s.opts.Policy()
	if err != nil {
		return bridge.WithCause(bridge.Denied, err, "the settings of this PC cannot be read: nothing is allowed")
	}
	return policy.AllowShare(share, name)
}

func (s *Sharing) now() int64 { return s.opts.Now().UnixMilli() }
