package driver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/sandbox"
)

// opencode drives `opencode serve`: HTTP on 127.0.0.1 behind a password, and one
// stream of server-sent events. One process a job.
type opencode struct {
	*run.Run
	spec     job.Spec
	password string
	client   *http.Client
	url      chan string // the one address, as the process says it
	base     string      // that address, once the session is open
	stopped  atomic.Bool // the turn that runs was told to stop
}

const (
	// openCodeServer is the name under which opencode knows our MCP server.
	openCodeServer = "bridge"
	// openCodeReady is what opencode says, followed by its address.
	openCodeReady = "opencode server listening on "
	// probeTime bounds one try to reach a server that has just begun to listen: it
	// was seen never to answer its first request, and at once the second.
	probeTime  = time.Second
	probePause = 50 * time.Millisecond
	// replyTime bounds the answer of a server that works: it queues, and answers.
	replyTime = time.Minute
)

func startOpenCode(spec job.Spec) (*run.Run, error) {
	floor, err := run.FloorOf(spec)
	if err != nil {
		return nil, err
	}
	o := &opencode{spec: spec, password: rand.Text(), url: make(chan string, 1), client: &http.Client{Transport: &http.Transport{}}}
	shell, err := openCodeShell(spec, floor)
	if err != nil {
		return nil, err
	}
	config := openCodeConfig(spec, floor)
	more := []string{"OPENCODE_SERVER_PASSWORD=" + o.password, "OPENCODE_SERVER_USERNAME=opencode", "OPENCODE_DISABLE_AUTOUPDATE=1"}
	if shell != "" {
		config["shell"] = shell
		more = append(more, "SHELL="+shell)
	}
	env := run.Environment(spec, append(more, "OPENCODE_CONFIG_CONTENT="+run.AsJSON(config))...)
	var state openCodeState
	if floor == job.FloorSandbox {
		if state, err = findOpenCodeState(env); err != nil {
			return nil, err
		}
		state.readable = append(state.readable, filepath.Dir(shell))
	}
	p, err := run.Launch(spec, run.Command{
		Argv: append(slices.Clone(spec.Command), "serve", "--hostname=127.0.0.1", "--port=0"),
		Env:  env, Floor: floor, Writable: state.folders, Files: state.files, Readable: state.readable,
		OwnersCaches: true, // what opencode runs of them is none of its commands' to write; these have the job's by their shell
	})
	if err != nil {
		return nil, err
	}
	o.Run = run.New(p, floor)
	o.Begin(o, spec.Prompt, o.line)
	go o.connect(floor)
	return o.Run, nil
}

// openCodeRule is one line of what a session may do; the last that fits counts.
type openCodeRule struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     string `json:"action"`
}

// openCodeRules say what a session may do. Its rules about shell commands look at
// words and about folders at paths as written, so a shell is either asked about or
// has the floor below it.
func openCodeRules(access job.Access, floor job.Floor) []openCodeRule {
	rule := func(action string, permissions ...string) []openCodeRule {
		var rules []openCodeRule
		for _, permission := range permissions {
			rules = append(rules, openCodeRule{permission, "*", action})
		}
		return rules
	}
	reading := []string{"read", "grep", "glob", "list"}
	ours := openCodeServer + "_*"
	switch access {
	case job.AccessRead:
		rules := append(rule("deny", "*"), rule("allow", append(reading, ours)...)...)
		if floor == job.FloorSandbox {
			rules = append(rules, rule("allow", "bash")...)
		}
		return rules
	case job.AccessEdit:
		return append(rule("ask", "*"), rule("allow", append(reading, ours, "edit", "bash", "todowrite", "todoread", "task")...)...)
	default:
		// A child's session takes none of these rules.
		return slices.Concat(rule("ask", "*"), rule("allow", ours), rule("deny", "task"))
	}
}

