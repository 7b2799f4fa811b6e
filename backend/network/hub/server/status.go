package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
)

// Status is the status of a node of a hub.
type Status struct {
	Team      string            `json:"team"`
	Node      string            `json:"node"`
	ID        string            `json:"id"`
	Since     bridge.UnixMillis `json:"since"`
	PCs       int               `json:"pcs"`
	Up        int               `json:"up"`
	Waiting   uint64            `json:"waiting"`   // messages not taken yet
	Decisions uint64            `json:"decisions"` // the number of decisions
	Bytes     uint64            `json:"bytes"`     // stored
	MaxBytes  int64             `json:"maxBytes"`
	Replicas  int               `json:"replicas"`
	Behind    []string          `json:"behind"` // incomplete nodes of a three-node hub
	// Full is since when the disk is full; omitted while there is room.
	Full bridge.UnixMillis `json:"full,omitempty"`
	// Unanswered are the streams that did not report their status: the counts above
	// exclude them.
	Unanswered []Unanswered `json:"unanswered"`
	// Namesakes are PCs that have the name of another, removed PC.
	Namesakes []Member `json:"namesakes"`
}

// Unanswered is a stream of the hub's NATS that did not report its status.
type Unanswered struct {
	Kind  string `json:"kind"`            // its content: messages, decisions, roster, presence or registry
	Of    string `json:"of"`              // its owner: the team's name, or "hub"
	Asked int64  `json:"asked"`           // how long the hub waited, in milliseconds
	Error string `json:"error,omitempty"` // the error instead of an answer; usually empty
}

// The kinds of a hub's streams.
const (
	KindMessages  = "messages"
	KindDecisions = "decisions"
	KindRoster    = "roster"
	KindPresence  = "presence"
	KindRegistry  = "registry"
)

// Words describes it for people.
func (u Unanswered) Words() string {
	whose := u.Of
	if u.Kind == KindRegistry {
		whose = "the hub"
	}
	if u.Error != "" {
		return fmt.Sprintf("the stream of %s's %s does not tell how it is: %s", whose, u.Kind, u.Error)
	}
	return fmt.Sprintf("the stream of %s's %s did not answer within %s", whose, u.Kind, (time.Duration(u.Asked) * time.Millisecond).Round(100*time.Millisecond))
}

// IsMissing reports whether a stream of that kind did not answer.
func (s Status) IsMissing(kind string) bool {
	return slices.ContainsFunc(s.Unanswered, func(u Unanswered) bool { return u.Kind == kind })
}

// FullWords describes for people that the disk is full.
func (s Status) FullWords() string {
	since := time.UnixMilli(s.Full).UTC().Format("2006-01-02 15:04 MST")
	if s.Replicas > 1 {
		return fmt.Sprintf("the disk is full since %s: this node may store nothing more until there is room, and the other nodes go on without it", since)
	}
	return fmt.Sprintf("the disk is full since %s: the hub stores nothing more until there is room, and senders keep theirs", since)
}

