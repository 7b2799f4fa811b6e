package dashboard

import (
	"fmt"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/delivery"
	"bridge/backend/core/job"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/doors/dashboard/dto"
	"bridge/backend/platform/ipc/api"
)

// recipient holds a recipient's data for the delivery strip.
type recipient struct {
	name  string
	agent bridge.AgentKind
	live  *api.Peer // nil while it is offline
}

// deliveryView is one delivery in a readable form, made of stored facts.
type deliveryView struct {
	mail.Delivery
	recipient recipient
	maxHops   int
	broker    bool // a broker runs
	zone      *time.Location
}

func (d deliveryView) wire() dto.Delivery {
	return dto.Delivery{
		ID:     d.Recipient,
		Name:   d.recipient.name,
		Agent:  d.recipient.agent,
		Stage:  d.Stage(),
		Note:   d.note(),
		Stages: d.steps(),
	}
}

// steps returns the six steps. A step is not possible if a later one came first,
// the message expired, or it may not wake the session.
func (d deliveryView) steps() []dto.Step {
	facts := d.Facts()
	furthest := 0
	for i, fact := range facts {
		if fact.Happened() {
			furthest = i
		}
	}
	steps := make([]dto.Step, len(facts))
	for i, stage := range bridge.Stages() {
		step := dto.Step{Stage: stage, Via: facts[i].Via, Evidence: facts[i].Evidence, Possible: true}
		switch {
		case facts[i].Happened():
			step.At = &facts[i].At
		case i < furthest:
			step.Possible, step.Evidence = false, "not needed"
		case d.Stage() == bridge.StageExpired:
			step.Possible, step.Evidence = false, "it expired first"
		case d.Stage() == bridge.StageRefused:
			step.Possible, step.Evidence = false, d.Remote.Host+" refused it"
		case stage == bridge.StageWoken:
			if obstacle := d.neverWakes(); obstacle != "" {
				step.Possible, step.Evidence = false, obstacle
			}
		}
		steps[i] = step
	}
	return steps
}

// neverWakes returns why the message may not wake its recipient, or "". Package
// mail decides; this function puts the reason into text.
func (d deliveryView) neverWakes() string {
	policy := session.Policy{AutoWake: true, WakeOnDirect: true, MaxHops: d.maxHops}
	if !mail.MayWake(d.Message, true, policy) {
		if mail.Quiet(d.ConversationID) {
			return "it is shown on the next turn and wakes nobody"
		}
		return fmt.Sprintf("at hop %d mail wakes nobody", d.Hop)
	}
	if why := delivery.NeverWakes(d.recipient.agent); why != "" {
		return why
	}
	if d.recipient.live == nil {
		return "" // its wishes are known when it is back
	}
	peer := session.Session{ID: d.recipient.live.ID, Name: d.recipient.live.Name}
	if d.recipient.live.SessionID != nil {
		peer.SessionID = *d.recipient.live.SessionID
	}
	policy.AutoWake, policy.WakeOnDirect = d.recipient.live.AutoWake, d.recipient.live.WakeOnDirect
	if !mail.MayWake(d.Message, mail.Direct(d.Message, &peer), policy) {
		return "auto-wake is off for this session"
	}
	return ""
}

// note returns the message's state as a sentence for people.
func (d deliveryView) note() string {
	switch d.Stage() {
	case bridge.StageRefused:
		return d.Remote.Words()
	case bridge.StageAtHub:
		return d.Remote.Words() + " since " + d.clock(d.Remote.AtHub.At)
	case bridge.StageArrived:
		return d.Remote.Words() + " since " + d.clock(d.Remote.Arrived.At)
	case bridge.StageAnswered:
		return "answered " + d.clock(d.Answered.At)
	case bridge.StageConsumed:
		return "read " + d.clock(d.Read().At)
	case bridge.StageExpired:
		return "expired after " + bridge.Span(time.Duration(d.Expired.At-d.CreatedAt)*time.Millisecond)
	case bridge.StageHanded:
		return "handed over, waiting for a sign of activity"
	default: // it waits: the reason follows
	}
	switch {
	case d.Remote.IsWaiting():
		return d.Remote.Words()
	case !d.broker:
		return "waiting for a broker to run"
	case d.recipient.live == nil:
		return "waiting for the session to come back"
	case d.recipient.live.State == "busy":
		return "waiting for its next safe step"
	case d.Stage() == bridge.StageWoken:
		return "woken " + d.clock(d.Woken.At) + ", waiting for its turn to begin"
	case d.isLimited():
		return "waits: " + d.recipient.name + " was woken " + d.clock(d.recipient.live.WokenAt) + "; next wake " + d.clock(d.recipient.live.NextWake)
	default:
		return "waiting for its next turn"
	}
}

// isLimited reports whether only the limits of wakes let the message wait (QUI-03).
func (d deliveryView) isLimited() bool {
	peer := d.recipient.live
	return peer.NextWake != 0 && peer.Wake != delivery.WakeNone && d.From.Agent != bridge.Owner && !job.IsReporter(d.From) && d.neverWakes() == ""
}

// clock returns the time of day, with the date if it is not the message's date.
func (d deliveryView) clock(at int64) string {
	then, created := time.UnixMilli(at).In(d.zone), time.UnixMilli(d.CreatedAt).In(d.zone)
	if then.YearDay() == created.YearDay() && then.Year() == created.Year() {
		return then.Format("15:04")
	}
	return then.Format("2 Jan 15:04")
}