// openCodeConfig is merged over the owner's own configuration, for this process.
func openCodeConfig(spec job.Spec, floor job.Floor) map[string]any {
	permission := map[string]string{}
	for _, rule := range openCodeRules(spec.Access, floor) {
		permission[rule.Permission] = rule.Action
	}
	config := map[string]any{"permission": permission, "autoupdate": false, "share": "disabled"}
	if spec.Bridge.Command != "" {
		env := run.Pairs(spec.Bridge.Env)
		env[sandbox.JobVariable], env[sandbox.TokenVariable] = spec.Job, spec.Token
		config["mcp"] = map[string]any{openCodeServer: map[string]any{
			"type": "local", "command": append([]string{spec.Bridge.Command}, spec.Bridge.Args...), "environment": env, "enabled": true,
		}}
	}
	return config
}

// line reads what the process prints: its address, once.
func (o *opencode) line(raw []byte) {
	_, url, said := bytes.Cut(raw, []byte(openCodeReady))
	if !said {
		o.Noise(raw)
		return
	}
	select {
	case o.url <- strings.TrimSpace(string(url)):
	default:
		o.Noise(raw)
	}
}

// connect opens the session behind the address that the process says. How it
// went is in the events.
func (o *opencode) connect(floor job.Floor) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-o.Process.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	reader, opened, stream, err := o.start(ctx, floor)
	if err != nil {
		o.FailOpen(err)
		return
	}
	defer stream.Close()
	o.Open(opened)
	reader.read(stream)
	// Without its events the state of the server is unknown.
	o.Process.Lost()
}

func (o *opencode) start(ctx context.Context, floor job.Floor) (*openCodeReader, job.Opened, io.ReadCloser, error) {
	fail := func(err error) (*openCodeReader, job.Opened, io.ReadCloser, error) {
		return nil, job.Opened{}, nil, err
	}
	select {
	case o.base = <-o.url:
	case <-ctx.Done():
		return fail(job.ErrEnded)
	}
	version, err := o.wait(ctx)
	if err != nil {
		return fail(err)
	}
	stream, err := o.events(ctx)
	if err != nil {
		return fail(err)
	}
	session, err := o.openSession(ctx, floor)
	if err != nil {
		stream.Close()
		return fail(err)
	}
	reader := newOpenCodeReader(o, session)
	return reader, job.Opened{
		Session: session.ID, Model: o.spec.Model, Version: version,
		Capabilities: job.Capabilities{LiveMessage: true, DenyReason: true, Resume: true},
	}, stream, nil
}

// wait asks until the server answers.
func (o *opencode) wait(ctx context.Context) (version string, err error) {
	for {
		try, cancel := context.WithTimeout(ctx, probeTime)
		var health struct {
			Version string `json:"version"`
		}
		err := o.call(try, http.MethodGet, "/global/health", nil, &health)
		cancel()
		if err == nil {
			return health.Version, nil
		}
		select {
		case <-time.After(probePause):
		case <-ctx.Done():
			return "", job.ErrEnded
		}
	}
}

// events opens the stream; it is there before anything is said.
func (o *opencode) events(ctx context.Context) (io.ReadCloser, error) {
	request, err := o.request(ctx, http.MethodGet, "/event", nil)
	if err != nil {
		return nil, err
	}
	response, err := o.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("listen to opencode: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("listen to opencode: %s", response.Status)
	}
	return response.Body, nil
}

// openCodeSession is a session, as far as it is read.
type openCodeSession struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

type openCodeTokens struct {
	Input     int64 `json:"input"`     // tokens
	Output    int64 `json:"output"`    // tokens
	Reasoning int64 `json:"reasoning"` // tokens
	Cache     struct {
		Read  int64 `json:"read"`  // tokens
		Write int64 `json:"write"` // tokens
	} `json:"cache"`
}

func (o *opencode) openSession(ctx context.Context, floor job.Floor) (openCodeSession, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	var session openCodeSession
	body := map[string]any{"permission": openCodeRules(o.spec.Access, floor)}
	if o.spec.Title != "" {
		body["title"] = o.spec.Title
	}
	if o.spec.Session == "" {
		err := o.call(ctx, http.MethodPost, "/session", body, &session)
		return session, err
	}
	path := "/session/" + o.spec.Session
	if !openCodeID(o.spec.Session) {
		return session, &run.OpenError{Why: job.EndNoSession, Err: errors.New("that is no session of opencode's")}
	}
	if err := o.call(ctx, http.MethodGet, path, nil, &session); err != nil {
		if refused, ok := errors.AsType[*run.Refusal](err); ok && refused.Code < http.StatusInternalServerError {
			return session, &run.OpenError{Why: job.EndNoSession, Err: err}
		}
		return session, err
	}
	return session, o.call(ctx, http.MethodPatch, path, body, nil)
}

