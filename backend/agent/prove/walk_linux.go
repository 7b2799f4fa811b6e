package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// walk is a try of the routes of one session, in their order.
type walk struct {
	*scene
	kindOf
	session session
	first   scripted.Request // the first one in which the model has Bridge's tools
	peer    api.Peer         // the session as Bridge lists it, once it connects
}

// fault is why a route is broken.
type fault struct{ step, expected, got string }

// Walk tries the routes in this process's network. It fails with Denied if that leads
// anywhere beyond a loopback. Everything that it started has ended when it returns.
func (r Run) Walk(ctx context.Context) (report Report, err error) {
	if err := scripted.CheckAlone(); err != nil {
		return Report{}, err
	}
	if err := CheckKind(r.Kind); err != nil {
		return Report{}, err
	}
	began := time.Now()
	s, err := r.open()
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	found := s.version(ctx)
	report = Report{Kind: r.Kind, Program: r.Program, Version: found.Version, Note: found.Note}
	w := &walk{scene: s, kindOf: kinds[r.Kind]}
	w.fit(found.Version)
	report.Routes, err = w.all(ctx)
	report.Millis = time.Since(began).Milliseconds()
	return report, err
}

// all tries every route. It fails if there can be no broker to try them with.
func (w *walk) all(ctx context.Context) ([]Result, error) {
	tries := map[Route]func(context.Context) *fault{
		Connects: w.connects, StartNote: w.startNote, MailAtPrompt: w.atPrompt, MailAtTool: w.atTool, MailAtStop: w.atStop, Wake: w.wakes,
		YourWords: w.yourWords, ToChild: w.toChild, PermissionPrompt: w.permission, DelegatedJob: w.job,
	}
	var results []Result
	why := ""
	for _, route := range w.chosen() {
		if err := ctx.Err(); err != nil {
			return results, fmt.Errorf("try %s: %w", w.Kind, err)
		}
		if reason := w.notOffered[route]; reason != "" {
			results = append(results, Result{Route: route, State: NotOffered, Why: reason})
			continue
		}
		if why != "" {
			results = append(results, Result{Route: route, State: NotTried, Why: why})
			continue
		}
		wrong := tries[route](ctx)
		if w.client == nil && wrong != nil && wrong.step == stepBroker {
			return nil, bridge.Errorf(bridge.Unavailable, "%s", wrong.got)
		}
		if wrong == nil {
			results = append(results, Result{Route: route, State: Works})
			continue
		}
		results = append(results, Result{Route: route, State: Broken, Step: wrong.step, Expected: wrong.expected, Got: wrong.got})
		switch {
		case route == Connects:
			why = fmt.Sprintf("%q is broken", Connects.Title())
		case w.session.Ended():
			why = fmt.Sprintf("%s has ended during %q", w.Kind, route.Title())
		}
	}
	return results, nil
}

const (
	stepInstall = "bridge install"
	stepBroker  = "start of a broker"
	stepStart   = "start in a terminal"
	stepPrompt  = "first prompts"
	stepTool    = "call of the tool peers"
)

// within returns a context for one step.
func (w *walk) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.StepTimeout)
}

// connects starts the agent, and waits until its model has Bridge's tools and Bridge lists
// the session under the id that the agent itself uses.
func (w *walk) connects(ctx context.Context) *fault {
	begin, cancel := w.within(ctx)
	defer cancel()
	if err := w.install(begin); err != nil {
		return &fault{stepInstall, "Bridge is connected to " + string(w.Kind), lastLines(err.Error())}
	}
	if err := w.serve(begin); err != nil {
		return &fault{stepBroker, "a broker", err.Error()}
	}
	wrong := w.begin(ctx)
	if wrong != nil && w.alone != nil && w.session != nil && w.session.Ended() && strings.Contains(w.session.Screen(), aloneFlag) {
		w.start = w.alone // as this agent itself tells its user
		wrong = w.begin(ctx)
	}
	if wrong != nil {
		return wrong
	}
	if w.withoutServer != nil && !w.hasServer(w.home) {
		w.notOffered = w.withoutServer
	}
	return w.identify(ctx)
}

// begin starts the agent, and prompts it until its model has Bridge's tools.
func (w *walk) begin(ctx context.Context) *fault {
	start, cancel := context.WithTimeout(ctx, 2*w.StepTimeout)
	defer cancel()
	opened, err := w.start(start, w.home, w.home.Project(project))
	if errors.Is(err, syscall.ENOEXEC) {
		return &fault{stepStart, "it starts", w.Program + " is no program of this system. If npm installed it with --ignore-scripts, install it again without that."}
	}
	if err != nil {
		return &fault{stepStart, "it starts", lastLines(err.Error())}
	}
	w.session = opened
	if err := opened.Until(start, w.ready, func(screen string) bool { return strings.Contains(screen, w.ready) }); err != nil {
		return &fault{stepStart, fmt.Sprintf("its screen shows %q", w.ready), lastLines(err.Error())}
	}
	return w.greet(ctx)
}

