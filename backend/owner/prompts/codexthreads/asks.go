package codexthreads

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"bridge/backend/agent/appserver"
	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/hooks"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
	"bridge/backend/core/session"
	"bridge/backend/platform/ipc/api"
)

// ask is one request of codex for a person's decision.
type ask struct {
	appserver.Line
	params
	change appserver.Item // the file change, if codex reported it
	prompt string         // the id of its card, or ""
	over   bool           // codex reports that it is answered
	sent   bool           // codex has our answer
}

// params are the fields of the requests.
type params struct {
	appserver.Ask
	Kind      string          `json:"kind"`
	Callback  string          `json:"approvalId"`
	Decisions json.RawMessage `json:"availableDecisions"`
	Network   json.RawMessage `json:"networkApprovalContext"`
	More      json.RawMessage `json:"additionalPermissions"`
	GrantRoot string          `json:"grantRoot"`
	Mode      string          `json:"mode"`
	About     struct {
		Kind   string          `json:"codex_approval_kind"`
		Tool   string          `json:"tool_name"`
		Params json.RawMessage `json:"tool_params"`
	} `json:"_meta"`
	Questions []struct {
		Question string `json:"question"`
	} `json:"questions"`
}

// askedLocked records a request. A new subscriber receives open requests again.
func (s *server) askedLocked(line appserver.Line) {
	if !slices.Contains([]string{appserver.AsksCommand, appserver.AsksChange, appserver.AsksServer, appserver.AsksQuestion}, line.Method) {
		return
	}
	item := &ask{Line: line}
	if json.Unmarshal(line.Params, &item.params) != nil || !s.known[item.Thread] {
		return
	}
	t := s.threadLocked(item.Thread)
	if t.asks[string(line.ID)] != nil {
		return
	}
	item.change = t.changes[item.Item]
	t.asks[string(line.ID)] = item
	s.holdLocked(item)
}

// holdLocked shows a request to the owner, unless it is shown already or cards are off.
func (s *server) holdLocked(item *ask) {
	if item.prompt != "" || item.over || s.closed || !s.opts.Desk.Shows(bridge.Codex) {
		return
	}
	item.prompt = uuid.NewString()
	ctx := s.ctx
	s.asking.Go(func() { s.hold(ctx, item) })
}

