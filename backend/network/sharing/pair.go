package sharing

import (
	"context"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/platform/lifecycle"
)

// maxFrames is how many frames of one PC wait to be worked on. Of letters, receipts
// and lists at most one each is under way, and an answer to each.
const maxFrames = 16

// pair is what goes on with one paired PC: one goroutine that takes its frames one
// after the other and sends what waits for it. Its fields are that goroutine's own,
// but for the channels and what was overrun.
type pair struct {
	*Sharing
	pc    remote.PC
	in    chan remote.Frame
	awake lifecycle.Signal // look again
	lay   chan storedMail

	overrun overrun // of decisions

	status   remote.Status // when it was last looked at
	letters  flight        // letters that were sent and not answered
	receipts flight        // receipts that were sent and not noted
	sync     syncState
	upTo     int64 // when the last decision was made there before which all are here; 0 at first
	views    *views
	decided  remote.Allowance // of its decisions that were new here
	written  remote.Allowance // of its messages

	atHub     int64     // since when the first letter lies at the hub; 0 where none does
	noneThere bool      // none does, and only this goroutine has one lie there
	spooled   flight    // what the spool did not take
	news      time.Time // when something was heard of letters by way of the spool
}

func newPair(s *Sharing, pc remote.PC) *pair {
	return &pair{Sharing: s, pc: pc, in: make(chan remote.Frame, maxFrames), awake: lifecycle.NewSignal(), lay: make(chan storedMail), views: newViews()}
}

func (p *pair) wake() {
	p.awake.Notify()
}

func (p *pair) run() {
	for {
		p.look()
		var due <-chan time.Time
		if pause := p.nextTry(); pause > 0 {
			due = time.After(pause)
		}
		select {
		case frame := <-p.in:
			p.refresh() // it may be the first of another link
			p.take(frame)
		case mail := <-p.lay:
			mail.done <- p.takeStored(mail)
		case <-p.awake:
		case <-due:
		case <-p.tasks.Done():
			return
		}
	}
}

// refresh looks how it stands with the link. What was under way on another one is not
// any more.
func (p *pair) refresh() {
	status, err := p.opts.Transport.Of(p.pc.ID)
	if err != nil || !status.Up {
		p.status, p.letters, p.receipts, p.sync = remote.Status{}, flight{}, flight{}, syncState{}
		return
	}
	if !status.Since.Equal(p.status.Since) || !p.status.Up { // another link: nothing is under way on it
		p.letters, p.receipts, p.sync = flight{}, flight{}, syncState{}
	}
	p.status = status
	p.pc.Name = status.Name
}

// look sends what there is to send now.
func (p *pair) look() {
	p.refresh()
	p.spool()
	if !p.status.Up {
		return
	}
	ctx := p.tasks.Context()
	for _, part := range []struct {
		what   string
		send   func(context.Context) error
		flight *flight
	}{{"messages", p.sendLetters, &p.letters}, {"receipts", p.sendReceipts, &p.receipts}, {"decisions", p.sendDecisions, &p.sync.later}} {
		err := part.send(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if !part.flight.isOut(p.opts.Now()) {
				part.flight.again = time.Time{} // nothing is under way, nothing to come back for
			}
			continue
		}
		p.hold(part.flight)
		if bridge.CodeOf(err) == bridge.Unsupported && part.flight == &p.letters {
			p.tellHeld(ctx, err.Error()+"; it is tried again")
		}
		if bridge.CodeOf(err) != bridge.Unavailable {
			p.opts.Log.Warn("what waits for a paired PC could not be sent", "peer", p.pc.Name, "what", part.what, "err", err)
		}
	}
}

func (p *pair) take(frame remote.Frame) {
	do := map[string]func(context.Context, []byte) error{
		remote.MessagesFrame: p.takeMail, remote.DecisionsFrame: p.takeSync, remote.DashboardFrame: p.takeView,
	}[frame.Type]
	if do == nil {
		return
	}
	if err := do(p.tasks.Context(), frame.Payload); err != nil && !p.tasks.HasEnded() {
		p.opts.Log.Warn("a frame of another PC was dropped", "peer", p.pc.Name, "type", frame.Type, "err", err)
		p.refused(p.pc, frame.Type, err)
	}
}

func (p *pair) send(ctx context.Context, frameType string, payload []byte, err error) error {
	if err != nil {
		return err
	}
	return p.opts.Transport.Send(ctx, p.pc.ID, remote.Frame{Type: frameType, Payload: payload})
}

// nextTry is how long until something that was not answered is sent again; 0 for
// nothing.
func (p *pair) nextTry() time.Duration {
	next := time.Duration(0)
	for _, f := range []flight{p.letters, p.receipts, p.sync.question, p.sync.later, p.spooled} {
		if f.again.IsZero() {
			continue
		}
		if pause := max(f.again.Sub(p.opts.Now()), time.Millisecond); next == 0 || pause < next {
			next = pause
		}
	}
	return next
}

// flight is what was sent on this link and is not answered: one frame at a time, so
// that everything stays in its order.
type flight struct {
	again time.Time     // when it is sent again; zero when nothing is under way
	pause time.Duration // how long it was held back the last time; zero when it was not
}

// isOut reports whether an answer is still waited for, or what fails is held back.
func (f flight) isOut(now time.Time) bool { return !f.again.IsZero() && now.Before(f.again) }

func (p *pair) begin(f *flight) { f.again = p.opts.Now().Add(p.opts.Pace.Resend) }

// What failed for a passing reason is held back, at first for the first pause; that
// doubles with each time, up to the longest.
const firstPause, longestPause = 500 * time.Millisecond, 5 * time.Second

// hold holds back what failed on either side for a passing reason.
func (p *pair) hold(f *flight) {
	f.pause = min(max(2*f.pause, firstPause), longestPause)
	f.again = p.opts.Now().Add(f.pause)
}
