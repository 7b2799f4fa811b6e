package server

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
)

// announce tells the team about one PC, sealed with the hub's key.
func (s *Server) announce(ctx context.Context, pc string, member subject.Member) error {
	body, err := member.Encode()
	if err != nil {
		return err
	}
	s.mu.Lock()
	said := s.said[pc]
	number := max(said.newest+1, s.opts.Now().UnixNano())
	s.said[pc] = words{newest: number, unheard: append(said.unheard, number)}
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

// words are what the hub has said to the team about a PC, by their numbers.
type words struct {
	newest  int64   // of all nodes
	unheard []int64 // this node's own, oldest first, that it has not heard itself say
}

// read is what an entry of the roster says, where it is the hub's newest word. An older one
// of this node's own, on its way, is right too: the newest comes behind it. Were that put
// right, two on their way would follow each other for good.
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
	said := s.said[pc]
	own := slices.Index(said.unheard, number)
	if own < 0 && number < said.newest {
		return subject.Member{}, bridge.Errorf(bridge.Conflict, "it is older than what the hub has said since")
	}
	// By another node, where it is new.
	s.said[pc] = words{newest: max(said.newest, number), unheard: said.unheard[own+1:]}
	return member, nil
}

// mendRoster makes the roster say what the registry does, and keeps it so: a PC can have
// the engine write an answer over an entry, which it cannot seal.
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
				err = jetstream.ErrMsgNotFound // not that one
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
			return // no PC looks there
		}
		if _, err := s.read(pc, msg.Subject, msg.Data); err != nil {
			s.opts.Log.Error("an entry of the roster is not this hub's own, and counts for nothing", "key", pc, "err", err)
			s.restate(pc)
		}
	})
	return err
}

// restate says again what is true of a PC.
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
