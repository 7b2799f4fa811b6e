package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/network/hub/subject"
)

// A PC that ends says goodbye. Of one that breaks off the hub knows first, by its
// connection, and tells the team: in a large one a PC's own word counts for minutes
// (subject.Rarely).

// awayAfter is how long a PC may be without a connection before the team is told: less
// than that a change of networks takes.
const awayAfter = 10 * time.Second

// absent are the PCs that were connected to this node and are not.
type absent struct {
	before map[string]bool
	since  map[string]time.Time
}

// look takes in who is connected now and who has come since the last look, and answers
// who has not been connected for so long.
func (a *absent) look(up, came map[string]bool, now time.Time, after time.Duration) (gone []string) {
	for _, there := range []map[string]bool{a.before, came} {
		for id := range there {
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
			gone = append(gone, id)
		}
	}
	a.before = up
	return gone
}

// watchLeft tells the team of PCs that have gone without a goodbye, until ctx ends.
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
		came := s.roster.arrived() // before who is up: whoever comes in between is in one of them
		for _, id := range watch.look(s.roster.up(), came, s.opts.Now(), s.opts.AwayAfter) {
			if err := s.tellLeft(ctx, id); err != nil && ctx.Err() == nil {
				s.opts.Log.Warn("the team could not be told that a PC has gone", "id", id, "err", err)
			}
		}
	}
}

// tellLeft says that a PC has gone, in place of the last word of that PC. One that has
// said something meanwhile, by another node, is there.
func (s *Server) tellLeft(ctx context.Context, id string) error {
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
		return nil // its word counts no more
	}
	if err != nil {
		return err
	}
	var word struct {
		Gone bool `json:"gone"`
	}
	proof, err := subject.ParseProof(last.Header.Get)
	if err != nil || json.Unmarshal(last.Data, &word) != nil || word.Gone {
		return nil // it said goodbye, or the hub did, or it was nothing that anybody hears
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
