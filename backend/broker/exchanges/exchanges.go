// Package exchanges notices when two sessions only write each other, and holds back the
// mail of pairs that the owner paused (QUI-02). The counts are lost with the broker; the
// pauses are in a file.
package exchanges

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bridge/backend/broker/presence"
	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/exchange"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/config"
	"bridge/backend/storage/store"
)

// File keeps the pauses; config.PausesFile implements it.
type File interface {
	Pauses() ([]config.Pause, error)
	SetPauses(pauses []config.Pause) error
}

// Options configures a [Service]. All fields are required.
type Options struct {
	File     File
	Presence *presence.Presence
	DB       *store.DB
	Settings func() (config.Settings, error) // read from the file at each use
	Now      func() time.Time
	Log      *slog.Logger
	Changed  func() // called after a change that the page shows
	// Announce wakes a session for mail that waits, if the mail may wake it.
	Announce func(ctx context.Context, s *session.Session)
}

// Service counts the messages of each pair of sessions, and knows the paused pairs. All
// methods are safe for concurrent use. Its lock is below that of the presence: methods
// that need the presence's lock are named …Locked.
type Service struct {
	opts     Options
	changing sync.Mutex // held while the owner decides, and while the file is written

	mu      sync.Mutex // guards the fields below
	talks   exchange.Talks
	pauses  []config.Pause
	aliases map[string]string // peer ids that sessions had, and their present ones
}

// Open returns a service with the pauses of the file. If the file is unreadable, it logs
// the error, pauses nothing, and leaves the file as it is.
func Open(opts Options) *Service {
	s := &Service{opts: opts, aliases: map[string]string{}}
	pauses, err := opts.File.Pauses()
	if err != nil {
		opts.Log.Warn("no exchange of sessions is paused", "err", err)
	}
	s.pauses = pauses
	return s
}

// Sent counts stored messages. Words of the owner start the counts of their recipient anew.
func (s *Service) Sent(stored []bridge.Message) {
	now := s.opts.Now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range stored {
		switch {
		case m.From.Agent == bridge.Owner:
			s.talks.Reset(s.idLocked(m.Recipient))
		case isExchanged(m):
			s.talks.Sent(s.idLocked(m.From.ID), s.idLocked(m.Recipient), now)
		}
	}
}

// isExchanged reports whether a session wrote the message to another one: it is no notice
// of a decision, and no report of a job.
func isExchanged(m bridge.Message) bool {
	return wake.IsOfAgent(m) && !mail.IsNotice(m.ConversationID, m.ReplyTo, m.Hop)
}

// OwnerWrote starts the counts of a session anew, because the owner wrote to it.
func (s *Service) OwnerWrote(peerID string) {
	s.mu.Lock()
	changed := s.talks.Reset(s.idLocked(peerID))
	s.mu.Unlock()
	if changed {
		s.opts.Changed()
	}
}

// Heard starts the counts of a session anew if a hook call reports work: a tool that is
// not Bridge's, or a prompt that the owner typed.
func (s *Service) Heard(peer *session.Session, call session.HookCall) {
	typed := call.Event == session.EventPrompt && call.ChildID == "" && mail.IsOfPerson(call.Prompt)
	if !call.Works && !typed {
		return
	}
	s.opts.Presence.Lock()
	id, isJob := peer.ID, peer.Host == session.HostRunner
	s.opts.Presence.Unlock()
	if call.Works || !isJob { // an agent writes the prompts of a job
		s.OwnerWrote(id)
	}
}

// Identified moves what is known of a session under earlier ids to its peer id.
func (s *Service) Identified(id string, former []string) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	moved := false
	for _, old := range former {
		if old == id || s.aliases[old] == id {
			continue
		}
		s.aliases[old] = id
		s.talks.Move(old, id)
		for i, p := range s.pauses {
			if pair := exchange.PairOf(p.A, p.B); pair.Has(old) {
				pair = pair.Moved(old, id)
				s.pauses[i].A, s.pauses[i].B, moved = pair.A, pair.B, true
			}
		}
	}
	pauses := slices.Clone(s.pauses)
	s.pruneLocked()
	s.mu.Unlock()
	if !moved {
		return
	}
	if err := s.opts.File.SetPauses(pauses); err != nil {
		s.opts.Log.Warn("a pause of an exchange will not survive this broker", "err", err)
	}
}

// mostAliases limits the earlier ids that are kept, so that a broker that runs for months
// does not grow.
const mostAliases = 1000