// openCodeID reports whether an id can stand in a path.
func openCodeID(id string) bool {
	return strings.HasPrefix(id, "ses_") && !strings.ContainsAny(id, "/?#%.\\")
}

func (o *opencode) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		content = strings.NewReader(run.AsJSON(body))
	}
	request, err := http.NewRequestWithContext(ctx, method, o.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("ask opencode: %w", err)
	}
	request.SetBasicAuth("opencode", o.password)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Opencode-Directory", o.spec.Folder)
	return request, nil
}

// call asks the server. A *run.Refusal is its own no; ErrEnded: it does not listen;
// ErrUnconfirmed: it was asked, and nothing came back.
func (o *opencode) call(ctx context.Context, method, path string, body, into any) error {
	request, err := o.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	response, err := o.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
			return job.ErrEnded
		}
		return job.ErrUnconfirmed
	}
	defer response.Body.Close()
	raw, err := run.ReadBody(response.Body)
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		return &run.Refusal{Code: response.StatusCode, Message: fmt.Sprintf("opencode says %s: %s", response.Status, bytes.ToValidUTF8(raw[:min(len(raw), 500)], nil))}
	case err != nil:
		return job.ErrUnconfirmed
	case into == nil:
		return nil
	}
	return json.Unmarshal(raw, into)
}

// post asks within the patience for a server that works.
func (o *opencode) post(ctx context.Context, path string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	return o.call(ctx, http.MethodPost, path, body, nil)
}

// Send posts a message to the session. It fails with ErrEnded if the server has ended, with a
// Refusal if it refuses the message, and with ErrUnconfirmed if it does not answer in time.
func (o *opencode) Send(ctx context.Context, message job.Message) error {
	if err := o.WaitOpen(ctx); err != nil {
		return err
	}
	body := map[string]any{"parts": []map[string]any{{"type": "text", "text": message.Text}}}
	if provider, model, ok := strings.Cut(o.spec.Model, "/"); ok {
		body["model"] = map[string]any{"providerID": provider, "modelID": model}
	}
	if o.spec.Effort != "" {
		body["variant"] = o.spec.Effort
	}
	if o.spec.Note != "" {
		body["system"] = o.spec.Note
	}
	return o.post(ctx, "/session/"+o.Session()+"/prompt_async", body)
}

// Decide allows a request once, because opencode stores a permanent answer for the whole
// server. A refusal always has a text, because without one opencode ends the turn. Decide fails
// with NotFound if the question is not open, and otherwise as Send does.
func (o *opencode) Decide(ctx context.Context, question job.Question, answer job.Answer) error {
	path, body := "/permission/"+question.ID+"/reply", map[string]any{"reply": "once"}
	switch {
	case question.Kind == job.QuestionChoice && answer.Allow:
		path, body = "/question/"+question.ID+"/reply", map[string]any{"answers": answer.Choices}
	case question.Kind == job.QuestionChoice:
		path, body = "/question/"+question.ID+"/reject", map[string]any{}
	case !answer.Allow:
		body = map[string]any{"reply": "reject", "message": run.Denial(answer)}
	}
	if err := o.post(ctx, path, body); err != nil {
		if refused, ok := errors.AsType[*run.Refusal](err); ok && refused.Code == http.StatusNotFound {
			return bridge.Errorf(bridge.NotFound, "no such question is open")
		}
		return err
	}
	o.Resolved(question.ID)
	return nil
}

// Stop aborts the turn. It fails as Send does.
func (o *opencode) Stop(ctx context.Context) error {
	if err := o.WaitOpen(ctx); err != nil {
		return err
	}
	o.stopped.Store(true)
	return o.post(ctx, "/session/"+o.Session()+"/abort", map[string]any{})
}

// Leave terminates the server, which ignores the end of its input. The reaper ends processes
// that it leaves in other sessions.
func (o *opencode) Leave(context.Context) { o.Process.Terminate() }