// greetings is how many prompts a session gets until its model has Bridge's tools: the
// first ones may come before its MCP server is up.
const greetings = 5

// greet prompts the session until its model is offered Bridge's tools.
func (w *walk) greet(ctx context.Context) *fault {
	for round := range greetings {
		if round > 1 {
			ipc.Pause(ctx, time.Second)
		}
		patience := w.StepTimeout
		if round == 0 {
			patience *= 2 // codex starts its background server before it takes the prompt
		}
		request, wrong := w.turn(ctx, patience, fmt.Sprintf("greet-%d", round), scripted.Say(fmt.Sprintf("hello-%d", round)))
		if wrong != nil {
			return wrong
		}
		w.first = request
		if slices.Contains(request.Tools, w.tool+"send") {
			return nil
		}
	}
	tools := bridge.OneLine(strings.Join(w.first.Tools, ", "))
	return &fault{stepPrompt, "the model is offered the tool " + w.tool + "send", fmt.Sprintf("%d prompts with the tools %s", greetings, tools)}
}

// turn prompts a script whose only answer is text, and waits for its end.
func (w *walk) turn(ctx context.Context, patience time.Duration, script string, answer scripted.Step) (scripted.Request, *fault) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := w.play(ctx, script, answer)
	if err != nil {
		return request, w.unasked(stepPrompt, err)
	}
	w.settle(ctx)
	return request, nil
}

// unasked returns the fault for a prompt with which the model was not asked.
func (w *walk) unasked(step string, err error) *fault {
	first, _, _ := strings.Cut(err.Error(), "\n") // the screen may follow
	return &fault{step, "the model is asked with the prompt", first + "\nits screen ends with:\n" + lastLines(w.session.Screen())}
}

// play prompts a script, and returns its first request.
func (w *walk) play(ctx context.Context, script string, steps ...scripted.Step) (scripted.Request, error) {
	w.model.Script(script, steps...)
	if err := w.session.Prompt(ctx, "play script:"+script); err != nil {
		return scripted.Request{}, err
	}
	return w.request(ctx, script, 0)
}

// request waits for the session's request for one step of a script.
func (w *walk) request(ctx context.Context, script string, step int) (scripted.Request, error) {
	return w.model.Wait(ctx, fmt.Sprintf("request %d of the prompt %s", step+1, script), func(r scripted.Request) bool {
		return r.Script == script && r.Step == step && !r.Aux && !r.Child()
	})
}

// identify has the model call a tool, and checks the session that Bridge lists.
func (w *walk) identify(ctx context.Context) *fault {
	ctx, cancel := w.within(ctx)
	defer cancel()
	_, err := w.play(ctx, "identify", scripted.Call(w.tool+"peers", map[string]any{}), scripted.Say("identified"))
	if err != nil {
		return w.unasked(stepTool, err)
	}
	request, err := w.request(ctx, "identify", 1)
	if err != nil {
		return &fault{stepTool, "the model is given the tool's answer", lastLines(err.Error())}
	}
	expected := fmt.Sprintf("Bridge lists a session of %s with the id %s", w.Kind, request.Session)
	for {
		seen, err := w.peers(context.WithoutCancel(ctx))
		if err != nil {
			return &fault{stepTool, expected, err.Error()}
		}
		for _, peer := range seen {
			if peer.SessionID != nil && *peer.SessionID == request.Session {
				w.peer = peer
				w.settle(ctx)
				return nil
			}
		}
		if !ipc.Pause(ctx, lookEvery) {
			return &fault{stepTool, expected, listed(seen)}
		}
	}
}

// lookEvery is how often the list of sessions is read while something is awaited.
const lookEvery = 50 * time.Millisecond

// peers returns the sessions that Bridge lists, but for the one that writes.
func (w *walk) peers(ctx context.Context) ([]api.Peer, error) {
	all, err := w.client.Peers(ctx, api.Caller{})
	return slices.DeleteFunc(all.Peers, func(p api.Peer) bool { return p.Name == sender }), err
}

func listed(peers []api.Peer) string {
	if len(peers) == 0 {
		return "no session"
	}
	var names []string
	for _, peer := range peers {
		id := "no id"
		if peer.SessionID != nil {
			id = "the id " + *peer.SessionID
		}
		names = append(names, fmt.Sprintf("%s (%s) with %s", peer.Name, peer.Agent, id))
	}
	return strings.Join(names, ", ")
}

const (
	// settlePatience is how long a turn's end is awaited, whose hooks may never come.
	settlePatience = 2 * time.Second
	// settleFor is how long a session is idle before it counts as idle: its last hooks
	// may still run.
	settleFor = 400 * time.Millisecond
)

// settle waits until Bridge lists the session as idle, for a while. No route depends on
// it: a session whose hooks are broken may never be idle.
func (w *walk) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	since := time.Now()
	for ipc.Pause(ctx, lookEvery) {
		peers, err := w.peers(ctx)
		if err != nil || len(peers) != 1 || peers[0].State != "idle" {
			since = time.Now()
		}
		if time.Since(since) > settleFor {
			return
		}
	}
}

