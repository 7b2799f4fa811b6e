package server

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
)

// announce publishes the roster entry of one PC to the team, sealed with the hub's key.
func (s *Server) announce(ctx context.Context, pc string, member subject.Member) error {
	body, err := member.Encode()
	if err != nil {
		return err
	}
	s.mu.Lock()
	published := s.announcements[pc]
	number := max(published.newest+1, s.opts.Now().UnixNano())
	s.announcements[pc] = words{newest: number, unheard: append(published.unheard, number)}
	s.mu.Unlock()
	at := subject.BucketKey(subject.RosterBucket(s.opts.Settings.Team), pc)
	value, err := subject.Seal(s.keys.identity.Sign, at, number, body)
	if err == nil {
		defer s.room.lift()()
		_, err = s.js.Publish(ctx, at, value)
	}
	if err == nil && member.Removed {
		s.roster.wasRemoved(pc, member.Name, number)
	}
	return err
}

// words are the numbers of the hub's announcements about a PC.
type words struct {
	newest  int64   // of all nodes
	unheard []int64 // this node's own, oldest first, that it has not received back
}

// read returns the content of a roster entry, if it is the hub's newest announcement. An
// older announcement of this node in flight is valid too: the newest follows it. If it
// were repaired, two in flight would repair each other forever.
func (s *Server) read(pc, at string, data []byte) (member subject.Member, err error) {
	body, number, err := subject.Open(s.ID(), at, data)
	if err == nil {
		member, err = subject.ParseMember(body)
	}
	if err != nil {
		return subject.Member{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	published := s.announcements[pc]
	own := slices.Index(published.unheard, number)
	if own < 0 && number < published.newest {
		return subject.Member{}, bridge.Errorf(bridge.Conflict, "it is older than what the hub has said since")
	}
	// If the number is new, another node announced it.
	s.announcements[pc] = words{newest: max(published.newest, number), unheard: published.unheard[own+1:]}
	return member, nil
}

// mendRoster makes the roster match the registry, and keeps it so. A PC can make the
// engine write an answer over an entry, but cannot seal it.
func (s *Server) mendRoster(ctx context.Context) error {
	bucket := subject.RosterBucket(s.opts.Settings.Team)
	stream, err := s.js.Stream(ctx, subject.BucketStream(bucket))
	if err != nil {
		return err
	}
	for _, pc := range s.roster.list() {
		at := subject.BucketKey(bucket, pc.ID)
		raw, err := stream.GetLastMsgForSubject(ctx, at)
		if err == nil {
			var member subject.Member
			if member, err = s.read(pc.ID, at, raw.Data); err == nil && member != pc.member() {
				err = jetstream.ErrMsgNotFound // another content
			}
		}
		if err == nil {
			continue
		}
		if err := s.announce(ctx, pc.ID, pc.member()); err != nil {
			return err
		}
	}
	_, err = s.conn.Subscribe(subject.BucketKey(bucket, "*"), func(msg *nats.Msg) {
		pc, err := subject.ParseBucketKey(bucket, msg.Subject)
		if err != nil {
			return // no PC reads that key
		}
		if _, err := s.read(pc, msg.Subject, msg.Data); err != nil {
			s.opts.Log.Error("an entry of the roster is not this hub's own, and counts for nothing", "key", pc, "err", err)
			s.restate(pc)
		}
	})
	return err
}

// restate announces the true entry of a PC again.
func (s *Server) restate(id string) {
	member := subject.Member{Name: "unknown", Removed: true}
	for _, pc := range s.roster.list() {
		if pc.ID == id {
			member = pc.member()
		}
	}
	ctx, cancel := context.WithTimeout(s.tasks.Context(), startTimeout)
	defer cancel()
	if err := s.announce(ctx, id, member); err != nil && !s.tasks.HasEnded() {
		s.opts.Log.Error("the roster's right entry could not be put back", "key", id, "err", err)
	}
}