// status queries all streams at once, each with its timeout. One that does not answer, as
// on one of three nodes without the others, does not affect the rest.
func (s *Server) status(ctx context.Context) Status {
	set := s.opts.Settings
	status := Status{
		Team: set.Team, Node: set.Node, ID: s.ID(), Since: s.since.UnixMilli(), PCs: len(s.roster.list()), MaxBytes: set.MaxBytes,
		Replicas: set.replicas(), Behind: []string{}, Full: s.room.toldFull.Load(), Unanswered: []Unanswered{}, Namesakes: []Member{},
	}
	var mu sync.Mutex // guards status from here on
	var asks sync.WaitGroup
	ask := func(kind string, question func(context.Context) (*jetstream.StreamInfo, error)) {
		asks.Go(func() {
			began := s.opts.Now()
			ctx, cancel := context.WithTimeout(ctx, s.opts.StatusWait)
			defer cancel()
			info, err := question(ctx)
			mu.Lock()
			defer mu.Unlock()
			status.add(kind, info)
			if err != nil {
				status.Unanswered = append(status.Unanswered, unanswered(kind, set.Team, s.opts.Now().Sub(began), err))
			}
		})
	}
	for kind, name := range map[string]string{
		KindMessages: subject.MessageStream(set.Team), KindDecisions: subject.DecisionStream(set.Team), KindRoster: subject.BucketStream(subject.RosterBucket(set.Team)),
	} {
		ask(kind, func(ctx context.Context) (*jetstream.StreamInfo, error) { return infoOf(ctx, s.js, name) })
	}
	ask(KindRegistry, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		return bucketInfo(ctx, s.pcs)
	})
	up := s.roster.up()
	ask(KindPresence, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		info, err := infoOf(ctx, s.js, subject.BucketStream(subject.PresenceBucket(set.Team)))
		if err == nil {
			err = addPresent(ctx, s, up)
		}
		return info, err
	})
	asks.Wait()
	for _, pc := range s.roster.list() {
		if up[pc.ID] {
			status.Up++
		}
		if before := s.roster.before(pc); before != nil {
			status.Namesakes = append(status.Namesakes, Member{PC: pc, Up: up[pc.ID], Before: before})
		}
	}
	slices.SortFunc(status.Unanswered, func(a, z Unanswered) int { return strings.Compare(a.Kind, z.Kind) })
	slices.Sort(status.Behind)
	return status
}

// add adds the report of a stream; nil adds nothing.
func (s *Status) add(kind string, info *jetstream.StreamInfo) {
	if info == nil {
		return
	}
	switch kind {
	case KindMessages:
		s.Waiting = info.State.Msgs
	case KindDecisions:
		s.Decisions = info.State.Msgs
	}
	s.Bytes += info.State.Bytes
	s.Behind = append(s.Behind, behind(info)...)
}

// unanswered describes a stream that did not answer.
func unanswered(kind, team string, waited time.Duration, err error) Unanswered {
	u := Unanswered{Kind: kind, Of: team, Asked: waited.Milliseconds()}
	if kind == KindRegistry {
		u.Of = "hub"
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		u.Error = err.Error()
	}
	return u
}

func infoOf(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.StreamInfo, error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}

func bucketInfo(ctx context.Context, bucket jetstream.KeyValue) (*jetstream.StreamInfo, error) {
	status, err := bucket.Status(ctx)
	if err != nil {
		return nil, err
	}
	key, is := status.(*jetstream.KeyValueBucketStatus)
	if !is {
		return nil, bridge.Errorf(bridge.Internal, "a bucket tells of itself with a %T", status)
	}
	return key.StreamInfo(), nil
}

// addPresent adds the PCs that announce themselves as present, at any node.
func addPresent(ctx context.Context, s *Server, up map[string]bool) error {
	presence, err := s.js.KeyValue(ctx, subject.PresenceBucket(s.opts.Settings.Team))
	if err != nil {
		return err
	}
	watch, err := presence.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer s.tasks.Go(func() { _ = watch.Stop() }) // it calls the engine without a timeout
	now := s.opts.Now()
	for {
		select {
		case entry, more := <-watch.Updates():
			if !more || entry == nil { // that was the whole content
				return ctx.Err()
			}
			var message struct {
				Session     string `json:"session"` // empty in the hub's own announcement
				Gone        bool   `json:"gone"`    // its last announcement
				LifeSeconds int    `json:"life"`    // seconds
			}
			life := subject.PresenceLife
			if json.Unmarshal(entry.Value(), &message) == nil && message.LifeSeconds > 0 {
				life = time.Duration(message.LifeSeconds) * time.Second
			}
			if message.Session != "" && !message.Gone && now.Sub(entry.Created()) <= life {
				up[entry.Key()] = true
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// behind returns the nodes that lack something of a stream.
func behind(info *jetstream.StreamInfo) []string {
	var nodes []string
	if info.Cluster != nil {
		for _, peer := range info.Cluster.Replicas {
			if peer.Offline || !peer.Current {
				nodes = append(nodes, peer.Name+" ("+info.Config.Name+")")
			}
		}
	}
	return nodes
}
