package broker

import (
	"context"
	"slices"

	"bridge/backend/agent/kinds"
	"bridge/backend/broker/wake"
	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
)

// activity is the part of the broker that judges handed-over mail by signs of activity.
type activity struct{ *core }

// handedScan limits how many handed-over deliveries one call checks.
const handedScan = 500

// noteActivity records a sign of activity. Everything handed to the session before it
// counts as read from then on.
func (p *activity) noteActivity(ctx context.Context, s *session.Session, evidence string) error {
	if err := p.offerAgain(ctx, s, false); err != nil {
		return err
	}
	if _, err := p.wakes.judgeWakes(ctx, s, session.HookCall{HostEvent: evidence}); err != nil {
		return err
	}
	return p.consumeHandedOver(ctx, s, nextActivity(evidence))
}

// markActive records the session's last activity as now and returns it, in Unix milliseconds.
func (p *activity) markActive(s *session.Session) (at int64) {
	at = p.nowMillis()
	p.Lock()
	defer p.Unlock()
	if box := p.Boxes[s.ID]; box != nil {
		box.Active(at)
	}
	return at
}

func (p *activity) consumeHandedOver(ctx context.Context, s *session.Session, evidence string) error {
	at := p.markActive(s)
	p.Lock()
	id, box := s.ID, p.Boxes[s.ID]
	if box == nil || !box.Open() {
		p.Unlock()
		return nil
	}
	handovers := box.Handovers()
	hosts, come := p.HostsLocked(id)
	p.Unlock()
	here, awaited := wake.Running(hosts, come), false
	marks, err := p.opts.DB.ConsumeHandedOver(ctx, id, at, at, evidence, func(fact mail.Fact) bool {
		awaits := here.Await(fact)
		awaited = awaited || awaits
		return awaits || here.HandedEarlier(fact)
	})
	if err != nil {
		return err
	}
	if !awaited {
		p.Lock()
		box.Consumed(handovers)
		p.Unlock()
	}
	if len(marks) > 0 {
		p.changed()
	}
	return nil
}

// offerAgain makes mail unread again that was handed to an earlier process. It excepts
// mail that the host's own store holds, because the process that resumed the session sees
// that mail. Mail in a host's own queue stays there. Mail given to a mod is judged
// separately (judgeMod).
func (p *activity) offerAgain(ctx context.Context, s *session.Session, all bool) error {
	p.Lock()
	id, box := s.ID, p.Boxes[s.ID]
	wakes := box != nil && box.Hooks.Open() && delivery.WakerOf(s.Kind) == bridge.HookWaker // no function judges those of others
	if box == nil || !all && !box.Open() && !wakes {
		p.Unlock()
		return nil
	}
	hosts, come := p.HostsLocked(id)
	kind, folder, host, cwd := s.Kind, s.CLIDataDir, s.SessionID, s.Cwd
	p.Unlock()
	here := wake.Running(hosts, come)
	deliveries, err := p.opts.DB.Handed(ctx, id, handedScan)
	lost := slices.DeleteFunc(deliveries, func(d mail.Delivery) bool {
		return d.Handed.Via.InQueue() || d.Handed.Via == mail.ViaMod || !d.Handed.Happened() || !all && !here.HandedEarlier(d.Handed)
	})
	if err != nil || len(lost) == 0 {
		return err
	}
	held := kinds.StoreOf(kind).Holds(ctx, folder, host, cwd, lost)
	var seen []mail.Mark
	for _, d := range lost {
		if held[d.ID] {
			seen = append(seen, mail.Mark{MessageID: d.ID, Recipient: id, At: p.nowMillis(), Via: mail.ViaTranscript, Evidence: "the resumed session holds it"})
		}
	}
	lost = slices.DeleteFunc(lost, func(d mail.Delivery) bool { return held[d.ID] })
	if err := p.opts.DB.Record(ctx, bridge.StageConsumed, seen); err != nil {
		return err
	}
	if err := p.opts.DB.UnhandThese(ctx, lost); err != nil {
		return err
	}
	p.Lock()
	defer p.Unlock()
	for _, d := range lost {
		box.Forget(d.ID)
	}
	box.Renew() // mail that was read before this is stale
	for _, d := range lost {
		if p.Boxes[s.ID] == box {
			p.messages.announceLocked(s, d.Message)
		}
	}
	p.changed()
	return nil
}

// nextActivity returns the evidence for mail that a session read before that event.
func nextActivity(event string) string { return "next activity: " + event }
