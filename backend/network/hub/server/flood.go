package server

import (
	"context"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"bridge/backend/core/bridge"
	"bridge/backend/network/hub/subject"
)

// The engine does not limit how much a client may publish, so the hub does. The limits
// are far above a PC that sends files, and far below what would delay the others.
const (
	floodEvery      = time.Second
	floodWindow     = 5                // of floodEvery
	maxPublished    = 25_000           // in a window
	maxSentBytes    = int64(768 << 20) // in a window
	floodBan        = time.Minute
	mostConnections = 4 * MaxPCs
)

// banned states until when a PC is banned, and why.
type banned struct {
	until time.Time
	now   func() time.Time
	why   string
}

func (b banned) err() error {
	if b.now == nil || !b.now().Before(b.until) {
		return nil
	}
	return bridge.Errorf(bridge.Busy, "it stays out until %s: %s", b.until.UTC().Format("15:04:05 MST"), b.why)
}

// flow is what one connection has sent up to one moment.
type flow struct{ messages, bytes int64 }

// flood watches what connections send. Only one goroutine uses it.
type flood struct {
	seen map[uint64][]flow // by connection, oldest first
}

// look records what connections have sent by now, and returns those that sent too much
// within the window.
func (f *flood) look(sent map[uint64]flow) map[uint64]flow {
	over := map[uint64]flow{}
	for connection := range f.seen {
		if _, exists := sent[connection]; !exists {
			delete(f.seen, connection)
		}
	}
	for connection, now := range sent {
		seen := f.seen[connection]
		if len(seen) == 0 {
			seen = append(seen, flow{}) // it began since the last look
		}
		grown := flow{now.messages - seen[0].messages, now.bytes - seen[0].bytes}
		if grown.messages > maxPublished || grown.bytes > maxSentBytes {
			over[connection] = grown
		}
		if seen = append(seen, now); len(seen) > floodWindow {
			seen = seen[1:]
		}
		f.seen[connection] = seen
	}
	return over
}

// watchFloods bans PCs that flood the hub, until ctx ends.
func (s *Server) watchFloods(ctx context.Context) {
	watch := flood{seen: map[uint64][]flow{}}
	tick := time.NewTicker(s.opts.FloodEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		connections, err := s.engine.Connz(&natsserver.ConnzOptions{Limit: mostConnections})
		if err != nil {
			continue // the engine is ending
		}
		sent := map[uint64]flow{}
		for _, c := range connections.Conns {
			if id, _ := s.roster.named(c.Cid); id != "" {
				sent[c.Cid] = flow{c.InMsgs, c.InBytes}
			}
		}
		for connection, grown := range watch.look(sent) {
			s.refusals.note(s.roster.ban(connection, grown, s.opts.Now), subject.RefusedFlooding)
		}
	}
}

// ban disconnects and bans a connection's PC for floodBan, and returns its id.
func (r *roster) ban(connection uint64, grown flow, now func() time.Time) (id string) {
	r.mu.Lock()
	id = r.online[connection]
	pc := r.pcs[id]
	r.banned[id] = banned{until: now().Add(floodBan), now: now, why: "it floods the hub"}
	stale := r.connectionsLocked(id)
	r.mu.Unlock()
	_, called := r.named(connection)
	r.log.Error("a PC floods the hub and is thrown out for a minute", "pc", called, "name", pc.Name, "messages", grown.messages, "bytes", grown.bytes)
	r.disconnect(stale)
	return id
}
