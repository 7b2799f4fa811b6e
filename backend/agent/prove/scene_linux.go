package prove

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bridge/backend/agent"
	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/platform/config"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
)

// project is the folder in the home where the agent works.
const project = "project"

// sender is the name of the session that writes to the agent.
const sender = "bridge-prove"

// The decision that the start note should hold.
const topic, rule = "prove-topic", "Every session of bridge prove is told of this."

// scene is an empty home with the agent and a broker of its own.
type scene struct {
	Run
	home   *scripted.Home
	model  *scripted.FakeModel
	broker *exec.Cmd
	client *ipc.Client // the session that writes
	page   *page
}

// open makes the home, with the agent in it and nothing of Bridge.
func (r Run) open() (*scene, error) {
	model, err := scripted.StartFakeModel()
	if err != nil {
		return nil, err
	}
	s := &scene{Run: r, model: model}
	root, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make an empty home: %w", err), s.close())
	}
	s.home, err = scripted.NewHome(root, kinds[r.Kind].place(r.Program), model, project)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := kinds[r.Kind].prepare(s.home); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if isScript(r.Program) { // it needs its interpreter
		s.home.Path = os.Getenv("PATH")
		err = s.home.WriteProfile()
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// isScript reports whether a program begins with an interpreter line.
func isScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, 2)
	_, err = io.ReadFull(file, begin)
	return err == nil && bytes.Equal(begin, []byte("#!"))
}

// closePatience is how long the end of all processes of the home may take.
const closePatience = 10 * time.Second

// close ends everything that runs in the home, and removes it.
func (s *scene) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	var err error
	if s.client != nil {
		s.client.Close() //nolint:errcheck // the broker ends, too
	}
	if s.home != nil {
		err = s.home.Close(ctx)
	}
	if s.broker != nil {
		s.broker.Wait() //nolint:errcheck // it was killed, and says so
	}
	return errors.Join(err, s.model.Close())
}

// variable returns a variable of the home's environment.
func (s *scene) variable(name string) string {
	for _, pair := range s.home.Env() {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// version returns the agent's version as it says it in the empty home.
func (s *scene) version(ctx context.Context) agent.Found {
	found, err := agent.Detect(ctx, s.Kind, agent.Lookup{Env: s.variable, Environ: s.home.Env})
	if err != nil {
		return agent.Found{}
	}
	return found
}

// install connects the agent as a person does.
func (s *scene) install(ctx context.Context) error {
	if _, err := s.home.Run(ctx, s.home.Dir, "", s.Bridge, "install", string(s.Kind), "--yes"); err != nil {
		return err
	}
	// Each route is tried at once, also after a wake (QUI-03). The owner is away, so that
	// the page shows permission prompts (NED-02).
	for _, setting := range [][2]string{{"mail.secondsBetweenWakes", "0"}, {"answerPrompts", "away"}, {"away", "true"}} {
		if _, err := s.home.Run(ctx, s.home.Dir, "", s.Bridge, "config", "set", setting[0], setting[1]); err != nil {
			return err
		}
	}
	if s.Installed != nil {
		return s.Installed(s.home)
	}
	return nil
}

// serve starts a broker in the home, and connects a session that writes to the agent. The
// broker ends soon after the last session, even if this process is killed.
func (s *scene) serve(ctx context.Context) error {
	var errs bytes.Buffer
	s.broker = s.home.Command(context.WithoutCancel(ctx), s.home.Dir, s.Bridge, "serve", "--port", "0", "--background")
	s.broker.Stderr = &errs
	out, err := s.broker.StdoutPipe()
	if err == nil {
		err = s.broker.Start()
	}
	if err != nil {
		s.broker = nil
		return fmt.Errorf("start a broker: %w", err)
	}
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		ready <- line
		_, _ = io.Copy(io.Discard, out)
	}()
	select {
	case line := <-ready:
		link, ok := strings.CutPrefix(strings.TrimSpace(line), "bridge: ready ")
		if !ok {
			return bridge.Errorf(bridge.Unavailable, "the broker of the empty home did not start: %s%s", line, errs.String())
		}
		if s.page, err = openPage(ctx, link); err != nil {
			return err
		}
	case <-ctx.Done():
		return fmt.Errorf("wait for the broker of the empty home: %w", ctx.Err())
	}
	return s.join(ctx)
}

// join connects the session that writes to the agent, and pins a decision.
func (s *scene) join(ctx context.Context) error {
	home, err := config.ResolveHome(filepath.Join(s.home.Dir, ".bridge"), s.variable)
	if err != nil {
		return err
	}
	token, err := home.ExistingToken()
	if err != nil {
		return err
	}
	s.client, err = ipc.Dial(ctx, ipc.Target{Socket: home.Socket(), Token: string(token)}, ipc.Hello{Role: api.RoleSession, PID: os.Getpid(), Version: "prove"})
	if err != nil {
		return err
	}
	_, err = s.client.Register(ctx, api.Register{
		Kind: s.Kind, Name: sender, Cwd: s.home.Project(project), AgentPID: os.Getpid(), SessionID: sender,
	})
	if err != nil {
		return err
	}
	everybody := decision.Scope{All: true}
	_, err = s.client.Decide(ctx, api.DecideArgs{Topic: topic, Text: rule, Scope: &everybody})
	return err
}
