package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
)

// member is one PC of the team.
type member struct {
	pc           remote.PC
	rosterNumber int64 // version of its roster entry
	removed      bool  // removed from the team

	presence       presence
	presenceNumber int64     // number of its last announcement
	lastHeard      time.Time // time of that announcement; zero if it is absent
	reachableSince time.Time // since when it can be reached; zero while it cannot

	unproven *subject.Line     // its announcement as the hub passed it on, while its signature is unchecked; nil otherwise
	refused  []subject.Refusal // what the hub refused from it

	sealKey   string // as subject.Member has it; not verified
	lastFrame int64  // number of its last frame
	queue     *queue
}

// forgetPresence marks it as absent.
func (m *member) forgetPresence() { m.lastHeard, m.reachableSince = time.Time{}, time.Time{} }

// markReachable marks it as reachable since now if it is present.
func (m *member) markReachable(now time.Time) {
	if m.reachableSince.IsZero() && !m.lastHeard.IsZero() && !m.removed && m.pc.Name != "" {
		m.reachableSince = now
	}
}

// presence is what a PC announces of itself.
type presence struct {
	Session      string   `json:"session"`
	Release      string   `json:"release,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Gone         bool     `json:"gone,omitempty"` // the PC goes
	// Left is set if the PC leaves the team: the public half of its NATS key. After the PC
	// has joined again with a new key, a replay of this announcement has no effect.
	Left string `json:"left,omitempty"`
	TTL  int    `json:"life,omitempty"` // seconds until it expires; 0 for the default
	// Opens is set if the PC can open what is sealed to the key of this signature.
	Opens bool `json:"opens,omitempty"`
}

// ttl returns how long the announcement is valid.
func (p presence) ttl(usual time.Duration) time.Duration {
	if p.TTL <= 0 {
		return usual
	}
	return min(time.Duration(p.TTL)*time.Second, max(usual, subject.LongestPresence))
}

const (
	maxPresenceBytes = 16 << 10
	maxCapabilities  = 64
	maxWordChars     = 64
)

func (p presence) encode() []byte {
	data, _ := json.Marshal(p) // it always can be
	return data
}

func parsePresence(data []byte) (p presence, err error) {
	if err := bridge.DecodeAdditive(data, maxPresenceBytes, &p); err != nil {
		return presence{}, err
	}
	if len(p.Session) != sessionDigits || len(p.Release) > maxWordChars || len(p.Capabilities) > maxCapabilities || len(p.Left) > maxWordChars {
		return presence{}, bridge.Errorf(bridge.Invalid, "a PC's word of itself is too large, or has no session")
	}
	for _, capability := range p.Capabilities {
		if len(capability) > maxWordChars {
			return presence{}, bridge.Errorf(bridge.Invalid, "a capability has more than %d characters", maxWordChars)
		}
	}
	return p, nil
}

func (h *Hub) presenceKey() string {
	return subject.BucketKey(subject.PresenceBucket(h.opts.Team), h.opts.Self)
}

// announce stores this PC's presence at the hub and sets nextAnnouncement.
func (h *Hub) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.opts.Timing.Answer)
	defer cancel()
	h.mu.Lock()
	rarely := subject.Rarely(len(h.names))
	h.mu.Unlock()
	every := h.opts.Timing.Presence * time.Duration(rarely)
	h.nextAnnouncement = h.opts.Now().Add(every - every*time.Duration(rand.N(256))/1024 - h.opts.Timing.Presence/2) //nolint:gosec // so that a team's PCs do not keep step
	h.presenceOverwritten.Store(false)
	announcement := h.opts.Word()
	message := presence{Session: h.session, Release: announcement.Release, Capabilities: announcement.Capabilities, TTL: int(h.opts.Timing.TTL.Seconds()) * rarely, Opens: h.opts.Open != nil}
	return publishWithRetry(ctx, h, h.presenceKey(), message.encode())
}

// publishWithRetry stores body under a subject of which only the newest message counts. It
// repeats the request with a longer timeout until ctx ends: a cluster answers nothing while it
// elects a leader.
func publishWithRetry(ctx context.Context, h *Hub, at string, body []byte) error {
	for wait := h.opts.Timing.Answer / 10; ; wait *= 2 {
		once, cancel := context.WithTimeout(ctx, wait)
		err := h.publish(once, at, body, publishStored)
		cancel()
		if err == nil || ctx.Err() != nil || !h.conn.IsConnected() || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		select {
		case <-time.After(h.opts.Timing.Retry / 4):
		case <-ctx.Done():
			return err
		}
	}
}

// subscribe subscribes to frames, roster and decisions.
func (h *Hub) subscribe() error {
	roster := subject.RosterBucket(h.opts.Team)
	for at, take := range map[string]nats.MsgHandler{
		subject.Frames(h.opts.Team, h.opts.Self): h.handleFrame,
		h.presenceKey():                          func(*nats.Msg) { h.presenceOverwritten.Store(true) },
		subject.BucketKey(roster, "*"):           h.handleRosterEntry,
		subject.DecisionSubjects(h.opts.Team):    h.Decisions().onNew,
	} {
		if _, err := subscribeTo(h, at, take); err != nil {
			return err
		}
	}
	return h.Inbox.subscribe()
}

// readRoster reads the whole roster. It calls refused for entries that cannot be read.
func (h *Hub) readRoster(ctx context.Context, refused func(pc string, err error)) error {
	_, err := readRosterFrom(ctx, h, 1, refused)
	return err
}

// readRosterFrom reads the roster from a sequence on, and returns the next sequence to read.
// Sequences are valid for one connection: a hub that was restored from a backup has ended it.
func readRosterFrom(ctx context.Context, h *Hub, from uint64, refused func(pc string, err error)) (next uint64, err error) {
	bucket := subject.RosterBucket(h.opts.Team)
	var came []entry
	next = from
	err = h.read(ctx, subject.BucketStream(bucket), subject.BucketKey(bucket, "*"), from, func(s stored) {
		next = s.sequence + 1
		if e, err := openEntry(h, s.msg); err != nil {
			refused(e.pc, err)
		} else {
			came = append(came, e)
		}
	})
	if !applyEntries(h, came...) {
		next = from // read them again
	}
	return next, err
}

// readPresence reads all stored announcements. Their age is measured by the engine's clock, as
// the distance to the newest one, which is this PC's own.
func (h *Hub) readPresence(ctx context.Context) error {
	bucket := subject.PresenceBucket(h.opts.Team)
	var messages []stored
	err := h.read(ctx, subject.BucketStream(bucket), subject.BucketKey(bucket, "*"), 1, func(s stored) { messages = append(messages, s) })
	if err != nil {
		return err
	}
	var newest time.Time
	for _, message := range messages {
		if message.at.After(newest) {
			newest = message.at
		}
	}
	for _, message := range messages {
		if pc, err := subject.ParseBucketKey(bucket, message.msg.Subject); err == nil && pc == h.opts.Self {
			h.mu.Lock()
			h.clockSkew = h.opts.Now().Sub(message.at)
			h.mu.Unlock()
		}
		h.handlePresence(message.msg, newest.Sub(message.at))
	}
	return nil
}

// handleRosterEntry applies one roster entry. Entries without the hub's signature, and
// deletions, are dropped.
func (h *Hub) handleRosterEntry(msg *nats.Msg) {
	if e, err := openEntry(h, msg); err != nil {
		entryDropper(h)(e.pc, err)
	} else {
		applyEntries(h, e)
	}
}

func entryDropper(h *Hub) func(pc string, err error) {
	return func(pc string, err error) { h.drop(pc, Unsealed, err) }
}

// entry is the roster's entry of one PC.
type entry struct {
	pc     string
	number int64
	member subject.Member
}

// openEntry verifies and reads a roster entry.
func openEntry(h *Hub, msg *nats.Msg) (e entry, err error) {
	var body []byte
	if e.pc, err = subject.ParseBucketKey(subject.RosterBucket(h.opts.Team), msg.Subject); err == nil {
		body, e.number, err = subject.Open(h.opts.Hub, msg.Subject, msg.Data)
	}
	if err == nil {
		e.member, err = subject.ParseMember(body)
	}
	return e, err
}

// applyEntries applies roster entries once the roster file has them. It reports whether the
// file has them. Removals apply even if the file cannot be written.
func applyEntries(h *Hub, came ...entry) (saved bool) {
	h.rosterMu.Lock()
	defer h.rosterMu.Unlock()
	err := h.rosterFile.save(came)
	if err != nil {
		h.opts.Log.Error("what the team's roster says cannot be kept: who is new there is not heard", "err", err)
	}
	changed := false
	h.mu.Lock()
	for _, e := range came {
		if err == nil || e.member.Removed { // a removal applies at once
			changed = applyEntryLocked(h, e) || changed
		}
	}
	h.mu.Unlock()
	if changed {
		h.opts.Changed(remote.PC{})
	}
	return err == nil
}

func applyEntryLocked(h *Hub, e entry) (changed bool) {
	m := h.pcs[e.pc]
	if m == nil {
		m = &member{}
		h.pcs[e.pc] = m
	}
	if before := m.rosterNumber; e.number <= before {
		if e.number < before && h.rosterFile.file != "" {
			h.opts.Log.Warn("the team's roster has an older word about a PC than was read here: it counts for nothing", "peer", e.pc)
		}
		return false
	}
	if e.pc == h.opts.Self {
		if h.removed = e.member.Removed; h.removed {
			h.evicted.Notify()
		}
	}
	m.sealKey = cmp.Or(e.member.Box, m.sealKey)
	isNew := m.rosterNumber == 0
	m.pc, m.rosterNumber, m.removed = remote.PC{ID: e.pc, Name: e.member.Name}, e.number, e.member.Removed
	if isNew {
		claimNameLocked(h, m)
	} else {
		h.assignNamesLocked()
	}
	if m.removed {
		m.forgetPresence()
	} else if h.state.Up {
		m.markReachable(h.opts.Now())
	}
	return true
}

// assignNamesLocked assigns each name to one PC: the one with the newest roster entry.
func (h *Hub) assignNamesLocked() {
	h.names = map[string]*member{}
	for _, m := range h.pcs {
		claimNameLocked(h, m)
	}
}

// claimNameLocked assigns a PC its name unless a newer roster entry has it.
func claimNameLocked(h *Hub, m *member) {
	if before := h.names[m.pc.Name]; !m.removed && m.pc.Name != "" && (before == nil || before.rosterNumber < m.rosterNumber) {
		h.names[m.pc.Name] = m
	}
}

// handleLivePresence handles an announcement as it is published.
func handleLivePresence(h *Hub, msg *nats.Msg) {
	if msg.Subject != h.presenceKey() {
		h.handlePresence(msg, 0)
	}
}

// handlePresence handles an announcement of that age.
func (h *Hub) handlePresence(msg *nats.Msg, age time.Duration) {
	if msg.Header.Get(subject.HeaderKey) == "" {
		handleDeparture(h, msg)
		return
	}
	pc, err := subject.ParseBucketKey(subject.PresenceBucket(h.opts.Team), msg.Subject)
	var received presence
	var number int64
	why := Unsigned
	if err == nil {
		number, err = verify(pc, msg)
	}
	if err == nil {
		why = Malformed
		received, err = parsePresence(msg.Data)
	}
	if err != nil {
		h.drop(pc, why, err)
		return
	}
	if pc == h.opts.Self || age > received.ttl(h.opts.Timing.TTL) {
		return
	}
	h.mu.Lock()
	m := h.pcs[pc]
	if m == nil || m.removed {
		if m == nil {
			h.rosterStale.Store(true)
		}
		h.mu.Unlock() // removed, or not in the roster yet
		return
	}
	changed := updatePresenceLocked(h, m, number, received, age, nil)
	if received.Opens {
		m.sealKey = msg.Header.Get(subject.HeaderKey)
	}
	who := m.pc
	h.mu.Unlock()
	if changed {
		h.opts.Changed(who)
	}
}

// updatePresenceLocked applies an announcement if it is newer than the known one. told is the
// line of the hub if the PC's own signature is unchecked.
func updatePresenceLocked(h *Hub, m *member, number int64, received presence, age time.Duration, line *subject.Line) (changed bool) {
	if number < m.presenceNumber || number == m.presenceNumber && !m.lastHeard.IsZero() {
		return false // a replay
	}
	now := h.opts.Now()
	before := m.reachableSince
	if received.Session != m.presence.Session {
		m.reachableSince = time.Time{} // numbers continue, so older frames stay dropped
	}
	m.presence, m.presenceNumber, m.lastHeard, m.unproven = received, number, now.Add(-age), line
	if received.Gone {
		m.forgetPresence()
	} else if h.state.Up {
		m.markReachable(now)
	}
	if changed = !m.reachableSince.Equal(before); changed {
		m.queue.notify()
	}
	return changed
}

// handleDeparture handles the hub's message that a PC disconnected without an announcement.
func handleDeparture(h *Hub, msg *nats.Msg) {
	pc, err := subject.ParseBucketKey(subject.PresenceBucket(h.opts.Team), msg.Subject)
	var departure subject.Left
	var body []byte
	if err == nil {
		body, _, err = subject.Open(h.opts.Hub, msg.Subject, msg.Data)
	}
	if err == nil {
		departure, err = subject.ParseLeft(body)
	}
	if err != nil {
		h.drop(pc, Unsigned, err)
		return
	}
	h.mu.Lock()
	m := h.pcs[pc]
	if m == nil {
		h.mu.Unlock() // not in the team
		return
	}
	changed, who := m.endPresence(departure.Number), m.pc
	h.mu.Unlock()
	if changed {
		h.opts.Changed(who)
	}
}

// expirePresences marks PCs as absent whose announcement has expired.
func (h *Hub) expirePresences() {
	h.mu.Lock()
	changed := false
	for _, m := range h.pcs {
		if !m.lastHeard.IsZero() && h.opts.Now().Sub(m.lastHeard) > m.presence.ttl(h.opts.Timing.TTL) {
			m.forgetPresence()
			changed = true
		}
	}
	h.mu.Unlock()
	if changed {
		h.opts.Changed(remote.PC{})
	}
}

// verify checks the signature of a message by the PC of that identity, and returns the
// message's number.
func verify(pc string, msg *nats.Msg) (number int64, err error) {
	proof, err := subject.ParseProof(msg.Header.Get)
	if err == nil {
		err = proof.Check(pc, msg.Subject, msg.Data)
	}
	return proof.Number, err
}
