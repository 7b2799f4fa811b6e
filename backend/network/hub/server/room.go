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

// The engine does not survive a full disk. A stream that once failed to write accepts
// nothing and answers nothing until JetStream is restarted. So the hub makes the engine
// refuse PCs' messages before the disk is full, which PCs see as errors. If the disk was
// full nevertheless, the hub restarts JetStream.
const (
	roomEvery = 250 * time.Millisecond
	// keepFree is how many bytes of the disk stay free. It exceeds what is written
	// between two checks, and what the hub needs to remove PCs and messages.
	keepFree = 64 << 20
	// mendPause is the pause between two attempts to restart JetStream.
	mendPause = 10 * time.Second
)

// room watches the free space of the disk.
type room struct {
	s    *Server
	hurt atomic.Bool // the engine could not write
	// toldFull is full in Unix milliseconds, readable without the lock. A restart of
	// JetStream may hold the lock for long.
	toldFull atomic.Int64

	mu     sync.Mutex // guards the fields below, and whether the team's account may store
	full   time.Time  // since when storing is refused; zero while there is room
	mended time.Time
}

// broken are the engine's messages for when it stops storing.
var broken = []string{"ritical write error", "will be DISABLED", "disabling JetStream"}

// hear checks a log line for the engine's message that it could not write.
func (r *room) hear(line string) {
	for _, text := range broken {
		if strings.Contains(line, text) {
			r.hurt.Store(true)
		}
	}
}

// watch checks the free space until ctx ends.
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

// look applies the present free space: it stops or resumes storing, or restarts JetStream.
func (r *room) look(ctx context.Context) {
	s := r.s
	free, err := disk.Free(s.opts.Home.store())
	if err != nil {
		return // unknown
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
	case isFull && free < keep+keep/4: // hysteresis
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

// limitLocked makes the engine accept or refuse what the team's account sends. In a
// three-node hub the engine itself removes a node whose disk is full: the others continue.
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

// lift lets the hub itself store data in the reserved space, until the returned function
// is called.
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

// mend restarts JetStream, which reads the disk, and disconnects PCs: their pending
// requests are lost, and they repeat them.
func (r *room) mend(ctx context.Context) error {
	s := r.s
	s.opts.Log.Warn("the engine could not write: JetStream is started anew")
	r.hurt.Store(false) // later messages count again
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
	s.roster.disconnectAll()
	return nil
}
