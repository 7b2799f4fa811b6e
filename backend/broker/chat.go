package broker

import (
	"context"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/chat"
	"bridge/backend/core/delivery"
	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// chats is the part that carries the owner's words.
type chats struct{ *core }

// carry takes the owner's words to a session by the best transport that its
// kind offers, and says honestly how far they came (CHT-02 to CHT-11). No turn
// is interrupted and nothing is sent twice.
func (p *chats) carry(ctx context.Context, request chat.Request) (chat.Outcome, error) {
	p.idleness.lookIdleAt(request.Session)
	target, child, err := p.chatTarget(request)
	if err != nil {
		return chat.Outcome{}, err
	}
	if request.ToParent {
		note := chat.ParentNote(child.ID, child.Title, request.Body)
		return p.chatByMail(ctx, target.Name, request, note, chat.Parent, delivery.Note(target))
	}
	route := delivery.To(target, request.Child, request.Body)
	switch {
	case route.Transport == "":
		return chat.Outcome{State: chat.NotSupported, Transport: chat.Parent, Detail: route.Detail}, nil
	case route.Transport == chat.Bridge:
		return p.chatByMail(ctx, target.Name, request, request.Body, chat.Bridge, route.Detail)
	case request.Child != "":
		return p.chatToChild(ctx, target.Name, route, request), nil
	default:
		return p.chatByQueue(ctx, target.Name, route, request)
	}
}

// chatTarget finds the session, live or away, and the child in its list: a
// child that is not in it is refused (CHT-10).
func (p *chats) chatTarget(request chat.Request) (delivery.Facts, session.Child, error) {
	p.Lock()
	defer p.Unlock()
	s, live := p.Roster.Get(request.Session)
	if !live {
		known, ok := p.Roster.Known(request.Session)
		if !ok {
			return delivery.Facts{}, session.Child{}, bridge.Errorf(bridge.NotFound, "no local session has the id %q", request.Session)
		}
		if request.Child != "" {
			return delivery.Facts{}, session.Child{}, bridge.Errorf(bridge.Conflict, "%s is away, and so are its native children", known.Name)
		}
		// Away, nothing can queue for it: only its mail waits.
		return delivery.Facts{Kind: known.Kind, Name: known.Name, Away: true}, session.Child{}, nil
	}
	target := p.Boxes.Facts(s)
	if request.Child == "" {
		return target, session.Child{}, nil
	}
	at := slices.IndexFunc(s.Children, func(c session.Child) bool { return c.ID == request.Child })
	if at < 0 {
		return delivery.Facts{}, session.Child{}, bridge.Errorf(bridge.Conflict, "%s has no native child of that id", s.Name)
	}
	return target, s.Children[at], nil
}

// chatByMail stores the owner's words as ordinary mail of the session.
func (p *chats) chatByMail(ctx context.Context, name string, request chat.Request, body string, transport chat.Transport, detail string) (chat.Outcome, error) {
	sent, err := p.messages.sendOwner(ctx, request.Session, api.SendArgs{To: name, Body: body, MessageID: request.MessageID})
	if err != nil {
		return chat.Outcome{}, err
	}
	return chat.Outcome{State: chat.Queued, Transport: transport, Message: sent.ID, Detail: detail}, nil
}

// chatByQueue puts the owner's words into the agent CLI's own queue. The
// message is stored first, as handed to the queue: a crash at any moment leaves
// it either never launched or never launched again. Only a certain refusal
// makes it ordinary mail.
func (p *chats) chatByQueue(ctx context.Context, name string, route delivery.Route, request chat.Request) (chat.Outcome, error) {
	message := p.messageTo(name, request)
	if err := p.opts.DB.AppendHanded(ctx, message, mail.ViaQueueUnclear, "launched, outcome not known"); err != nil {
		return chat.Outcome{}, err
	}
	result, reason := p.pushToQueue(ctx, route.Thread, request.Body)
	outcome, fallback := chat.OutcomeOf("", route.Taken, route.Refused, result, reason)
	// What happened is noted even when the page has gone meanwhile.
	ctx = context.WithoutCancel(ctx)
	p.Lock()
	p.queues.noteQueueLocked(request.Session, result, reason)
	p.Unlock()
	if fallback {
		if err := p.opts.DB.Unhand(ctx, message.ID, message.Recipient); err != nil {
			return chat.Outcome{}, err
		}
		outcome.Message = message.ID
		p.messages.arrived(ctx, []bridge.Message{message})
		return outcome, nil
	}
	via, detail := mail.ViaOfQueue(result, reason)
	err := p.opts.DB.Rehand(ctx, mail.Mark{MessageID: message.ID, Recipient: message.Recipient, At: p.nowMillis(), Via: via, Evidence: via.Evidence(detail)})
	p.changed()
	return outcome, err
}

// chatToChild puts the owner's words into a native child's own queue. What may
// have come in is kept in the history; what certainly did not leaves nothing:
// it must not fall to the parent.
func (p *chats) chatToChild(ctx context.Context, name string, route delivery.Route, request chat.Request) chat.Outcome {
	result, reason := p.pushToQueue(ctx, route.Thread, request.Body)
	outcome, _ := chat.OutcomeOf(request.Child, route.Taken, route.Refused, result, reason)
	if result != chat.QueueAccepted && result != chat.QueueUnclear {
		return outcome
	}
	via, detail := mail.ViaOfQueue(result, reason)
	message := p.messageTo(chat.ToChild(name, request.Child), request)
	if err := p.opts.DB.AppendHanded(context.WithoutCancel(ctx), message, via, detail); err != nil {
		p.opts.Log.Warn("the owner's words to a native child are not in the history", "err", err)
	}
	p.changed()
	return outcome
}

// messageTo is the owner's words as a message.
func (p *chats) messageTo(to string, request chat.Request) bridge.Message {
	message := bridge.Message{
		ID: request.MessageID, Recipient: request.Session, From: bridge.OwnerAddress(), To: to, Body: request.Body, CreatedAt: p.nowMillis(),
	}
	if message.ID == "" {
		message.ID = newMessageID()
	}
	message.ConversationID = message.ID
	return message
}

// pushToQueue runs the CLI's queue command with the owner's label.
func (p *chats) pushToQueue(ctx context.Context, thread, body string) (chat.QueueResult, string) {
	queue, err := p.opts.Queue()
	if err != nil {
		return chat.QueueRefused, err.Error()
	}
	return queue.Push(context.WithoutCancel(ctx), thread, chat.OwnerLabel+body)
}

// queuedScan is how many of the owner's queued words are compared with a prompt:
// far more than a person has waiting there.
const queuedScan = 500

// noteQueued marks the owner's queued words as consumed when the CLI shows them
// as a prompt: the only evidence there is.
func (p *chats) noteQueued(ctx context.Context, s *session.Session, call session.HookCall) error {
	if call.Event != session.EventPrompt || !strings.HasPrefix(call.Prompt, chat.OwnerLabel) {
		return nil
	}
	// A CLI may take the white space off the ends of a prompt.
	body := strings.TrimSpace(strings.TrimPrefix(call.Prompt, chat.OwnerLabel))
	id := p.TargetOf(s).ID
	queued := func(d mail.Delivery) bool {
		return chat.ChildOf(d.To) == call.ChildID && d.Handed.Via.InQueue()
	}
	unread, err := p.opts.DB.Unread(ctx, id, queuedScan, queued)
	if err != nil {
		return err
	}
	for _, d := range unread {
		if queued(d) && strings.TrimSpace(d.Body) == body {
			mark := mail.Mark{MessageID: d.ID, Recipient: id, At: p.nowMillis(), Via: mail.ViaPrompt, Evidence: "codex showed it as a prompt"}
			return p.opts.DB.Record(ctx, bridge.StageConsumed, []mail.Mark{mark})
		}
	}
	return nil
}
