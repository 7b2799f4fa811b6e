package mcpserver

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"bridge/backend/core/bridge"
	"bridge/backend/core/question"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// owner holds the tools by which a session asks its owner (NED-03).
type owner struct{ *Server }

// questionTools returns these tools.
func (s owner) questionTools() []tool {
	return []tool{
		{define("ask_owner", "Ask your user what only they can decide. The answer comes as a message.", writes,
			required(text("title", "up to 200 characters")),
			text("context", "up to 4,000 characters"),
			argument{name: "options", kind: "array", description: `2 to 4 of {"label": "...", "consequence": "..."}`},
			flag("blocking", "true waits for the answer here"),
			text("topic", "replaces your earlier question on it"),
		), s.askOwner},
		{define("withdraw_question", "Take back a question to your user.", writes,
			required(text("question", "id from ask_owner")),
		), s.withdrawQuestion},
	}
}

// questionAnswer is the answer of both tools.
type questionAnswer struct {
	Question string           `json:"question"`
	State    question.State   `json:"state"`
	Answer   *question.Answer `json:"answer,omitempty"`
}

func answerOf(item question.Question) questionAnswer {
	return questionAnswer{item.ID, item.State, item.Answer}
}

func (s owner) askOwner(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Title    string `json:"title"`
		Context  string `json:"context"`
		Topic    string `json:"topic"`
		Blocking bool   `json:"blocking"`
		Options  []struct {
			Label       string `json:"label"`
			Consequence string `json:"consequence"`
		} `json:"options"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	asking := question.Args{Title: args.Title, Context: args.Context, Topic: args.Topic, Blocking: args.Blocking}
	for _, option := range args.Options {
		asking.Options = append(asking.Options, question.Option{Label: option.Label, Consequence: option.Consequence})
	}
	if args.Blocking {
		defer s.waits.Add(-1)
		if s.waits.Add(1) > waitsAtOnce {
			return nil, nil, bridge.Errorf(bridge.Busy, "%d waits go on already: ask without blocking", waitsAtOnce)
		}
	}
	request := api.AskOwnerArgs{Caller: c.caller, ID: uuid.Must(uuid.NewV7()).String(), Question: asking}
	item, err := ask(ctx, s.Server, func(ctx context.Context, client *ipc.Client) (question.Question, error) {
		return client.AskOwner(ctx, request)
	})
	if err != nil || !args.Blocking {
		return answerOf(item), nil, err
	}
	return s.awaitAnswer(ctx, c, item.ID)
}

// awaitAnswer waits until a question has ended. The answer is ordinary mail in its own thread: a
// caller that stops waiting gets it as a message, and one that got it here gets no second copy.
func (s owner) awaitAnswer(ctx context.Context, c call, id string) (any, *session.Lease, error) {
	for {
		found, err := s.waitUntil(ctx, cmp.Or(s.opts.PollInterval, usualLook), api.WaitArgs{Caller: c.caller, ConversationID: question.Conversation(id)})
		if err != nil {
			return nil, nil, bridge.Errorf(bridge.CodeOf(err), "the question %s is open and its answer comes as a message, but it could not be waited for: %w", id, err)
		}
		if found.Lease != nil {
			s.acks.hold(*found.Lease)
		}
		item, err := ask(ctx, s.Server, func(ctx context.Context, client *ipc.Client) (question.Question, error) {
			return client.Question(ctx, api.QuestionArgs{Caller: c.caller, ID: id})
		})
		if err != nil && found.Lease != nil {
			s.nack(*found.Lease)
		}
		if err != nil {
			return nil, nil, err
		}
		if !found.TimedOut || item.State != question.Open && (item.State != question.Answered || item.Carried) {
			return answerOf(item), found.Lease, nil
		}
	}
}

func (s owner) withdrawQuestion(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Question string `json:"question"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	item, err := ask(ctx, s.Server, func(ctx context.Context, client *ipc.Client) (question.Question, error) {
		return client.WithdrawQuestion(ctx, api.QuestionArgs{Caller: c.caller, ID: args.Question})
	})
	return answerOf(item), nil, err
}