// pruneLocked forgets the earlier ids of sessions in no paused pair once there are too
// many. A message under such an id then counts for a pair of its own.
func (s *Service) pruneLocked() {
	if len(s.aliases) <= mostAliases {
		return
	}
	paused := map[string]bool{}
	for _, p := range s.pauses {
		paused[p.A], paused[p.B] = true, true
	}
	aliases := map[string]string{}
	for old := range s.aliases {
		if id := s.idLocked(old); paused[id] {
			aliases[old] = id
		}
	}
	s.aliases = aliases
}

// idLocked returns the present id of a session, under the service's own lock.
func (s *Service) idLocked(peerID string) string {
	for range len(s.aliases) {
		next, ok := s.aliases[peerID]
		if !ok {
			break
		}
		peerID = next
	}
	return peerID
}

// most returns how many messages a pair may exchange, 0 for any number.
func (s *Service) most() int {
	settings, err := s.opts.Settings()
	if err != nil {
		return bridge.DefaultExchange
	}
	return settings.Mail.Exchange
}

// Holds reports whether the message waits because the owner paused the pair.
func (s *Service) Holds(m bridge.Message) bool {
	if !isExchanged(m) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isPausedLocked(exchange.PairOf(s.idLocked(m.From.ID), s.idLocked(m.Recipient)))
}

func (s *Service) isPausedLocked(pair exchange.Pair) bool {
	return slices.ContainsFunc(s.pauses, func(p config.Pause) bool { return isPause(p) && exchange.PairOf(p.A, p.B) == pair })
}

// isPause reports whether an entry of the file names two sessions.
func isPause(p config.Pause) bool { return p.A != "" && p.B != "" && p.A != p.B }

// sendersTo returns the ids whose mail to the session waits.
func (s *Service) sendersTo(recipient string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	recipient = s.idLocked(recipient)
	for _, p := range s.pauses {
		pair := exchange.PairOf(p.A, p.B)
		if !isPause(p) || !pair.Has(recipient) {
			continue
		}
		ids = append(ids, s.idsLocked(pair.Other(recipient))...)
	}
	return ids
}

// idsLocked returns the present id of a session and those that it had.
func (s *Service) idsLocked(id string) []string {
	ids := []string{id}
	for old := range s.aliases {
		if s.idLocked(old) == id {
			ids = append(ids, old)
		}
	}
	return ids
}

// held counts the messages of these senders that wait for the session.
func (s *Service) held(ctx context.Context, recipient string, senders []string) (count int, err error) {
	for _, sender := range senders {
		n, err := store.WaitingFrom(ctx, s.opts.DB.Reader, recipient, sender)
		if err != nil {
			return 0, err
		}
		count += n
	}
	return count, nil
}

// Waiting returns the mail that waits for the session and may be given to it, as
// store.Reader.Waiting does: without the mail of paused pairs, which it reads past. It
// fails if the store cannot be read.
func (s *Service) Waiting(ctx context.Context, recipient string, limit int, first mail.Priority) ([]mail.Delivery, error) {
	senders := s.sendersTo(recipient)
	if len(senders) == 0 {
		return s.opts.DB.Waiting(ctx, recipient, limit, first)
	}
	held, err := s.held(ctx, recipient, senders)
	if err != nil {
		return nil, err
	}
	holds := func(d mail.Delivery) bool { return s.Holds(d.Message) }
	if first != nil {
		first = first.And(func(d mail.Delivery) bool { return !holds(d) })
	}
	unread, err := s.opts.DB.Waiting(ctx, recipient, limit+held, first)
	return slices.DeleteFunc(unread, holds), err
}

// WaitingCount counts that mail. It fails if the store cannot be read.
func (s *Service) WaitingCount(ctx context.Context, recipient string) (int, error) {
	held, err := s.held(ctx, recipient, s.sendersTo(recipient))
	if err != nil {
		return 0, err
	}
	waiting, err := s.opts.DB.WaitingCount(ctx, recipient)
	return max(0, waiting-held), err
}

// WakeNowLocked returns the transport by which m starts a turn of peer now, "" for none. It
// is mailbox.Boxes.WakeNow without the mail of paused pairs.
func (s *Service) WakeNowLocked(peer *session.Session, m bridge.Message, now int64) mail.Via {
	if s.Holds(m) {
		return ""
	}
	return s.opts.Presence.Boxes.WakeNow(peer, m, now)
}

// WaitsLocked returns why m waits: the owner paused the pair, or the limits of wakes of an
// idle session hold it back. It returns "" for no such reason.
func (s *Service) WaitsLocked(m bridge.Message, now int64) string {
	p := s.opts.Presence
	if s.Holds(m) {
		from, to := m.From.Name, p.NameLocked(m.Recipient)
		return "waits: the owner paused the messages between " + from + " and " + to + "; " + to + " gets it when the owner resumes them"
	}
	if peer, live := p.Roster.Get(m.Recipient); live {
		return p.Boxes.Waits(peer, m, now)
	}
	return ""
}
