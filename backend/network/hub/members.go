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
	pc    remote.PC
	entry int64 // the number of what the roster says
	gone  bool  // the roster says that it is none any more

	there presence
	spoke int64     // the number of its last word of presence
	heard time.Time // when that was heard; zero where it is not there
	since time.Time // when it and the way to it came up; zero while it is not

	told    *subject.Line     // of whom there is only the hub's word yet, its own with it; nil otherwise
	refused []subject.Refusal // by the hub, as that tells

	box    string // its key, as subject.Member has it; whether it is its own is not looked at yet
	frames int64  // the number of its last frame
	queue  *queue
}

// leave notes that nothing is known of its presence any more.
func (m *member) leave() { m.heard, m.since = time.Time{}, time.Time{} }

// rise notes that it can be reached from then on, if it is there.
func (m *member) rise(now time.Time) {
	if m.since.IsZero() && !m.heard.IsZero() && !m.gone && m.pc.Name != "" {
		m.since = now
	}
}

// presence is what a PC says of itself.
type presence struct {
	Session      string   `json:"session"`
	Release      string   `json:"release,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Gone         bool     `json:"gone,omitempty"` // it ends
	// Left says that it wants to be in the team no more, and is the public half of its key
	// for NATS: said again after it has joined anew, it means nothing.
	Left string `json:"left,omitempty"`
	Life int    `json:"life,omitempty"` // how many seconds this counts; 0 for the usual
	// Opens says that it opens what is sealed to the key that this is signed with.
	Opens bool `json:"opens,omitempty"`
}

// life is how long a word counts.
func (p presence) life(usual time.Duration) time.Duration {
	if p.Life <= 0 {
		return usual
	}
	return min(time.Duration(p.Life)*time.Second, max(usual, subject.LongestPresence))
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
	for _, one := range p.Capabilities {
		if len(one) > maxWordChars {
			return presence{}, bridge.Errorf(bridge.Invalid, "a capability has more than %d characters", maxWordChars)
		}
	}
	return p, nil
}

func (h *Hub) presenceKey() string {
	return subject.BucketKey(subject.PresenceBucket(h.opts.Team), h.opts.Self)
}

// appear says that this PC is there.
func (h *Hub) appear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.opts.Pace.Answer)
	defer cancel()
	h.mu.Lock()
	rarely := subject.Rarely(len(h.names))
	h.mu.Unlock()
	every := h.opts.Pace.Presence * time.Duration(rarely)
	h.again = h.opts.Now().Add(every - every*time.Duration(rand.N(256))/1024 - h.opts.Pace.Presence/2) //nolint:gosec // so that a team's PCs do not keep step
	h.mute.Store(false)
	word := h.opts.Word()
	said := presence{Session: h.session, Release: word.Release, Capabilities: word.Capabilities, Life: int(h.opts.Pace.Life.Seconds()) * rarely, Opens: h.opts.Open != nil}
	return insist(ctx, h, h.presenceKey(), said.encode())
}

// insist has the engine store what only the newest counts of, and says it again where no
// answer comes: of three nodes none stores anything while they agree on who leads.
func insist(ctx context.Context, h *Hub, at string, body []byte) error {
	for wait := h.opts.Pace.Answer / 10; ; wait *= 2 {
		once, cancel := context.WithTimeout(ctx, wait)
		err := h.say(once, at, body, store)
		cancel()
		if err == nil || ctx.Err() != nil || !h.conn.IsConnected() || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		select {
		case <-time.After(h.opts.Pace.Retry / 4):
		case <-ctx.Done():
			return err
		}
	}
}

// subscribe hears the team.
func (h *Hub) subscribe() error {
	roster := subject.RosterBucket(h.opts.Team)
	for at, take := range map[string]nats.MsgHandler{
		subject.Frames(h.opts.Team, h.opts.Self): h.takeFrame,
		h.presenceKey():                          func(*nats.Msg) { h.mute.Store(true) },
		subject.BucketKey(roster, "*"):           h.takeEntry,
		subject.DecisionSubjects(h.opts.Team):    h.Decisions().hear,
	} {
		if _, err := hear(h, at, take); err != nil {
			return err
		}
	}
	return h.Inbox.subscribe()
}

// readRoster learns who belongs to the team. refused is told what says nothing.
func (h *Hub) readRoster(ctx context.Context, refused func(pc string, err error)) error {
	_, err := readRosterFrom(ctx, h, 1, refused)
	return err
}

// readRosterFrom reads what the roster has from a sequence on, and returns from which one
// on there may be more. Sequences mean the same for as long as a connection does: a hub
// that was put back to an earlier state has ended it.
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
	if !enter(h, came...) {
		next = from // it is read again
	}
	return next, err
}

// readPresence learns who is there. How old a word is, the engine's own clock tells: this
// PC's own is the newest.
func (h *Hub) readPresence(ctx context.Context) error {
	bucket := subject.PresenceBucket(h.opts.Team)
	var words []stored
	err := h.read(ctx, subject.BucketStream(bucket), subject.BucketKey(bucket, "*"), 1, func(s stored) { words = append(words, s) })
	if err != nil {
		return err
	}
	var newest time.Time
	for _, word := range words {
		if word.at.After(newest) {
			newest = word.at
		}
	}
	for _, word := range words {
		if pc, err := subject.ParseBucketKey(bucket, word.msg.Subject); err == nil && pc == h.opts.Self {
			h.mu.Lock()
			h.ahead = h.opts.Now().Sub(word.at)
			h.mu.Unlock()
		}
		h.takePresence(word.msg, newest.Sub(word.at))
	}
	return nil
}

// takeEntry takes what the hub says of a PC. What the hub has not sealed, a deletion too,
// says nothing.
func (h *Hub) takeEntry(msg *nats.Msg) {
	if e, err := openEntry(h, msg); err != nil {
		dropEntry(h)(e.pc, err)
	} else {
		enter(h, e)
	}
}

func dropEntry(h *Hub) func(pc string, err error) {
	return func(pc string, err error) { h.drop(pc, Unsealed, err) }
}

// entry is what the roster says of one PC.
type entry struct {
	pc     string
	number int64
	member subject.Member
}

// openEntry reads what the hub has sealed of a PC.
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

// enter has the roster's newest words count, once they are durable where they are kept;
// kept reports whether they are.
func enter(h *Hub, came ...entry) (kept bool) {
	h.entering.Lock()
	defer h.entering.Unlock()
	err := h.kept.note(came)
	if err != nil {
		h.opts.Log.Error("what the team's roster says cannot be kept: who is new there is not heard", "err", err)
	}
	changed := false
	h.mu.Lock()
	for _, e := range came {
		if err == nil || e.member.Removed { // who goes, goes at once
			changed = enterLocked(h, e) || changed
		}
	}
	h.mu.Unlock()
	if changed {
		h.opts.Changed(remote.PC{})
	}
	return err == nil
}

func enterLocked(h *Hub, e entry) (changed bool) {
	m := h.pcs[e.pc]
	if m == nil {
		m = &member{}
		h.pcs[e.pc] = m
	}
	if before := m.entry; e.number <= before {
		if e.number < before && h.kept.file != "" {
			h.opts.Log.Warn("the team's roster has an older word about a PC than was read here: it counts for nothing", "peer", e.pc)
		}
		return false
	}
	if e.pc == h.opts.Self {
		if h.removed = e.member.Removed; h.removed {
			h.outed.Notify()
		}
	}
	m.box = cmp.Or(e.member.Box, m.box)
	fresh := m.entry == 0
	m.pc, m.entry, m.gone = remote.PC{ID: e.pc, Name: e.member.Name}, e.number, e.member.Removed
	if fresh {
		callLocked(h, m)
	} else {
		h.nameLocked()
	}
	if m.gone {
		m.leave()
	} else if h.state.Up {
		m.rise(h.opts.Now())
	}
	return true
}

// nameLocked gives each name to one PC: to the one of which the hub said so last.
func (h *Hub) nameLocked() {
	h.names = map[string]*member{}
	for _, m := range h.pcs {
		callLocked(h, m)
	}
}

// callLocked gives a PC its name, unless another one has it by a later word.
func callLocked(h *Hub, m *member) {
	if before := h.names[m.pc.Name]; !m.gone && m.pc.Name != "" && (before == nil || before.entry < m.entry) {
		h.names[m.pc.Name] = m
	}
}

// hearPresence takes what is said now.
func hearPresence(h *Hub, msg *nats.Msg) {
	if msg.Subject != h.presenceKey() {
		h.takePresence(msg, 0)
	}
}

// takePresence takes a PC's word that it is there, which was said so long ago.
func (h *Hub) takePresence(msg *nats.Msg, age time.Duration) {
	if msg.Header.Get(subject.HeaderKey) == "" {
		takeLeft(h, msg)
		return
	}
	pc, err := subject.ParseBucketKey(subject.PresenceBucket(h.opts.Team), msg.Subject)
	var word presence
	var number int64
	why := Unsigned
	if err == nil {
		number, err = proved(pc, msg)
	}
	if err == nil {
		why = Malformed
		word, err = parsePresence(msg.Data)
	}
	if err != nil {
		h.drop(pc, why, err)
		return
	}
	if pc == h.opts.Self || age > word.life(h.opts.Pace.Life) {
		return
	}
	h.mu.Lock()
	m := h.pcs[pc]
	if m == nil || m.gone {
		if m == nil {
			h.lacks.Store(true)
		}
		h.mu.Unlock() // nobody of the team, or one whom the roster lacks here
		return
	}
	changed := hearLocked(h, m, number, word, age, nil)
	if word.Opens {
		m.box = msg.Header.Get(subject.HeaderKey)
	}
	who := m.pc
	h.mu.Unlock()
	if changed {
		h.opts.Changed(who)
	}
}

// hearLocked has a PC's word count that is newer than what is known; told is the hub's
// line where nothing else proves it yet.
func hearLocked(h *Hub, m *member, number int64, word presence, age time.Duration, told *subject.Line) (changed bool) {
	if number < m.spoke || number == m.spoke && !m.heard.IsZero() {
		return false // said before
	}
	now := h.opts.Now()
	before := m.since
	if word.Session != m.there.Session {
		m.since = time.Time{} // its numbers go on, so what it said before is not heard again
	}
	m.there, m.spoke, m.heard, m.told = word, number, now.Add(-age), told
	if word.Gone {
		m.leave()
	} else if h.state.Up {
		m.rise(now)
	}
	if changed = !m.since.Equal(before); changed {
		m.queue.look()
	}
	return changed
}

// takeLeft takes the hub's word that a PC has gone without a goodbye.
func takeLeft(h *Hub, msg *nats.Msg) {
	pc, err := subject.ParseBucketKey(subject.PresenceBucket(h.opts.Team), msg.Subject)
	var left subject.Left
	var body []byte
	if err == nil {
		body, _, err = subject.Open(h.opts.Hub, msg.Subject, msg.Data)
	}
	if err == nil {
		left, err = subject.ParseLeft(body)
	}
	if err != nil {
		h.drop(pc, Unsigned, err)
		return
	}
	h.mu.Lock()
	m := h.pcs[pc]
	if m == nil {
		h.mu.Unlock() // nobody of the team
		return
	}
	changed, who := m.left(left.Number), m.pc
	h.mu.Unlock()
	if changed {
		h.opts.Changed(who)
	}
}

// expire forgets the presence of those that say nothing any more.
func (h *Hub) expire() {
	h.mu.Lock()
	changed := false
	for _, m := range h.pcs {
		if !m.heard.IsZero() && h.opts.Now().Sub(m.heard) > m.there.life(h.opts.Pace.Life) {
			m.leave()
			changed = true
		}
	}
	h.mu.Unlock()
	if changed {
		h.opts.Changed(remote.PC{})
	}
}

// proved is the number of a word that the PC of that identity has signed.
func proved(pc string, msg *nats.Msg) (number int64, err error) {
	proof, err := subject.ParseProof(msg.Header.Get)
	if err == nil {
		err = proof.Check(pc, msg.Subject, msg.Data)
	}
	return proof.Number, err
}
