package server

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/seal"
	"bridge/backend/network/hub/subject"
)

// announcement is the part of a PC's announcement that the hub uses.
type announcement struct {
	Left  string `json:"left"`  // it leaves the team: the public half of its key for NATS
	Opens bool   `json:"opens"` // it can open what is sealed to its key
}

// hearWords removes PCs that announce that they leave the team (HUB-03), and records the
// keys of PCs that can open sealed data. Whichever node receives an announcement, one
// node processes it.
func hearWords(s *Server) error {
	bucket := subject.PresenceBucket(s.opts.Settings.Team)
	_, err := s.conn.QueueSubscribe(subject.BucketKey(bucket, "*"), "words", func(msg *nats.Msg) {
		var message announcement
		id, err := subject.ParseBucketKey(bucket, msg.Subject)
		if err != nil || json.Unmarshal(msg.Data, &message) != nil || message.Left == "" && !message.Opens {
			return // nothing for the hub
		}
		do := noteBox
		if message.Left != "" {
			do = removePC
		} else if pc, err := s.roster.find(id); err != nil || pc.Box != "" {
			return
		}
		proof, err := subject.ParseProof(msg.Header.Get)
		if err == nil {
			err = proof.Check(id, msg.Subject, msg.Data)
		}
		if err != nil {
			s.opts.Log.Warn("what a PC says of itself counts for nothing", "id", id, "err", err)
			return
		}
		s.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(s.tasks.Context(), controlTimeout)
			defer cancel()
			if err := do(ctx, s, id, message, proof); err != nil && !s.tasks.HasEnded() {
				s.opts.Log.Error("what a PC says of itself could not be done", "id", id, "err", err)
			}
		})
	})
	return err
}

// removePC removes a PC from the team by its own wish. The key shows that the announcement
// is not of an earlier membership, which the engine's answers can repeat.
func removePC(ctx context.Context, s *Server, id string, message announcement, _ subject.Proof) error {
	pc, err := s.roster.find(id)
	if err == nil && pc.Key != message.Left {
		err = bridge.Errorf(bridge.Conflict, "that it leaves the team, it said in an earlier membership")
	}
	if err == nil {
		_, err = s.remove(ctx, id, true)
	}
	if err == nil {
		s.opts.Log.Info("a PC has left the team", "pc", pc.Name, "id", id)
	}
	return err
}

// noteBox records the key of a PC that joined before it could open sealed data.
func noteBox(ctx context.Context, s *Server, id string, _ announcement, proof subject.Proof) error {
	s.enrolling.Lock()
	defer s.enrolling.Unlock()
	pc, err := s.roster.find(id)
	if err != nil || pc.Box != "" {
		return nil // it has left, or the key is recorded by now
	}
	pc.Box = seal.Text(proof.Key)
	if err := record(ctx, s, pc); err != nil {
		return err
	}
	s.roster.put(pc)
	return nil
}