// hold waits for the owner's answer and sends it to codex. Without an answer it sends
// nothing.
func (s *server) hold(ctx context.Context, item *ask) {
	answer, err := s.opts.Desk.Hold(ctx, s, item.words())
	if err != nil {
		s.opts.Log.Warn("a prompt of codex is left to its terminal", "thread", item.Thread, "err", err)
		return
	}
	if answer.Decision == "" {
		return
	}
	if answer.Decision == job.Deny && answer.Reason != "" {
		s.reason(ctx, item, answer.Reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if item.over || ctx.Err() != nil {
		return // the terminal answered first
	}
	if err := s.client.Answer(ctx, item.ID, verdict(item.Method, answer.Decision == job.Allow)); err != nil {
		return // the connection has ended, and its prompts with it
	}
	item.sent = true
	_ = s.opts.Desk.Deliver(s, item.prompt) // if Deliver refuses this, the prompt is over
}

// reason adds a refusal's reason to the turn before the refusal: the answer has no
// field for it.
func (s *server) reason(ctx context.Context, item *ask, reason string) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := s.client.Request(ctx, "turn/steer", appserver.Steer(item.Thread, item.Turn, "", appserver.Refused(reason)))
	if err != nil {
		s.opts.Log.Warn("codex refuses without the owner's reason", "thread", item.Thread, "err", err)
	}
}

// verdict returns the answer for each kind of request. It allows nothing beyond this request.
func verdict(method string, allow bool) any {
	if method == appserver.AsksServer {
		return appserver.Elicited(allow)
	}
	return appserver.Decision(allow)
}

// resolvedLocked records that a request is answered, here or at the terminal.
func (s *server) resolvedLocked(thread, request string) {
	ask := s.threadLocked(thread).asks[request]
	if ask == nil || ask.over {
		return
	}
	ask.over = true
	if !ask.sent {
		s.reportLocked(ask, prompt.Closed)
	}
}

// completedLocked records how a call ended: only that proves the decision.
func (s *server) completedLocked(thread string, item appserver.Item) {
	asks := s.threadLocked(thread).asks
	for id, ask := range asks {
		if ask.isOf(item) {
			s.reportLocked(ask, signOf(item))
			delete(asks, id)
		}
	}
}

// isOf reports whether that item is the call that the request is about.
func (a *ask) isOf(item appserver.Item) bool {
	if a.Method == appserver.AsksServer {
		return item.Type == "mcpToolCall" && item.Server == a.Server && item.Tool == a.About.Tool &&
			session.CallKey(item.Tool, item.Arguments) == session.CallKey(a.About.Tool, a.About.Params)
	}
	return a.Item != "" && a.Item == item.ID && a.Callback == ""
}

// signOf returns the sign that an item's end gives for its prompt.
func signOf(item appserver.Item) prompt.Sign {
	switch {
	case item.Status == "declined":
		return prompt.Refused
	case item.Status == "completed", item.Exit != nil, isGiven(item.Result):
		return prompt.Allowed
	default:
		return prompt.WentOn
	}
}

// endedLocked ends all requests of a thread after its turn. If the turn was stopped, an
// answered prompt ends as gone, because the answer may have had an effect.
func (s *server) endedLocked(thread string, sign prompt.Sign) {
	asks := s.threadLocked(thread).asks
	for id, ask := range asks {
		ending := sign
		if ask.sent && sign == prompt.Stopped {
			ending = prompt.Gone
		}
		s.reportLocked(ask, ending)
		delete(asks, id)
	}
}

func (s *server) reportLocked(item *ask, sign prompt.Sign) {
	if item.prompt != "" {
		_ = s.opts.Desk.Report(s, item.prompt, sign) // a card that no longer exists needs no report
	}
}

// words returns the text of the card.
func (a *ask) words() api.PromptArgs {
	args := api.PromptArgs{
		ID:   a.prompt,
		Call: session.HookCall{Kind: bridge.Codex, Event: session.EventAsk, HostEvent: a.Method, SessionID: a.Thread, Cwd: a.Folder},
		Why:  a.Reason,
	}
	switch a.Method {
	case appserver.AsksCommand:
		a.asCommand(&args)
	case appserver.AsksChange:
		a.asChange(&args)
	case appserver.AsksServer:
		a.asServer(&args)
	default:
		args.Kind, args.What, args.OnlyTold = hooks.AsksQuestion, "request_user_input", "the model asks something itself, and its answer is chosen there"
		var questions []string
		for _, q := range a.Questions {
			questions = append(questions, q.Question)
		}
		args.Detail = strings.Join(questions, "\n")
	}
	if args.Detail == "" && args.OnlyTold == "" {
		args.OnlyTold = "codex does not say here what exactly it would do"
	}
	return args
}

func (a *ask) asCommand(args *api.PromptArgs) {
	args.Kind, args.What, args.Detail = hooks.AsksCommand, "shell", a.Command
	for name, more := range map[string]json.RawMessage{"network": a.Network, "more permissions": a.More} {
		if isGiven(more) {
			args.Detail += "\n" + name + ": " + string(more)
		}
	}
	switch {
	case a.Callback != "" || a.Kind != "" && a.Kind != "command":
		args.OnlyTold = "it is about a part of what runs, which the terminal shows"
	case !a.offersAllow():
		args.OnlyTold = "codex takes no yes for this once"
	}
}

// offersAllow reports whether codex offers to allow the request once.
func (a *ask) offersAllow() bool {
	var offered []json.RawMessage
	if json.Unmarshal(a.Decisions, &offered) != nil || offered == nil {
		return true // codex lists no options
	}
	return slices.ContainsFunc(offered, func(message json.RawMessage) bool { return run.Text(message) == "accept" })
}

// asChange shows a change from the item that codex sent before the request. The request
// lacks the change, and a late subscriber never receives it.
func (a *ask) asChange(args *api.PromptArgs) {
	args.Kind, args.What = hooks.AsksChange, "apply_patch"
	args.Detail = strings.TrimRight(a.change.Diff(), "\n") // each line of a diff begins with a sign
	switch {
	case a.GrantRoot != "":
		args.Detail, args.OnlyTold = a.GrantRoot, "a yes would be for more than this once"
	case args.Detail == "":
		args.OnlyTold = "codex tells the terminal alone what it would change"
	}
}

func (a *ask) asServer(args *api.PromptArgs) {
	args.Kind, args.What, args.Detail = hooks.AsksTool, a.Server+"/"+a.About.Tool, a.Message
	if a.About.Kind != "mcp_tool_call" || a.Mode != "form" {
		args.What, args.Kind, args.OnlyTold = a.Server, hooks.AsksQuestion, "the server "+a.Server+" asks something itself, and its answer is given there"
		return
	}
	if isGiven(a.About.Params) {
		args.Detail += "\n" + string(a.About.Params)
	}
}

// isGiven reports whether a member is present.
func isGiven(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
