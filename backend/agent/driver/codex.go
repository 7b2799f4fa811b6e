package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bridge/backend/agent/appserver"
	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
	"bridge/backend/platform/sandbox"
)

// codex drives `codex app-server`: JSON-RPC lines without the version. One
// process a job, one thread in it.
type codex struct {
	*run.Run
	run.Calls
	spec job.Spec

	at     sync.Mutex // guards where the thread is
	thread string
	turnID string        // of the turn that runs, "" for none
	turned chan struct{} // closed and replaced when that changes
}

// codexServer is the name under which codex knows our MCP server.
const codexServer = "bridge"

func startCodex(spec job.Spec) (*run.Run, error) {
	floor := job.FloorOwn
	env := run.Environment(spec)
	home := env.Get("CODEX_HOME")
	if home == "" {
		home = filepath.Join(run.UserHome(env), ".codex")
	}
	if within(home, run.Temporary(spec)) {
		return nil, bridge.Errorf(bridge.Invalid, "codex keeps its state below the job's temporary folder, where its sandbox breaks")
	}
	// Its own sandbox is the floor: ours around it would break it.
	argv := append(slices.Clone(spec.Command), profileFlags(spec, env)...)
	argv = append(argv, "app-server", "--disable", "hooks")
	p, err := run.Launch(spec, run.Command{Argv: argv, Env: env, Floor: floor})
	if err != nil {
		return nil, err
	}
	c := &codex{Run: run.New(p, floor), spec: spec, turned: make(chan struct{})}
	reader := codexReader{codex: c, steps: map[string]appserver.Item{}}
	c.Begin(c, spec.Prompt, reader.line)
	go c.shake(floor)
	return c.Run, nil
}

// within reports whether path is folder or below it.
func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// shake begins the conversation. How it went is in the events.
func (c *codex) shake(floor job.Floor) {
	ctx := context.Background() // it ends with the process
	opened, err := c.start(ctx, floor)
	if err != nil {
		c.FailOpen(codexOpenError(err))
		return
	}
	c.Open(opened)
	if c.spec.Title != "" {
		_, _ = c.request(ctx, "thread/name/set", map[string]any{"threadId": opened.Session, "name": c.spec.Title}) // a title is no reason to fail
	}
}

func (c *codex) start(ctx context.Context, floor job.Floor) (job.Opened, error) {
	answer, err := c.request(ctx, "initialize", appserver.Hello("bridge-job"))
	if err != nil {
		return job.Opened{}, err
	}
	if err := c.notify(ctx, "initialized"); err != nil {
		return job.Opened{}, err
	}
	probed := make(chan error, 1)
	go func() { // beside the thread's start: both take their time, and nothing is said before both are done
		if floor == job.FloorOwn && (!c.spec.ToolLevelOnly || c.spec.Unlinked) {
			probed <- c.probe(ctx)
		}
		close(probed)
	}()
	var host struct {
		UserAgent string `json:"userAgent"`
	}
	json.Unmarshal(answer, &host) //nolint:errcheck // it is for display
	opened, err := c.openThread(ctx, codexVersion(host.UserAgent))
	if broken := <-probed; broken != nil {
		return job.Opened{}, broken
	}
	return opened, err
}

// codexVersion reads "name/VERSION (system) ...".
func codexVersion(agent string) string {
	_, rest, _ := strings.Cut(agent, "/")
	version, _, _ := strings.Cut(rest, " ")
	return version
}

// probe sees that codex's sandbox works and holds before anything relies on it: it
// is known to break silently.
func (c *codex) probe(ctx context.Context) error {
	execute := func(argv ...string) (int, error) {
		raw, err := c.request(ctx, "command/exec", map[string]any{"command": argv, "cwd": c.spec.Folder, "sandboxPolicy": map[string]any{"type": "readOnly"}})
		var result struct {
			ExitCode int `json:"exitCode"`
		}
		if err != nil {
			return 0, err
		}
		return result.ExitCode, json.Unmarshal(raw, &result)
	}
	shell, inside, outside := []string{"/bin/sh", "-c"}, "exit 7", "echo x > "+bridge.QuotePOSIX(filepath.Join(c.spec.StateFolder, "probe"))+" || exit 7"
	for _, script := range []string{inside, outside} {
		code, err := execute(append(slices.Clone(shell), script)...)
		if err != nil {
			return &run.OpenError{Why: job.EndFailed, Err: fmt.Errorf("try codex's sandbox: %w", err)}
		}
		if code != 7 {
			return &run.OpenError{Why: job.EndFailed, Err: errors.New("codex's sandbox does not hold on this system")}
		}
	}
	return nil
}

