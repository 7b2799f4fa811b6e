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

// chats is the part of the broker that delivers the owner's chat messages to sessions.
type chats struct{ *core }

// carry sends the owner's message to a session by the best transport of its kind. It
// returns how far the message came (CHT-02 to CHT-11). It interrupts no turn and sends
// nothing twice.
func (p *chats) carry(ctx context.Context, request chat.Request) (chat.Outcome, error) {
	p.idleness.CheckPeer(request.Session)
	target, child, err := p.chatTarget(request)
	if err != nil {
		return chat.Outcome{}, err
	}
	if request.ToParent {
		note := chat.ParentNote(child.ID, child.Title, request.Body)
		return p.chatByMail(ctx, target.Name, request, note, chat.Parent, delivery.Note(target))
	}
	p.Exchanges.OwnerWrote(request.Session)
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

// chatTarget finds the session, live or away, and the child in its list. It fails with Conflict
// for a child that is not in the list (CHT-10), and with NotFound for an unknown session.
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
		// No queue takes messages for a session that is away: only its mail waits.
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

// chatByMail stores the owner's message as ordinary mail of the session.
func (p *chats) chatByMail(ctx context.Context, name string, request chat.Request, body string, transport chat.Transport, detail string) (chat.Outcome, error) {
	sent, err := p.messages.sendOwner(ctx, request.Session, api.SendArgs{To: name, Body: body, MessageID: request.MessageID, ReplyTo: request.ReplyTo})
	if err != nil {
		return chat.Outcome{}, err
	}
	return chat.Outcome{State: chat.Queued, Transport: transport, Message: sent.ID, Detail: detail}, nil
}

// chatByQueue puts the owner's message into the agent CLI's own queue. It stores the
// message first, as handed to the queue. After a crash at any moment the message was
// never launched, or is never launched again. Only a certain refusal makes it ordinary
// mail.
func (p *chats) chatByQueue(ctx context.Context, name string, route delivery.Route, request chat.Request) (chat.Outcome, error) {
	message := p.messageTo(name, request)
	if request.ReplyTo != "" {
		parent, err := p.opts.DB.Find(ctx, request.ReplyTo)
		if err != nil {
			return chat.Outcome{}, err
		}
		message.ReplyTo, message.ConversationID = parent.ID, mail.Thread(parent.ConversationID)
	}
	if err := p.opts.DB.AppendWithHandover(ctx, message, mail.ViaQueueUnclear, "launched, outcome not known"); err != nil {
		return chat.Outcome{}, err
	}
	result, reason := p.pushToQueue(ctx, route.Thread, request.Body)
	outcome, fallback := chat.OutcomeOf("", route.Taken, route.Refused, result, reason)
	// Record the result even if the page has disconnected meanwhile.
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

// chatToChild puts the owner's message into a native child's own queue. If the queue may
// have accepted it, the history records it. If the queue certainly refused it, no record
// remains, because the parent must not receive it.
func (p *chats) chatToChild(ctx context.Context, name string, route delivery.Route, request chat.Request) chat.Outcome {
	result, reason := p.pushToQueue(ctx, route.Thread, request.Body)
	outcome, _ := chat.OutcomeOf(request.Child, route.Taken, route.Refused, result, reason)
	if result != chat.QueueAccepted && result != chat.QueueUnclear {
		return outcome
	}
	via, detail := mail.ViaOfQueue(result, reason)
	message := p.messageTo(chat.ToChild(name, request.Child), request)
	if err := p.opts.DB.AppendWithHandover(context.WithoutCancel(ctx), message, via, detail); err != nil {
		p.opts.Log.Warn("the owner's words to a native child are not in the history", "err", err)
	}
	p.changed()
	return outcome
}

// messageTo returns the owner's chat message as a [bridge.Message].
func (p *chats) messageTo(recipient string, request chat.Request) bridge.Message {
	message := bridge.Message{
		ID: request.MessageID, Recipient: request.Session, From: bridge.OwnerAddress(), To: recipient, Body: request.Body, CreatedAt: p.nowMillis(),
	}
	if message.ID == "" {
		message.ID = newMessageID()
	}
	message.ConversationID = message.ID
	return message
}

// pushToQueue runs the CLI's queue command with the owner's label and returns its result.
func (p *chats) pushToQueue(ctx context.Context, thread, body string) (chat.QueueResult, string) {
	queue, err := p.opts.Queue()
	if err != nil {
		return chat.QueueRefused, err.Error()
	}
	return queue.Push(context.WithoutCancel(ctx), thread, chat.OwnerLabel+body)
}

// queuedScan limits how many of the owner's queued messages are compared with a prompt.
// It is far more than a person has waiting there.
const queuedScan = 500

// noteQueued marks the owner's queued message as consumed when the CLI shows it as a
// prompt. That prompt is the only evidence.
func (p *chats) noteQueued(ctx context.Context, s *session.Session, call session.HookCall) error {
	if call.Event != session.EventPrompt || !strings.HasPrefix(call.Prompt, chat.OwnerLabel) {
		return nil
	}
	// A CLI may trim the white space of a prompt.
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
