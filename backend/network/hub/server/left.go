package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/network/hub/subject"
)

// A PC that ends announces that. If a PC disconnects without it, the hub knows first, by
// the connection, and informs the team. In a large team, a PC's own announcement is valid
// for minutes (subject.Rarely).

// awayAfter is how long a PC may be without a connection before the team is informed. A
// change of networks takes less.
const awayAfter = 10 * time.Second

// absent tracks the PCs that were connected to this node and are not now.
type absent struct {
	before map[string]bool
	since  map[string]time.Time
}

// look records the PCs connected now and since the last look. It returns the ids of those
// that have been disconnected for at least after.
func (a *absent) look(up, came map[string]bool, now time.Time, after time.Duration) (departed []string) {
	for _, present := range []map[string]bool{a.before, came} {
		for id := range present {
			if !up[id] {
				a.since[id] = now
			}
		}
	}
	for id, since := range a.since {
		if up[id] {
			delete(a.since, id)
		} else if now.Sub(since) >= after {
			delete(a.since, id)
			departed = append(departed, id)
		}
	}
	a.before = up
	return departed
}

// watchLeft informs the team of PCs that left without announcing it, until ctx ends.
func (s *Server) watchLeft(ctx context.Context) {
	watch := absent{since: map[string]time.Time{}}
	tick := time.NewTicker(s.opts.AwayAfter / 5)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		came := s.roster.arrived() // before up: a PC that connects in between is in one of them
		for _, id := range watch.look(s.roster.up(), came, s.opts.Now(), s.opts.AwayAfter) {
			if err := s.recordLeave(ctx, id); err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("the team could not be told that a PC has gone", "id", id, "err", err)
			}
		}
	}
}

// recordLeave replaces a PC's last announcement by the hub's that it has left. A PC that
// announced itself meanwhile, by another node, is present.
func (s *Server) recordLeave(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	bucket := subject.PresenceBucket(s.opts.Settings.Team)
	at := subject.BucketKey(bucket, id)
	stream, err := s.js.Stream(ctx, subject.BucketStream(bucket))
	if err != nil {
		return err
	}
	last, err := stream.GetLastMsgForSubject(ctx, at)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil // its announcement has expired
	}
	if err != nil {
		return err
	}
	var message struct {
		Gone bool `json:"gone"`
	}
	proof, err := subject.ParseProof(last.Header.Get)
	if err != nil || json.Unmarshal(last.Data, &message) != nil || message.Gone {
		return nil // the PC or the hub announced it already, or the entry is invalid
	}
	body, err := json.Marshal(subject.Left{Gone: true, Number: proof.Number})
	if err != nil {
		return err
	}
	value, err := subject.Seal(s.keys.identity.Sign, at, s.opts.Now().UnixNano(), body)
	if err == nil {
		_, err = s.js.Publish(ctx, at, value, jetstream.WithExpectLastSequencePerSubject(last.Sequence))
	}
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return nil
	}
	return err
}