// startNote looks for the decision in the session's first request.
func (w *walk) startNote(context.Context) *fault {
	if note := "- " + topic + ": " + rule; !strings.Contains(w.first.Text(), note) {
		return &fault{"first request to the model", fmt.Sprintf("it holds the decision in force, %q", note), "it does not:\n" + lastLines(w.first.Text())}
	}
	return nil
}

// send writes to the session, and returns the message's id and text.
func (w *walk) send(ctx context.Context, route Route, reply mail.Reply) (id, body string, err error) {
	body = fmt.Sprintf("bridge-prove writes this to try %s.", route)
	sent, err := w.client.Send(ctx, api.SendArgs{To: w.peer.Name, Body: body, Reply: reply})
	return sent.ID, body, err
}

// shown returns a fault unless a request shows the message once.
func (w *walk) shown(ctx context.Context, step, id, body string, request scripted.Request) *fault {
	n := request.Count(body)
	if n == 1 {
		return nil
	}
	got := "it holds no such message"
	if n > 1 {
		got = fmt.Sprintf("it holds the message %s", bridge.Counted(n, "time"))
	}
	return &fault{step, "the request to the model holds the message once", got + w.progress(ctx, id)}
}

// progress returns what Bridge says of the message and of the session, as further lines.
func (w *walk) progress(ctx context.Context, id string) string {
	sent, err := w.client.SendStatus(ctx, api.SentArgs{MessageID: id})
	if err != nil || len(sent.Recipients) == 0 {
		return ""
	}
	at := sent.Recipients[0]
	text := fmt.Sprintf("\nthe message is %s", at.Stage)
	if at.Evidence != "" {
		text += " (" + at.Evidence + ")"
	}
	peers, err := w.peers(ctx)
	if err == nil && len(peers) == 1 {
		text += "\nthe session: " + peers[0].Detail
	}
	return text
}

// atPrompt sends mail that does not wake the idle session, and then prompts the session.
func (w *walk) atPrompt(ctx context.Context) *fault {
	ctx, cancel := w.within(ctx)
	defer cancel()
	const step = "prompt with mail waiting"
	id, body, err := w.send(ctx, MailAtPrompt, mail.ReplyNone)
	if err != nil {
		return &fault{step, "the message is stored", err.Error()}
	}
	request, err := w.play(ctx, "at-prompt", scripted.Say("at-prompt-said"))
	if err != nil {
		return w.unasked(step, err)
	}
	defer w.settle(ctx)
	return w.shown(ctx, step, id, body, request)
}

// atTool writes to the session while it works, before a tool call.
func (w *walk) atTool(ctx context.Context) *fault {
	const step = "tool call with mail waiting"
	return w.during(ctx, MailAtTool, step, w.run("true").After("at-tool"))
}

// atStop writes to the session while it works, before the last answer of its turn.
func (w *walk) atStop(ctx context.Context) *fault {
	const step = "end of a turn with mail waiting"
	return w.during(ctx, MailAtStop, step, scripted.Say("at-stop-said").After("at-stop"))
}

// during writes to the session while the model is about to give an answer, whose script
// and gate have the route's name. The next request should hold the message.
func (w *walk) during(ctx context.Context, route Route, step string, answer scripted.Step) *fault {
	ctx, cancel := w.within(ctx)
	defer cancel()
	script := strings.TrimPrefix(string(route), "mail-")
	if _, err := w.play(ctx, script, answer, scripted.Say(script+"-read")); err != nil {
		return w.unasked(step, err)
	}
	if err := w.model.AtGate(ctx, script); err != nil {
		return w.unasked(step, err)
	}
	id, body, err := w.send(ctx, route, mail.ReplyOptional)
	w.model.Open(script)
	if err != nil {
		return &fault{step, "the message is stored", err.Error()}
	}
	request, err := w.request(ctx, script, 1)
	if err != nil {
		ctx, cancel := w.within(context.WithoutCancel(ctx))
		defer cancel()
		return &fault{step, "the model is asked again, with the message", "no request within " + w.StepTimeout.String() + w.progress(ctx, id)}
	}
	defer w.settle(ctx)
	return w.shown(ctx, step, id, body, request)
}

// wakes writes to the idle session.
func (w *walk) wakes(ctx context.Context) *fault {
	const step = "mail to the idle session"
	w.settle(ctx)
	waited, cancel := w.within(ctx)
	defer cancel()
	id, body, err := w.send(waited, Wake, mail.ReplyOptional)
	if err != nil {
		return &fault{step, "the message is stored", err.Error()}
	}
	request, err := w.model.Wait(waited, "a turn of the idle session", func(r scripted.Request) bool {
		return !r.Aux && !r.Child() && r.Count(body) > 0
	})
	if err != nil {
		late, cancel := w.within(ctx)
		defer cancel()
		return &fault{step, "the model is asked by itself, with the message", "no request within " + w.StepTimeout.String() + w.progress(late, id)}
	}
	return w.shown(ctx, step, id, body, request)
}
