package sharing

import (
	"context"
	"encoding/json"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub"
	"bridge/backend/network/pairing"
	"bridge/backend/platform/lifecycle"
	"bridge/backend/storage/store"
)

// team exchanges the decisions of this PC's team in one goroutine (HUB-06). It reads the
// team's stream from the store's position, and publishes decisions made here. Only that
// goroutine uses the fields, except the channel.
type team struct {
	*Sharing
	awake lifecycle.Signal // check again

	seen      teamState
	checkAt   time.Time       // when to check without a signal; zero for at once
	pause     time.Duration   // the last backoff
	published map[string]bool // decisions that the stream acknowledged and that it did not return yet
	quiet     bool            // something waits for a session to notify
	waits     waits           // the last call of Options.Waits
}

// waits counts decisions that the team's hub does not have, although it is connected.
type waits struct {
	count int
	why   string
}

// teamState is the state at a check. If it is unchanged, there is nothing to do.
type teamState struct {
	team     string
	received uint64
	last     int64
}

// recheck is how often the stream is checked without a signal.
const recheck = time.Minute

func newTeam(s *Sharing) *team {
	return &team{Sharing: s, awake: lifecycle.NewSignal(), published: map[string]bool{}}
}

func (t *team) notify() {
	t.awake.Notify()
}

func (t *team) run() {
	for {
		if err := t.look(t.tasks.Context()); err != nil && !t.tasks.HasEnded() {
			t.pause = min(max(2*t.pause, firstPause), longestPause)
			t.checkAt = t.opts.Now().Add(t.pause)
			if bridge.CodeOf(err) != bridge.Unavailable {
				t.opts.Log.Warn("the team's decisions could not be exchanged", "err", err)
			}
		}
		select {
		case <-t.awake:
		case <-time.After(max(t.checkAt.Sub(t.opts.Now()), time.Millisecond)):
		case <-t.tasks.Done():
			return
		}
	}
}

// look exchanges decisions if something changed.
func (t *team) look(ctx context.Context) error {
	way, up := t.opts.Team()
	if !up || t.allows(remote.ShareDecisions, remote.TeamShare(way.Team)) != nil {
		t.seen, t.checkAt = teamState{}, t.opts.Now().Add(recheck)
		t.reportWaiting(ctx, nil)
		return nil //nolint:nilerr // its owner shares none with the team
	}
	if t.quiet {
		if err := t.notifySessions(ctx); err != nil {
			return err
		}
	}
	last, err := t.opts.DB.Remote().LastDecision(ctx)
	if err != nil {
		return err
	}
	now := teamState{team: way.Hub + " " + way.Team, received: way.Received(), last: last}
	if now == t.seen && t.opts.Now().Before(t.checkAt) {
		return nil
	}
	t.checkAt = t.opts.Now().Add(recheck)
	err = t.synchronize(ctx, way, now.team)
	t.reportWaiting(ctx, err)
	if err != nil {
		t.seen = teamState{}
		return err
	}
	t.seen, t.pause = now, 0
	return nil
}

// synchronize reads the stream to its end, publishes what the stream lacks, reads that back
// in order, and notifies the sessions.
func (t *team) synchronize(ctx context.Context, way pairing.TeamStream, name string) error {
	place, err := t.read(ctx, way, name)
	if err != nil {
		return err
	}
	saying := t.publish(ctx, way)
	if saying == nil || bridge.CodeOf(saying) != bridge.Unavailable {
		if _, err := t.readOn(ctx, way, place, nil); err != nil {
			return err
		}
	}
	if err := t.notifySessions(ctx); err != nil {
		return err
	}
	if len(t.published) > 0 && saying == nil {
		return bridge.Errorf(bridge.Unavailable, "the team's hub does not show what it has acknowledged")
	}
	return saying
}

// reportWaiting shows the owner how many decisions the hub lacks, and why. What a hub
// refuses, such as while its disk is full, may stay refused for long.
func (t *team) reportWaiting(ctx context.Context, why error) {
	if t.opts.Waits == nil || ctx.Err() != nil {
		return
	}
	var now waits
	if why != nil {
		own, err := t.opts.DB.Remote().ForTeam(ctx)
		if err != nil {
			return // errors of the store are reported elsewhere
		}
		for _, revision := range own {
			if !t.published[revision.ID] {
				now.count++
			}
		}
		if now.count > 0 {
			now.why = why.Error()
		}
	}
	if now == t.waits {
		return
	}
	t.waits = now
	t.opts.Waits(now.count, why)
	t.opts.Broker.Changed()
}

// read reads new messages of the stream. If the stream is another one than before, or an
// earlier state of it, it reads from the beginning.
func (t *team) read(ctx context.Context, way pairing.TeamStream, name string) (store.TeamPosition, error) {
	place, err := t.opts.DB.Remote().TeamPosition(ctx)
	if err != nil {
		return place, err
	}
	state, err := way.Stream(ctx)
	if err != nil {
		return place, err
	}
	var entries []hub.Said
	same := place.Team == name && place.Stream == state.Stream && place.Sequence <= state.Last
	if same && place.Sequence > 0 {
		if entries, _, err = way.Read(ctx, place.Sequence); err != nil {
			return place, err
		}
		if len(entries) == 0 {
			return place, bridge.Errorf(bridge.Unavailable, "the team's hub has not caught up with itself")
		}
		same = entries[0].Sequence == place.Sequence && entries[0].Mark == place.Mark
		entries = entries[1:]
	}
	if !same {
		if place.Stream != "" {
			t.opts.Log.Warn("the team's stream of decisions is another one now, or an earlier state of it: it is read from its beginning", "team", way.Team)
		}
		clear(t.published)
		if err := t.opts.DB.Remote().RestartTeam(ctx, name, state.Stream); err != nil {
			return place, err
		}
		place, entries = store.TeamPosition{Team: name, Stream: state.Stream}, nil
	}
	return t.readOn(ctx, way, place, entries)
}