func (c *codex) openThread(ctx context.Context, version string) (job.Opened, error) {
	// The thread is always started read-only: any other sandbox would make codex
	// write into the owner's config.toml that it trusts the folder. Each turn says
	// what it may.
	params := map[string]any{
		"cwd": c.spec.Folder, "approvalPolicy": c.policy(),
		"config": c.config(), "threadSource": "bridge-job",
	}
	if c.spec.Unlinked {
		params["permissions"] = readingProfile
	} else {
		params["sandbox"] = "read-only"
	}
	method := "thread/start"
	if c.spec.Model != "" {
		params["model"] = c.spec.Model
	}
	if c.spec.Session != "" {
		method = "thread/resume"
		params["threadId"] = c.spec.Session
		delete(params, "threadSource")
	} else if c.spec.Note != "" {
		params["developerInstructions"] = c.spec.Note
	}
	raw, err := c.request(ctx, method, params)
	if err != nil {
		return job.Opened{}, err
	}
	var result struct {
		Model  string `json:"model"`
		Thread struct {
			ID    string `json:"id"`
			Model string `json:"model"`
		} `json:"thread"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || result.Thread.ID == "" {
		return job.Opened{}, fmt.Errorf("read codex's thread: %w", errors.Join(err, errors.New("it has no id")))
	}
	c.at.Lock()
	c.thread = result.Thread.ID
	c.at.Unlock()
	model := result.Model
	if model == "" {
		model = result.Thread.Model
	}
	return job.Opened{
		Session: result.Thread.ID, Model: model, Version: version,
		Capabilities: job.Capabilities{LiveMessage: true, DenyReason: true, Resume: true},
	}, nil
}

// codexOpenError says why there is no thread.
func codexOpenError(err error) error {
	refused, ok := errors.AsType[*run.Refusal](err)
	if !ok {
		return err
	}
	switch text := strings.ToLower(refused.Message); {
	case strings.Contains(text, "active writer"):
		return &run.OpenError{Why: job.EndInUse, Err: err}
	case strings.Contains(text, "no rollout"), strings.Contains(text, "not found"), strings.Contains(text, "invalid thread id"):
		return &run.OpenError{Why: job.EndNoSession, Err: err}
	}
	return err
}

// policy says what codex asks about.
func (c *codex) policy() string {
	return map[job.Access]string{job.AccessRead: "never", job.AccessAsk: "untrusted", job.AccessEdit: "on-request"}[c.spec.Access]
}

// sandboxPolicy returns the limits of a command that runs without a question. Codex repeats an
// allowed command outside of them if it failed inside.
func (c *codex) sandboxPolicy() map[string]any {
	switch c.spec.Access {
	case job.AccessAsk, job.AccessEdit:
		return map[string]any{
			"type": "workspaceWrite", "writableRoots": c.writable(),
			"networkAccess": false, "excludeSlashTmp": true, "excludeTmpdirEnvVar": true,
		}
	default:
		return map[string]any{"type": "readOnly"}
	}
}

// config is what this thread adds to the owner's configuration: our MCP server,
// whose tools are allowed one by one, for under "never" nothing else works.
func (c *codex) config() map[string]any {
	config := map[string]any{}
	if c.spec.Effort != "" {
		config["model_reasoning_effort"] = c.spec.Effort
	}
	if c.spec.Bridge.Command == "" {
		return config
	}
	env := run.Pairs(c.spec.Bridge.Env)
	env[sandbox.JobVariable], env[sandbox.TokenVariable] = c.spec.Job, c.spec.Token
	tools := map[string]any{}
	for _, name := range c.spec.Bridge.Tools {
		tools[name] = map[string]any{"approval_mode": "approve"}
	}
	config["mcp_servers."+codexServer] = map[string]any{
		"command": c.spec.Bridge.Command, "args": append([]string{}, c.spec.Bridge.Args...), "env": env,
		"tools": tools, "default_tools_approval_mode": "approve",
	}
	return config
}

// request asks codex for something and waits for its answer.
func (c *codex) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.Call(ctx, c.Process, func(id string) any {
		return map[string]any{"id": id, "method": method, "params": params}
	})
}

func (c *codex) notify(ctx context.Context, method string) error {
	return c.Process.Send(ctx, []byte(run.AsJSON(map[string]any{"method": method})))
}

// where returns the thread and the turn that runs, "" for none.
func (c *codex) where() (thread, turn string) {
	c.at.Lock()
	defer c.at.Unlock()
	return c.thread, c.turnID
}

// setTurn notes the turn that runs; was is the one that it replaces, "" for any.
func (c *codex) setTurn(was, turn string) {
	c.at.Lock()
	defer c.at.Unlock()
	if was == "" || was == c.turnID {
		c.turnID = turn
		close(c.turned)
		c.turned = make(chan struct{})
	}
}

// Send adds the message to the current turn, or starts a turn. Codex refuses the addition if
// the turn has just ended or another one has begun; Send then tries again. It fails with
// ErrEnded if codex has ended, with ErrUnconfirmed without an answer in time, and with a
// Refusal if codex refuses the turn.
func (c *codex) Send(ctx context.Context, message job.Message) error {
	if err := c.WaitOpen(ctx); err != nil {
		return err
	}
	for {
		thread, turn := c.where()
		if turn == "" {
			return c.startTurn(ctx, thread, message)
		}
		err := c.steer(ctx, thread, turn, message.ID, message.Text)
		if _, refused := errors.AsType[*run.Refusal](err); !refused {
			return err
		}
		if _, now := c.where(); now == turn {
			c.setTurn(turn, "")
		}
	}
}

func (c *codex) steer(ctx context.Context, thread, turn, id, text string) error {
	_, err := c.request(ctx, "turn/steer", appserver.Steer(thread, turn, id, text))
	return err
}

// startTurn is taken as a steer where a turn has begun meanwhile.
func (c *codex) startTurn(ctx context.Context, thread string, message job.Message) error {
	params := map[string]any{
		"threadId": thread, "clientUserMessageId": message.ID, "input": appserver.Words(message.Text),
		"approvalPolicy": c.policy(),
	}
	switch {
	case !c.spec.Unlinked:
		params["sandboxPolicy"] = c.sandboxPolicy()
	case c.spec.Access == job.AccessRead:
		params["permissions"] = readingProfile
	default:
		params["permissions"] = writingProfile
	}
	if c.spec.Effort != "" {
		params["effort"] = c.spec.Effort
	}
	if c.spec.Session != "" && c.spec.Note != "" {
		// A continued thread keeps its old instructions.
		params["additionalContext"] = map[string]any{"bridge": map[string]any{"kind": "application", "value": c.spec.Note}}
	}
	_, err := c.request(ctx, "turn/start", params)
	return err
}

// Decide sends the reason of a refusal into the turn first, because codex's answer has no field
// for it. It fails with ErrEnded if codex has ended, and with ErrUnconfirmed if codex does not
// close the question in time.
func (c *codex) Decide(ctx context.Context, question job.Question, answer job.Answer) error {
	if err := c.decide(ctx, question, answer); err != nil {
		return err
	}
	return c.AwaitGone(ctx, question.ID)
}

func (c *codex) decide(ctx context.Context, question job.Question, answer job.Answer) error {
	if !answer.Allow && answer.Reason != "" {
		thread, turn := c.where()
		err := c.steer(ctx, thread, turn, "", appserver.Refused(answer.Reason))
		if _, refused := errors.AsType[*run.Refusal](err); err != nil && !refused {
			return err
		}
	}
	line := run.AsJSON(map[string]any{"id": json.RawMessage(question.ID), "result": codexVerdict(question, answer)})
	return c.Process.Send(ctx, []byte(line))
}

// mayChange reports whether the job may write all of these files. Without a file it returns
// false.
func (c *codex) mayChange(paths []string) bool {
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.spec.Folder, path)
		}
		target, err := disk.CanonicalTarget(path)
		if err != nil || !slices.ContainsFunc(append(c.writable(), c.spec.Folder), func(folder string) bool {
			folder, err := disk.CanonicalTarget(folder)
			return err == nil && within(target, folder)
		}) {
			return false
		}
	}
	return len(paths) > 0
}

// writable are the folders that a job that edits may write besides its own.
func (c *codex) writable() []string {
	return append([]string{run.Temporary(c.spec)}, c.spec.Writable...)
}

// codexVerdict answers each kind of request in its own words. Nothing is ever
// allowed for later.
func codexVerdict(question job.Question, answer job.Answer) any {
	switch question.Kind {
	case job.QuestionTool:
		return appserver.Elicited(answer.Allow)
	case job.QuestionChoice:
		return codexChoices(question, answer)
	default: // a command or a change of files
		return appserver.Decision(answer.Allow)
	}
}

func codexChoices(question job.Question, answer job.Answer) any {
	var input codexUserInput
	json.Unmarshal(question.Input, &input) //nolint:errcheck // it was read before
	answers := map[string]any{}
	for i, q := range input.Questions {
		if answer.Allow && i < len(answer.Choices) {
			answers[q.ID] = map[string]any{"answers": answer.Choices[i]}
		}
	}
	return map[string]any{"answers": answers}
}

// running returns the turn that runs; it waits for one that a message on its way
// begins, and is "" for none.
func (c *codex) running(ctx context.Context) (thread, turn string, err error) {
	for {
		c.at.Lock()
		thread, turn, turned := c.thread, c.turnID, c.turned
		c.at.Unlock()
		if turn != "" || !c.Waiting() {
			return thread, turn, nil
		}
		select {
		case <-turned:
		case <-c.Process.Ended():
			return "", "", nil
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
	}
}

// Stop interrupts the turn. It fails with ErrEnded or ErrUnconfirmed if codex does not answer,
// and if ctx ends. Without a turn it does nothing.
func (c *codex) Stop(ctx context.Context) error {
	thread, turn, err := c.running(ctx)
	if turn == "" {
		return err
	}
	_, err = c.request(ctx, "turn/interrupt", map[string]any{"threadId": thread, "turnId": turn})
	if _, refused := errors.AsType[*run.Refusal](err); refused {
		return nil // the turn has just ended
	}
	return err
}

// Leave ends what commands run in the background: codex leaves it running after
// an interrupt, and after its own end what is in another session.
func (c *codex) Leave(ctx context.Context) {
	if thread, _ := c.where(); thread != "" {
		_, _ = c.request(ctx, "thread/backgroundTerminals/clean", map[string]any{"threadId": thread}) // the reaper comes behind it
	}
}

// codexReset reads when a usage limit is over from codex's words, in the local
// time that it uses: "try again at 7:18 AM." or "... at Nov 24th, 2026 7:18 AM."
func codexReset(message string, now time.Time) time.Time {
	_, at, found := strings.Cut(message, "try again at ")
	if !found {
		return time.Time{}
	}
	at = strings.TrimRight(strings.TrimSpace(at), ".")
	if clock, err := time.ParseInLocation("3:04 PM", at, now.Location()); err == nil {
		reset := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
		if reset.Before(now) {
			reset = reset.AddDate(0, 0, 1)
		}
		return reset
	}
	for _, ordinal := range []string{"st,", "nd,", "rd,", "th,"} {
		if day, err := time.ParseInLocation("Jan 2, 2006 3:04 PM", strings.Replace(at, ordinal, ",", 1), now.Location()); err == nil {
			return day
		}
	}
	return time.Time{}
}
