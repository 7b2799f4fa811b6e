package server

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// The engine does not survive a full disk: a stream that once could not be written takes
// nothing any more, and whoever sends to it hears nothing, until JetStream is started
// anew. So the hub has the engine refuse what PCs send before the disk is full, which
// they are told, and starts JetStream anew where the disk was full all the same.
const (
	roomEvery = 250 * time.Millisecond
	// keepFree is how much of the disk is left free: more than is written between two looks,
	// and what the hub itself needs to take PCs out, and messages.
	keepFree = 64 << 20
	// mendPause lies between two attempts to start JetStream anew.
	mendPause = 10 * time.Second
)

// room watches how much of the disk is free.
type room struct {
	s    *Server
	hurt atomic.Bool // the engine could not write
	// toldFull is full, in Unix milliseconds, for whoever asks: also while JetStream is
	// started anew, which may take long.
	toldFull atomic.Int64

	mu     sync.Mutex // guards below, and who may have the team's account store
	full   time.Time  // since when nothing is taken; zero while there is room
	mended time.Time
}

// broken are the engine's words for that it stores nothing more.
var broken = []string{"ritical write error", "will be DISABLED", "disabling JetStream"}

// hear takes the engine's word that it could not write.
func (r *room) hear(line string) {
	for _, words := range broken {
		if strings.Contains(line, words) {
			r.hurt.Store(true)
		}
	}
}

// watch looks after the room until ctx ends.
func (r *room) watch(ctx context.Context) {
	tick := time.NewTicker(r.s.opts.RoomEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look does what the room on the disk asks for now.
func (r *room) look(ctx context.Context) {
	s := r.s
	free, err := disk.Free(s.opts.Home.store())
	if err != nil {
		return // nothing can be said of it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return // the hub ends
	}
	now, keep := s.opts.Now(), s.opts.KeepFree
	switch isFull := !r.full.IsZero(); {
	case !isFull && free < keep:
		r.full = now
		r.toldFull.Store(now.UnixMilli())
		s.opts.Log.Error("the disk is full: nothing more is stored until there is room, and senders keep theirs", "free", bridge.Size(free), "needed", bridge.Size(keep))
		r.limitLocked()
		return
	case isFull && free < keep+keep/4: // or it would come and go
		return
	}
	if r.hurt.Load() || !s.engine.JetStreamEnabled() {
		if now.Sub(r.mended) < mendPause {
			return
		}
		r.mended = now
		if err := r.mend(ctx); err != nil {
			s.opts.Log.Error("the engine could not write, and JetStream cannot be started anew: it is tried again", "err", err)
			r.hurt.Store(true)
			return
		}
	}
	if !r.full.IsZero() {
		s.opts.Log.Info("there is room on the disk again", "free", bridge.Size(free), "it was full for", bridge.Span(now.Sub(r.full)))
		r.full = time.Time{}
		r.toldFull.Store(0)
		r.limitLocked()
	}
}

// limitLocked has the engine take what the team's account sends, or refuse it. Of a hub of
// three the engine itself takes a node out whose disk is full: the others go on.
func (r *room) limitLocked() {
	if r.s.opts.Settings.Cluster != "" {
		return
	}
	limit := natsserver.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
	if !r.full.IsZero() {
		limit.MaxStore = 0
	}
	account, err := r.s.engine.LookupAccount(r.s.opts.Settings.Team)
	if err == nil {
		err = account.UpdateJetStreamLimits(map[string]natsserver.JetStreamAccountLimits{"": limit})
	}
	if err != nil {
		r.s.opts.Log.Error("whether the hub takes what PCs send could not be set", "err", err)
	}
}

// lift lets the hub itself store a word, in what is left free for that, until the
// function that it returns is called.
func (r *room) lift() func() {
	r.mu.Lock()
	full := r.full
	if full.IsZero() {
		r.mu.Unlock()
		return func() {}
	}
	r.full = time.Time{}
	r.limitLocked()
	return func() {
		r.full = full
		r.limitLocked()
		r.mu.Unlock()
	}
}

// mend starts JetStream anew, which reads what is on the disk, and ends the connections of
// PCs: what they asked for is forgotten, and they ask again.
func (r *room) mend(ctx context.Context) error {
	s := r.s
	s.opts.Log.Warn("the engine could not write: JetStream is started anew")
	r.hurt.Store(false) // what it says from here on counts
	if err := s.engine.ShutdownJetStream(); err != nil {
		return err
	}
	o, err := s.engineOptions()
	if err != nil {
		return err
	}
	err = s.engine.EnableJetStream(&natsserver.JetStreamConfig{StoreDir: o.StoreDir, SyncAlways: o.SyncAlways, MaxMemory: o.JetStreamMaxMemory, MaxStore: o.JetStreamMaxStore, Strict: !o.NoJetStreamStrict})
	if err != nil {
		return err
	}
	if s.opts.Settings.Cluster == "" {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		if err := s.team().Make(ctx, s.opts.Settings.once); err != nil { // presence was in memory only
			return err
		}
		if err := s.mendInboxes(ctx); err != nil {
			return err
		}
	}
	s.roster.kickAll()
	return nil
}
