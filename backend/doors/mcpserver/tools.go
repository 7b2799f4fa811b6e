package mcpserver

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/mark3labs/mcp-go/mcp"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/job"
	"bridge/backend/core/mail"
	"bridge/backend/core/remote"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// tool is one MCP tool with its function. run returns the value of its one JSON
// text block, and the lease of the mail in it.
type tool struct {
	tool mcp.Tool
	run  func(ctx context.Context, c call) (any, *session.Lease, error)
}

// askPatience is the timeout of one request to the broker, including a takeover. A
// wait has a separate timeout.
const askPatience = 20 * time.Second

// remotePatience also covers a paired PC that does not answer.
const remotePatience = askPatience + remote.SpawnTimeout

// tools returns the tools of the session (contract: MCP tools).
func (s *Server) tools() []tool {
	all := append([]tool{
		{define("peers", peersWords(s.opts.Jobs), reads), s.peers},
		{define("send", "Send a message to a session. It waits for one that is away.", writes,
			required(text("to", "session name, id or agent kind; * for all")),
			required(text("message", "up to 100,000 characters")),
			text("reply_to", "message id"),
			text("conversation_id", "thread"),
			text("message_id", "own id; stored once"),
			text("reply", "wanted, optional; none wakes nobody"),
		), s.send},
		{define("send_status", "See how far your message got.", reads,
			required(text("message_id", "id from send")),
		), s.sendStatus},
		{define("inbox", "Read waiting mail, oldest first.", reads,
			number("limit", "1 to 100, default 20"),
			flag("mark_read", "default true"),
		), s.inbox},
		{define("wait_for_message", "Wait for the next message.", reads,
			number("timeout_sec", "1 to 110, default 60"),
			text("from", "only from this session"),
			text("reply_to", "only answers to this message id"),
			text("conversation_id", "thread"),
		), s.wait},
		{define("decide", "Pin what your user decided on a topic; a newer decision replaces it.", writes,
			required(text("topic", "short name")),
			required(text("text", "up to 8,000 characters")),
			anything("scope", `"all", {"project": "/absolute/folder"} or {"sessions": ["name or id"]}; default: this project`),
			text("source_message_id", ""),
		), s.decide},
		{define("decisions", "List decisions, newest first.", reads,
			text("query", "words in topic or text"),
			anything("scope", "as in decide"),
			flag("history", "true adds replaced ones"),
		), s.decisions},
		{define("search_history", "Search your messages and decisions.", reads,
			required(text("query", "all of these words; quotes for a phrase")),
			text("kind", "message or decision"),
			number("limit", "1 to 50, default 10"),
		), s.searchHistory},
		{define("auto_wake", "Let all mail wake this session, not only mail to it alone.", writes,
			required(flag("enabled", "")),
		), s.autoWake},
		{define("dashboard", "Get a link to the dashboard, good once for 30 seconds.", reads), s.dashboard},
		{define("bridge_help", "Explain one topic of these tools.", reads, required(text("topic", strings.Join(helpTopics(), ", ")))), help},
	}, append(owner{s}.questionTools(), s.jobTools()...)...)
	if s.opts.Job == "" {
		return all
	}
	return slices.DeleteFunc(all, func(t tool) bool { return !job.IsToolOfJobs(t.tool.Name) })
}

type effect bool

const (
	reads  effect = true
	writes effect = false
)

// define returns a tool's definition. It sets each hint that differs from the
// protocol's default: without hints a host must treat a tool as destructive.
func define(name, description string, readOnly effect, arguments ...argument) mcp.Tool {
	properties, needed := map[string]any{}, []string(nil)
	for _, a := range arguments {
		schema := map[string]string{}
		if a.description != "" {
			schema["description"] = a.description
		}
		if a.kind != "" {
			schema["type"] = a.kind
		}
		properties[a.name] = schema
		if a.required {
			needed = append(needed, a.name)
		}
	}
	return mcp.Tool{
		Name: name, Description: description,
		InputSchema: mcp.ToolInputSchema{Type: "object", Properties: properties, Required: needed, AdditionalProperties: false},
		Annotations: hints(readOnly),
	}
}

func hints(readOnly effect) mcp.ToolAnnotation {
	no := mcp.ToBoolPtr(false)
	if readOnly {
		return mcp.ToolAnnotation{ReadOnlyHint: mcp.ToBoolPtr(true)}
	}
	return mcp.ToolAnnotation{DestructiveHint: no, OpenWorldHint: no}
}

