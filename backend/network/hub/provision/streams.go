package provision

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/network/hub/subject"
)

const (
	ackWait    = time.Minute
	maxUnacked = 1 // unacknowledged messages come first after any interruption
	duplicates = 2 * time.Minute
	// maxPresence limits the bytes of presence.
	maxPresence = 32 << 20
)

// Engine is a team's part of a NATS server, with administrator rights.
type Engine struct {
	JS       jetstream.JetStream
	Team     string
	MaxBytes int64 // disk limit of all the team's streams
	Replicas int   // how many nodes keep each message
}

// Streams returns the streams for messages and decisions.
func (e Engine) Streams() []jetstream.StreamConfig {
	list := []jetstream.StreamConfig{
		{
			Name: subject.MessageStream(e.Team), Subjects: []string{subject.MessageSubjects(e.Team)}, Retention: jetstream.WorkQueuePolicy,
			MaxMsgsPerSubject: subject.MaxWaiting, DiscardNewPerSubject: true, MaxBytes: e.MaxBytes / 4 * 3, MaxAge: subject.KeepMessages,
		},
		{
			Name: subject.DecisionStream(e.Team), Subjects: []string{subject.DecisionSubjects(e.Team)}, MaxBytes: e.MaxBytes / 8,
			MaxMsgSize: subject.MaxDecisionBytes, AllowDirect: true, DenyDelete: true, DenyPurge: true,
		},
	}
	for i := range list {
		list[i].Discard, list[i].Storage, list[i].Replicas, list[i].Duplicates = jetstream.DiscardNew, jetstream.FileStorage, e.Replicas, duplicates
	}
	return list
}

// Buckets returns the buckets of the roster and of presence.
func (e Engine) Buckets() []jetstream.KeyValueConfig {
	// Presence is stale after a restart. Replicated presence is on disk nevertheless. A
	// node that returns without what it agreed to does not count when the next one fails.
	// Then the last node stores nothing.
	presence := jetstream.MemoryStorage
	if e.Replicas > 1 {
		presence = jetstream.FileStorage
	}
	return []jetstream.KeyValueConfig{
		{Bucket: subject.RosterBucket(e.Team), Storage: jetstream.FileStorage, MaxBytes: e.MaxBytes / 16, Replicas: e.Replicas},
		{Bucket: subject.PresenceBucket(e.Team), Storage: presence, TTL: subject.LongestPresence, MaxBytes: maxPresence, Replicas: e.Replicas},
	}
}

// Inbox returns the durable consumer of the messages for a PC.
func Inbox(team, pc string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: subject.Consumer(pc), FilterSubject: subject.Inbox(team, pc),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: maxUnacked,
	}
}

// IsInbox reports whether a consumer has the settings that Inbox sets.
func IsInbox(is jetstream.ConsumerConfig, team, pc string) bool {
	wanted := Inbox(team, pc)
	return is.Durable == wanted.Durable && is.FilterSubject == wanted.FilterSubject && is.AckPolicy == wanted.AckPolicy &&
		is.AckWait == wanted.AckWait && is.MaxDeliver == wanted.MaxDeliver && is.MaxAckPending == wanted.MaxAckPending
}

// Make creates the streams and buckets, or updates them. each runs every step, for callers that
// limit its time; nil runs the steps directly. Make fails with the error of the first step that
// fails.
func (e Engine) Make(ctx context.Context, each func(context.Context, func(context.Context) error) error) error {
	if each == nil {
		each = func(ctx context.Context, step func(context.Context) error) error { return step(ctx) }
	}
	for _, config := range e.Streams() {
		err := each(ctx, func(ctx context.Context) error { _, err := e.JS.CreateOrUpdateStream(ctx, config); return err })
		if err != nil {
			return err
		}
	}
	for _, config := range e.Buckets() {
		err := each(ctx, func(ctx context.Context) error { return e.makeBucket(ctx, config) })
		if err != nil {
			return err
		}
	}
	return nil
}

// makeBucket creates or updates a bucket. It replaces presence if an earlier hub had it
// in another storage: all PCs announce themselves again.
func (e Engine) makeBucket(ctx context.Context, config jetstream.KeyValueConfig) error {
	name := subject.BucketStream(config.Bucket)
	stream, err := e.JS.Stream(ctx, name)
	if err == nil && stream.CachedInfo().Config.Storage != config.Storage && config.TTL > 0 {
		err = e.JS.DeleteStream(ctx, name)
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	_, err = e.JS.CreateOrUpdateKeyValue(ctx, config)
	return err
}

// MakeInbox creates the consumer that keeps the messages for a PC. It fails if the server
// refuses it or does not answer.
func (e Engine) MakeInbox(ctx context.Context, pc string) error {
	_, err := e.JS.CreateOrUpdateConsumer(ctx, subject.MessageStream(e.Team), Inbox(e.Team, pc))
	return err
}

// Forget deletes a PC's untaken messages, the messages that wait for it, and its presence. It
// fails at the first step that the server refuses. A missing consumer is no error.
func (e Engine) Forget(ctx context.Context, pc string) error {
	stream, err := e.JS.Stream(ctx, subject.MessageStream(e.Team))
	if err != nil {
		return err
	}
	from := subject.Subject{Team: e.Team, From: pc, To: "*", Sort: subject.Message}.String()
	for _, filter := range []string{from, subject.Inbox(e.Team, pc)} {
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(filter)); err != nil {
			return err
		}
	}
	if err := stream.DeleteConsumer(ctx, subject.Consumer(pc)); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	presence, err := e.JS.KeyValue(ctx, subject.PresenceBucket(e.Team))
	if err != nil {
		return err
	}
	return presence.Delete(ctx, pc)
}
