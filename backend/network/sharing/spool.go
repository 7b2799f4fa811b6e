package sharing

import (
	"context"
	"slices"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	"bridge/backend/network/hub/subject"
)

// A PC of the team that is away takes its messages from the hub when it comes back
// (HUB-05). Both ways to it carry the letters in their order from the first that was not
// answered on, and each counts once by its id: so whichever way is quicker, what is stored
// there is always the beginning of what was sent. While letters lie at the hub, and the
// PC is heard to take them, new ones go behind them; where it takes none, they are sent
// to it from here.

// Keeps is broker.Pairs'.
func (s *Sharing) Keeps() []string {
	if s.opts.Spool == nil {
		return nil
	}
	return s.opts.Spool.Keeps()
}

// spool has the hub keep what cannot be sent now.
func (p *pair) spool() {
	p.atHub = 0
	if p.opts.Spool == nil {
		return
	}
	ctx := p.tasks.Context()
	var err error
	if !p.noneThere {
		p.atHub, err = p.opts.DB.Remote().AtHub(ctx, p.pc.ID)
		p.noneThere = err == nil && p.atHub == 0
	}
	if err == nil && p.atHub > 0 {
		err = p.recall(ctx)
	}
	if err != nil {
		p.spoolFailed(ctx, err)
		return
	}
	if p.status.Up && p.atHub == 0 || !slices.Contains(p.opts.Spool.Keeps(), p.pc.ID) {
		p.spooled = flight{}
		return
	}
	if p.spooled.isOut(p.opts.Now()) {
		return
	}
	err = p.spoolLetters(ctx)
	if err == nil && !p.status.Up {
		err = p.spoolReceipts(ctx)
	}
	if err != nil {
		p.spoolFailed(ctx, err)
		return
	}
	p.spooled = flight{}
}

// recall has letters wait here again that lie at the hub beside a PC that is there and
// takes none, or that the hub will not have much longer: this store has them whole.
func (p *pair) recall(ctx context.Context) error {
	now := p.opts.Now()
	last := p.status.Since
	if p.news.After(last) {
		last = p.news
	}
	if at := time.UnixMilli(p.atHub); at.After(last) {
		last = at
	}
	ignored := p.status.Up && now.Sub(last) > p.opts.Pace.Recall
	if !ignored && now.Sub(time.UnixMilli(p.atHub)) < subject.KeepMessages {
		return nil
	}
	p.atHub = 0
	return p.opts.DB.Remote().Recall(ctx, p.pc.ID)
}

func (p *pair) spoolLetters(ctx context.Context) error {
	letters, payload, err := p.nextLetters(ctx)
	if err != nil || len(letters) == 0 {
		return err
	}
	if err := p.opts.Spool.Store(ctx, p.pc.ID, remote.Frame{Type: remote.MessagesFrame, Payload: payload}); err != nil {
		return err
	}
	p.noneThere = false
	ids := make([]string, len(letters))
	for i, letter := range letters {
		ids[i] = letter.ID
	}
	if err := p.opts.DB.Remote().RecordAtHub(ctx, p.pc.ID, ids); err != nil {
		return err
	}
	p.opts.Broker.Changed()
	p.wake() // there may be more
	return nil
}

func (p *pair) spoolReceipts(ctx context.Context) error {
	if p.allows(remote.ShareMessages, p.pc.Name) != nil {
		return nil //nolint:nilerr // nothing may be told now
	}
	news, payload, err := p.nextReceipts(ctx)
	if err != nil || len(news) == 0 {
		return err
	}
	if err := p.opts.Spool.Store(ctx, p.pc.ID, remote.Frame{Type: remote.MessagesFrame, Payload: payload}); err != nil {
		return err
	}
	p.wake()
	return p.opts.DB.Remote().Noted(ctx, p.pc.ID, news) // it is durable on its way
}

// notTaken reports whether the hub did not take something, or this PC does not give it to
// the hub for that PC.
func notTaken(err error) bool {
	return slices.Contains([]bridge.Code{bridge.Busy, bridge.TooLarge, bridge.Unsupported}, bridge.CodeOf(err))
}

// spoolFailed has it tried again later, and the senders see why, where the hub said so.
func (p *pair) spoolFailed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.hold(&p.spooled)
	words := ""
	if notTaken(err) {
		words = err.Error() + "; it is tried again"
		p.spooled.again = p.opts.Now().Add(p.opts.Pace.Held)
		p.opts.Log.Warn("the team's hub did not take what waits for a PC", "peer", p.pc.Name, "err", err)
	}
	p.tellHeld(ctx, words)
}

// tellHeld has the senders see why their messages for the PC wait; "" is that it is away.
func (p *pair) tellHeld(ctx context.Context, words string) {
	changed, err := p.opts.DB.Remote().RecordHeld(ctx, p.pc.ID, words)
	if err != nil && ctx.Err() == nil {
		p.opts.Log.Warn("why messages wait could not be stored", "peer", p.pc.Name, "err", err)
	}
	if changed > 0 {
		p.opts.Broker.Changed()
	}
}

// storedMail is what lay at the hub.
type storedMail struct {
	in   remote.Mail
	at   time.Time // when it was stored there
	done chan error
}

// TakeStored takes a frame that lay at the hub since then, and returns when what it says
// is stored here. What lay there may be old: nothing but messages counts.
func (s *Sharing) TakeStored(ctx context.Context, from remote.PC, frame remote.Frame, since time.Time) error {
	if frame.Type != remote.MessagesFrame {
		return bridge.Errorf(bridge.Invalid, "%q is nothing that may lie in a hub", frame.Type)
	}
	in, err := remote.ParseMail(frame.Payload)
	if err != nil {
		return err
	}
	ending := bridge.Errorf(bridge.Unavailable, "this Bridge is ending")
	p := s.pair(remote.PC{ID: from.ID, Name: from.Name})
	if p == nil {
		return ending
	}
	mail := storedMail{in: in, at: since, done: make(chan error, 1)}
	select {
	case p.lay <- mail:
	case <-s.tasks.Done():
		return ending
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-mail.done:
		return err
	case <-s.tasks.Done():
		return ending
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeStored takes what lay at the hub. Letters are answered by the same way before they
// are taken out there: otherwise nobody would ever tell their sender.
func (p *pair) takeStored(mail storedMail) error {
	ctx, in := p.tasks.Context(), mail.in
	p.news = p.opts.Now()
	shift := in.Shift(mail.at.UnixMilli())
	switch {
	case len(in.Letters) > 0:
		out, later, err := p.keepLetters(ctx, in.Letters, shift)
		if err == nil {
			err = later
		}
		if err != nil {
			return err
		}
		return p.answerStored(ctx, out)
	case len(in.Arrivals) > 0:
		_, err := p.recordArrivals(ctx, in.Arrivals)
		return err
	case len(in.Receipts) > 0:
		_, err := p.recordReceipts(ctx, in, shift)
		return err
	}
	return nil // nothing else is told by way of the hub
}

// answerStored has the hub keep an answer. One that it does not take is not waited for:
// when both PCs are there, the sender asks again.
func (p *pair) answerStored(ctx context.Context, out remote.Mail) error {
	payload, err := remote.EncodeMail(out)
	if err == nil {
		err = p.opts.Spool.Store(ctx, p.pc.ID, remote.Frame{Type: remote.MessagesFrame, Payload: payload})
	}
	if notTaken(err) {
		p.opts.Log.Warn("the team's hub did not take an answer", "peer", p.pc.Name, "err", err)
		return nil
	}
	return err
}