// argument is one argument of a tool; kind is its JSON type, or "" for any.
type argument struct {
	name, kind, description string
	required                bool
}

func text(name, description string) argument {
	return argument{name: name, kind: "string", description: description}
}

func number(name, description string) argument {
	return argument{name: name, kind: "number", description: description}
}

func flag(name, description string) argument {
	return argument{name: name, kind: "boolean", description: description}
}

func anything(name, description string) argument {
	return argument{name: name, description: description}
}

func required(a argument) argument {
	a.required = true
	return a
}

type noArguments struct{}

type peersAnswer struct {
	Self  string     `json:"self"`
	Peers []toolPeer `json:"peers"`
	Jobs  []toolJob  `json:"jobs"`
}

// toolPeer has the members that the contract names.
type toolPeer struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Agent     bridge.AgentKind  `json:"agent"`
	Cwd       string            `json:"cwd"`
	State     string            `json:"state"`
	SessionID *string           `json:"sessionId"`
	Since     bridge.UnixMillis `json:"since"`
}

func (s *Server) peers(ctx context.Context, c call) (any, *session.Lease, error) {
	if _, err := decode[noArguments](c); err != nil {
		return nil, nil, err
	}
	found, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.PeersResult, error) {
		return client.Peers(ctx, c.caller)
	})
	if err != nil {
		return nil, nil, err
	}
	answer := peersAnswer{Self: found.Self, Peers: []toolPeer{}}
	for _, p := range found.Peers {
		answer.Peers = append(answer.Peers, toolPeer{p.ID, p.Name, p.Agent, p.Cwd, p.State, p.SessionID, p.Since})
	}
	for _, p := range found.Remote {
		answer.Peers = append(answer.Peers, toolPeer{p.Name, p.Name, p.Agent, p.Cwd, p.State, nil, p.Since})
	}
	answer.Jobs, err = s.ownJobs(ctx, c)
	return answer, nil, err
}

func (s *Server) send(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		To             string `json:"to"`
		Message        string `json:"message"`
		ReplyTo        string `json:"reply_to"`
		ConversationID string `json:"conversation_id"`
		MessageID      string `json:"message_id"`
		Reply          string `json:"reply"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	isRetry := args.MessageID != ""
	if !isRetry {
		// Chosen here, so that a repeated request to the next broker stores no
		// second copy.
		args.MessageID = uuid.Must(uuid.NewV7()).String()
	}
	answer, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.SendResult, error) {
		return client.Send(ctx, api.SendArgs{
			Caller: c.caller, To: args.To, Body: args.Message, ReplyTo: args.ReplyTo,
			ConversationID: args.ConversationID, MessageID: args.MessageID, Reply: mail.Reply(args.Reply), Again: isRetry,
		})
	})
	return answer, nil, err
}

func (s *Server) sendStatus(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		MessageID string `json:"message_id"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	answer, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.Sent, error) {
		return client.SendStatus(ctx, api.SentArgs{Caller: c.caller, MessageID: args.MessageID})
	})
	return answer, nil, err
}

func (s *Server) inbox(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Limit    *int  `json:"limit"`
		MarkRead *bool `json:"mark_read"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	request := api.InboxArgs{Caller: c.caller, MarkRead: args.MarkRead == nil || *args.MarkRead}
	if args.Limit != nil {
		if *args.Limit < 1 {
			return nil, nil, bridge.Errorf(bridge.Invalid, "limit must be 1 to 100")
		}
		request.Limit = *args.Limit
	}
	found, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.Inbox, error) { return client.Inbox(ctx, request) })
	if err != nil {
		return nil, nil, err
	}
	lease := found.Lease
	found.Lease = nil
	return found, lease, nil
}

const (
	defaultWaitSeconds = 60
	// waitsAtOnce leaves slots of callsAtOnce for other calls.
	waitsAtOnce = 32
)

func (s *Server) wait(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		TimeoutSec     *int   `json:"timeout_sec"`
		From           string `json:"from"`
		ReplyTo        string `json:"reply_to"`
		ConversationID string `json:"conversation_id"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	seconds := defaultWaitSeconds
	if args.TimeoutSec != nil {
		seconds = *args.TimeoutSec
	}
	most := int(bridge.MaxWait.Seconds())
	if seconds < 1 || seconds > most {
		return nil, nil, bridge.Errorf(bridge.Invalid, "timeout_sec must be 1 to %d", most)
	}
	defer s.waits.Add(-1)
	if s.waits.Add(1) > waitsAtOnce {
		return nil, nil, bridge.Errorf(bridge.Busy, "%d waits go on already: end one of them, or wait once for all messages", waitsAtOnce)
	}
	found, err := s.waitUntil(ctx, time.Duration(seconds)*time.Second, api.WaitArgs{
		Caller: c.caller, From: args.From, ReplyTo: args.ReplyTo, ConversationID: args.ConversationID,
	})
	if err != nil {
		return nil, nil, err
	}
	if found.TimedOut {
		return struct {
			TimedOut bool `json:"timedOut"`
		}{true}, nil, nil
	}
	return found.Message, found.Lease, nil
}