// readOn stores the messages read after a place, and those that follow.
func (t *team) readOn(ctx context.Context, way pairing.TeamStream, place store.TeamPosition, entries []hub.Said) (store.TeamPosition, error) {
	for {
		if len(entries) > 0 {
			place.Sequence, place.Mark = entries[len(entries)-1].Sequence, entries[len(entries)-1].Mark
			if err := t.keep(ctx, way, entries, place); err != nil {
				return place, err
			}
		}
		var err error
		if entries, _, err = way.Read(ctx, place.Sequence+1); err != nil || len(entries) == 0 {
			return place, err
		}
	}
}

// keep stores a part of the stream with the place that it reaches.
func (t *team) keep(ctx context.Context, way pairing.TeamStream, entries []hub.Said, upTo store.TeamPosition) error {
	var list []store.TeamDecision
	places := map[uint64]hub.Said{}
	for _, statement := range entries {
		places[statement.Sequence] = statement
		decided, err := decidedIn(statement, way)
		if err != nil {
			why := statement.Why
			if statement.Refused == nil {
				why = hub.Malformed
			}
			refuse(way, statement, why, err)
			t.opts.Log.Warn("a decision in the team's stream counts for nothing", "sequence", statement.Sequence, "from", statement.From.Name, "err", err)
			continue
		}
		list = append(list, decided)
	}
	added, refused, err := t.opts.DB.Remote().ImportTeam(ctx, list, upTo)
	if err != nil {
		return err
	}
	for sequence, why := range refused {
		refuse(way, places[sequence], hub.Replayed, why)
		t.opts.Log.Warn("a decision in the team's stream counts for nothing", "sequence", sequence, "err", why)
	}
	for _, decision := range list {
		delete(t.published, decision.ID)
	}
	if added > 0 {
		t.opts.Broker.Changed()
	}
	return nil
}

// refuse counts an invalid message that another PC published.
func refuse(way pairing.TeamStream, statement hub.Said, why hub.Why, err error) {
	if !statement.Own {
		way.Refuse(statement, why, err)
	}
}

// decidedIn returns the decision of one message of the stream.
func decidedIn(statement hub.Said, way pairing.TeamStream) (store.TeamDecision, error) {
	if statement.Refused != nil {
		return store.TeamDecision{}, statement.Refused
	}
	in, err := remote.ParseTeamDecided(statement.Body, statement.At.UnixMilli())
	if err != nil {
		return store.TeamDecision{}, err
	}
	decided := store.TeamDecision{PC: statement.From.ID, Own: statement.Own, Sequence: statement.Sequence, Number: statement.Number, Follows: in.Follows}
	if statement.Own {
		decided.Revision = in.Decision.Revision("")
		decided.Author.ID, decided.Author.Name = in.Decision.Author, in.Decision.Author
	} else {
		decided.Revision = in.Decision.Revision(way.Called(statement.From))
	}
	return decided, nil
}

// publish publishes the decisions made here, in order.
func (t *team) publish(ctx context.Context, way pairing.TeamStream) error {
	own, err := t.opts.DB.Remote().ForTeam(ctx)
	if err != nil || len(own) == 0 {
		return err
	}
	number, err := t.opts.DB.Remote().TeamNumber(ctx, way.Self)
	if err != nil {
		return err
	}
	for _, revision := range own {
		if t.published[revision.ID] {
			continue
		}
		if err := t.allows(remote.ShareDecisions, remote.TeamShare(way.Team)); err != nil {
			return err
		}
		out := remote.TeamDecided{Follows: revision.Follows}
		if out.Decision, err = remote.DecidedOf(revision.Revision); err != nil {
			return err
		}
		body, err := json.Marshal(out)
		if err == nil {
			err = way.Say(ctx, body, number)
		}
		if err != nil {
			return err
		}
		t.published[revision.ID] = true
	}
	return nil
}

// notifySessions notifies the sessions of new decisions. News about concurrent decisions (Beside)
// waits until there is a session to notify.
func (t *team) notifySessions(ctx context.Context) error {
	news, recipients, err := t.opts.DB.Remote().TeamNews(ctx)
	if err != nil {
		return err
	}
	var notified map[string]bool
	if len(news) > 0 {
		if notified, err = t.opts.Broker.NotifyDecisions(ctx, news); err != nil {
			return err
		}
	}
	t.quiet = false
	for _, notice := range news {
		if notified[notice.ID] || notice.Beside == nil { // later sessions are caught up with what is in force
			recipients = append(recipients, notice.ID)
		} else {
			t.quiet = true
		}
	}
	return t.opts.DB.Remote().ClearTeamNews(ctx, recipients)
}
