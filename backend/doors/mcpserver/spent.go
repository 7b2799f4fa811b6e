package mcpserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"bridge/backend/core/mail"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/platform/lifecycle"
)

// spent counts what this process put into the contexts of its sessions: tools, notes, and
// mail by tools and by the channel (CTX-03). It reports totals under an id of its own, so
// that a broker counts a repeated report once.
type spent struct {
	id  string
	due lifecycle.Signal // the totals or the broker have changed

	mu     sync.Mutex
	totals map[string]session.Cost // by host session id, "" for the process's own session
}

func newSpent() *spent {
	return &spent{id: uuid.NewString(), due: lifecycle.NewSignal(), totals: map[string]session.Cost{}}
}

// add counts a text that the host was given.
func (s *spent) add(hostID string, cost session.Cost) {
	if cost.IsZero() {
		return
	}
	s.mu.Lock()
	s.totals[hostID] = s.totals[hostID].Plus(cost)
	s.mu.Unlock()
	s.due.Notify()
}

// report returns the totals; false if there are none.
func (s *spent) report() (report api.CostReport, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	report.Reporter = s.id
	for hostID, cost := range s.totals {
		report.Costs = append(report.Costs, api.HostCost{SessionID: hostID, Cost: cost})
	}
	return report, len(report.Costs) > 0
}

// lastPatience is how long the end of the session waits for the last report.
const lastPatience = 300 * time.Millisecond

// run reports the totals after each change until ctx ends, and then once more. A report
// that fails comes again with the next one: an estimate is worth no more.
func (s *spent) run(ctx context.Context, broker *ipc.Reconnector) {
	for {
		select {
		case <-s.due:
			s.send(ctx, broker)
		case <-ctx.Done():
			select {
			case <-s.due:
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPatience)
				defer cancel()
				s.send(last, broker)
			default: // the broker knows all
			}
			return
		}
	}
}

func (s *spent) send(ctx context.Context, broker *ipc.Reconnector) {
	report, some := s.report()
	if !some {
		return
	}
	if err := broker.Do(ctx, func(c *ipc.Client) error { return c.ReportCost(ctx, report) }); err != nil && ctx.Err() != nil {
		s.due.Notify() // the end of the session tries once more
	}
}

// hooks counts the answers of the library that cost context.
func (s *spent) hooks(instructions string) *server.Hooks {
	hooks := &server.Hooks{}
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, _ *mcp.InitializeResult) {
		onSent(ctx, func() { s.add("", session.Cost{Notes: int64(len(instructions))}) })
	})
	hooks.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
		if text, err := json.Marshal(result.Tools); err == nil {
			onSent(ctx, func() { s.add("", session.Cost{Tools: int64(len(text))}) })
		}
	})
	return hooks
}

// onSent adds to what happens once the answer of the request of ctx is written.
func onSent(ctx context.Context, also func()) {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return
	}
	before := r.sent
	r.sent = func() {
		if before != nil {
			before()
		}
		also()
	}
}

// mailIn returns the size of the messages in a tool's answer, zero if it gives no mail.
func mailIn(value any, text []byte) session.Cost {
	var messages []api.InboxMessage
	switch answer := value.(type) {
	case api.Inbox:
		messages = answer.Messages
	case *api.InboxMessage:
		messages = []api.InboxMessage{*answer}
	}
	if len(messages) == 0 {
		return session.Cost{}
	}
	notices := 0
	for _, m := range messages {
		if isNotice(m) {
			data, _ := json.Marshal(m) //nolint:errchkjson // it was just encoded as a part of the answer
			notices += len(data)
		}
	}
	notices = min(notices, len(text))
	return session.Cost{Mail: int64(len(text) - notices), Notices: int64(notices)}
}

// mailPushed returns the size of a message in the channel.
func mailPushed(m api.InboxMessage, frame []byte) session.Cost {
	if isNotice(m) {
		return session.Cost{Notices: int64(len(frame))}
	}
	return session.Cost{Mail: int64(len(frame))}
}

func isNotice(m api.InboxMessage) bool {
	replyTo := ""
	if m.ReplyTo != nil {
		replyTo = *m.ReplyTo
	}
	return mail.IsNotice(m.ConversationID, replyTo, m.Hop)
}