// waitUntil waits across broker restarts: each connection gets the remaining time.
func (s *Server) waitUntil(ctx context.Context, timeout time.Duration, args api.WaitArgs) (api.WaitResult, error) {
	var found api.WaitResult
	deadline := s.opts.Now().Add(timeout)
	ctx, cancel := context.WithTimeout(ctx, timeout+askPatience)
	defer cancel()
	err := s.reconnector.Do(ctx, func(client *ipc.Client) error {
		remaining := deadline.Sub(s.opts.Now())
		if remaining < time.Millisecond {
			found = api.WaitResult{TimedOut: true}
			return nil
		}
		args.TimeoutMillis = remaining.Milliseconds()
		var err error
		found, err = client.Wait(ctx, args)
		return err
	})
	return found, err
}

func (s *Server) decide(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Topic           string          `json:"topic"`
		Text            string          `json:"text"`
		Scope           *decision.Scope `json:"scope"`
		SourceMessageID string          `json:"source_message_id"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	request := api.DecideArgs{
		Caller: c.caller, ID: uuid.NewString(), Topic: args.Topic, Text: args.Text, Scope: args.Scope, SourceMessageID: args.SourceMessageID,
	}
	answer, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.DecideResult, error) {
		return client.Decide(ctx, request)
	})
	return answer, nil, err
}

func (s *Server) decisions(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Query   string          `json:"query"`
		Scope   *decision.Scope `json:"scope"`
		History bool            `json:"history"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	found, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) ([]decision.Revision, error) {
		return client.Decisions(ctx, api.DecisionsArgs{Caller: c.caller, Query: args.Query, Scope: args.Scope, History: args.History})
	})
	return found, nil, err
}

func (s *Server) searchHistory(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Query string `json:"query"`
		Kind  string `json:"kind"`
		Limit *int   `json:"limit"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	request := api.SearchArgs{Caller: c.caller, Query: args.Query, Kind: args.Kind}
	if args.Limit != nil {
		if *args.Limit < 1 {
			return nil, nil, bridge.Errorf(bridge.Invalid, "limit must be 1 to 50")
		}
		request.Limit = *args.Limit
	}
	found, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.SearchResult, error) {
		return client.SearchHistory(ctx, request)
	})
	return found, nil, err
}

func (s *Server) autoWake(ctx context.Context, c call) (any, *session.Lease, error) {
	args, err := decode[struct {
		Enabled *bool `json:"enabled"`
	}](c)
	if err != nil {
		return nil, nil, err
	}
	if args.Enabled == nil {
		return nil, nil, bridge.Errorf(bridge.Invalid, "enabled must be true or false")
	}
	_, err = ask(ctx, s, func(ctx context.Context, client *ipc.Client) (api.Empty, error) {
		return api.Empty{}, client.AutoWake(ctx, api.AutoWakeArgs{Caller: c.caller, Enabled: *args.Enabled})
	})
	return struct {
		Enabled bool `json:"enabled"`
	}{*args.Enabled}, nil, err
}

func (s *Server) dashboard(ctx context.Context, c call) (any, *session.Lease, error) {
	if _, err := decode[noArguments](c); err != nil {
		return nil, nil, err
	}
	url, err := ask(ctx, s, func(ctx context.Context, client *ipc.Client) (string, error) { return client.Ticket(ctx) })
	return struct {
		URL string `json:"url"`
	}{url}, nil, err
}
