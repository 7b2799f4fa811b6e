package realcli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/testing/testkit"
)

// install connects the CLIs and serves the product in the foreground until the test ends.
// Named are those that are on the PC, where it is not all of them: each one that is there is
// started for its version, and an opencode takes a second of a processor for that.
func (w *world) install(clis ...string) {
	w.Helper()
	for _, name := range []string{"claude", "codex", "opencode"} {
		if len(clis) > 0 && !slices.Contains(clis, name) {
			must(w.T, os.Remove(filepath.Join(w.home.Bin, name)))
		}
	}
	w.connect()
	w.serve()
}

// connect puts the product on the PATH and connects the CLIs to it as a person would.
func (w *world) connect() {
	w.Helper()
	product, err := product()
	must(w.T, err)
	for _, program := range testkit.Programs {
		must(w.T, os.Link(filepath.Join(product, program), filepath.Join(w.home.Bin, program)))
	}
	w.home.More = append(w.home.More, "BRIDGE_LOG_LEVEL=debug")
	w.Logf("bridge install --yes:\n%s", w.bridge("install", "--yes"))
	w.logs = append(w.logs, filepath.Join(w.home.Dir, ".bridge", "logs", "bridge.log"))
}

// product is the folder with the programs under test, beside the homes that link
// to them.
var product = sync.OnceValues(func() (string, error) {
	folder := os.TempDir()
	var failed error
	for _, program := range testkit.Programs {
		failed = errors.Join(failed, bring(filepath.Join(folder, program)))
	}
	return folder, failed
})

// bring puts a program there, unless it is: the one beside what BRIDGE_TEST_BIN names, else
// it is built.
func bring(to string) error {
	if exists(to) {
		return nil
	}
	program := filepath.Base(to)
	if built := os.Getenv("BRIDGE_TEST_BIN"); built != "" {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(built), program))
		if err != nil {
			return err
		}
		return testkit.WriteProgram(to, raw, 0o700)
	}
	return testkit.Build(to, "bridge/cmd/"+program)
}

// serve starts `bridge serve` and signs in with the launch link that it prints.
func (w *world) serve() {
	w.Helper()
	cmd := w.home.Command(context.WithoutCancel(w.Context()), w.home.Dir, "bridge", "serve", "--port", "0")
	var errs strings.Builder
	cmd.Stderr = &errs
	stdout, err := cmd.StdoutPipe()
	must(w.T, err)
	must(w.T, cmd.Start())
	var killed atomic.Bool
	stop := sync.OnceValue(func() error {
		if killed.Load() {
			return nil
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("bridge serve after SIGTERM: %w\n%s", err, errs.String())
		}
		return nil
	})
	w.whole.Cleanup(func() {
		if err := stop(); err != nil {
			w.whole.Error(err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	launch, ok := strings.CutPrefix(strings.TrimSpace(line), "bridge: ready ")
	if err != nil || !ok {
		w.Fatalf("bridge serve said %q (%v)", line, err)
	}
	w.page = signIn(w.T, launch)
	w.page.stop = stop
	w.page.kill = func() error {
		killed.Store(true)
		if err := cmd.Process.Kill(); err != nil {
			return err
		}
		cmd.Wait() //nolint:errcheck // it was killed, and says so
		return nil
	}
}

// dashboard is the owner's page without a browser: it holds the cookie, hears
// the events and fetches what it would show.
type dashboard struct {
	client *http.Client
	base   string
	stop   func() error // ends the broker that serves it
	kill   func() error // and that without a warning
}

func signIn(t *testing.T, launch string) *dashboard {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	base, _, ok := strings.Cut(launch, "/launch?")
	if !ok {
		t.Fatalf("%q is no launch link", launch)
	}
	d := &dashboard{client: &http.Client{Jar: jar}, base: base}
	answer := d.get(t, soon(t), "/"+strings.TrimPrefix(launch, base+"/"))
	must(t, answer.Body.Close())
	return d
}

// get answers the response of a request that succeeded.
func (d *dashboard) get(t *testing.T, ctx context.Context, path string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base+path, nil)
	must(t, err)
	answer, err := d.client.Do(r)
	must(t, err)
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("GET %s: %s %s", path, answer.Status, text)
	}
	return answer
}

// What the page shows, as far as these tests look.
type (
	state struct {
		Peers     []peer     `json:"peers"`
		Messages  []message  `json:"messages"`
		Approvals []approval `json:"approvals"`
	}
	approval struct {
		ID        string `json:"id"`
		Job       string `json:"job"`
		Session   string `json:"session"`
		What      string `json:"what"`
		Detail    string `json:"detail"`
		State     string `json:"state"`
		Elsewhere string `json:"elsewhere"`
		OnlyTold  string `json:"onlyTold"`
		Caution   string `json:"caution"`
	}
	peer struct {
		ID        string  `json:"id"`
		Name      string  `json:"name"`
		Agent     string  `json:"agent"`
		Cwd       string  `json:"cwd"`
		State     string  `json:"state"`
		SessionID string  `json:"sessionId"`
		Transport string  `json:"transport"`
		Detail    string  `json:"detail"`
		Children  []child `json:"children"`
	}
	child struct {
		ID    string `json:"id"`
		Title string `json:"title"`
		State string `json:"state"`
	}
	message struct {
		ID         string     `json:"id"`
		From       string     `json:"from_name"`
		To         string     `json:"to_target"`
		Body       string     `json:"body"`
		ReplyTo    string     `json:"reply_to"`
		State      string     `json:"state"`
		Deliveries []delivery `json:"deliveries"`
	}
	delivery struct {
		Name   string `json:"name"`
		Agent  string `json:"agent"`
		Stage  string `json:"stage"`
		Stages []struct {
			Stage    string `json:"stage"`
			At       int64  `json:"at"` // 0 for null
			Evidence string `json:"evidence"`
		} `json:"stages"`
	}
)

// state fetches what the page shows now.
func (d *dashboard) state(t *testing.T, ctx context.Context) (s state, raw []byte) {
	t.Helper()
	answer := d.get(t, ctx, "/api/state")
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	must(t, err)
	must(t, json.Unmarshal(raw, &s))
	return s, raw
}

// shown waits as the page does: it looks, and looks again only when an event
// says that something changed. So a stage that is shown without an event fails.
func (w *world) shown(what string, fits func(state) bool) state {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), testkit.Patience)
	defer cancel()
	events := w.page.get(w.T, ctx, "/api/events")
	defer events.Body.Close()
	changes := bufio.NewScanner(events.Body)
	for {
		s, raw := w.page.state(w.T, ctx)
		if fits(s) {
			return s
		}
		if !next(changes) {
			w.Fatalf("waiting for %s: %v; the page shows\n%s", what, ctx.Err(), raw)
		}
	}
}

// next waits for the next change; false when the stream ended.
func next(events *bufio.Scanner) bool {
	for events.Scan() {
		if strings.HasPrefix(events.Text(), "data:") {
			return true
		}
	}
	return false
}

// message is the newest one whose body holds the text, the zero message when
// there is none.
func (s state) message(text string) message {
	for _, m := range s.Messages {
		if strings.Contains(m.Body, text) {
			return m
		}
	}
	return message{}
}

// peer is the live session of that name, the zero peer when there is none.
func (s state) peer(name string) peer {
	for _, p := range s.Peers {
		if p.Name == name {
			return p
		}
	}
	return peer{}
}

// to is the message's delivery to one session.
func (m message) to(name string) delivery {
	for _, d := range m.Deliveries {
		if d.Name == name {
			return d
		}
	}
	return delivery{}
}

// reached lists the stages that a delivery has reached, in the page's order.
func (d delivery) reached() string {
	var stages []string
	for _, s := range d.Stages {
		if s.At != 0 {
			stages = append(stages, s.Stage)
		}
	}
	return strings.Join(stages, " ")
}

// evidence is what is known of a stage, in words.
func (d delivery) evidence(stage string) string {
	for _, s := range d.Stages {
		if s.Stage == stage {
			return s.Evidence
		}
	}
	return ""
}

// at is the time of a stage, 0 when it was not reached.
func (d delivery) at(stage string) int64 {
	for _, s := range d.Stages {
		if s.Stage == stage {
			return s.At
		}
	}
	return 0
}

// String is for failures.
func (m message) String() string {
	return fmt.Sprintf("%s %s->%s %q %s %+v", m.ID, m.From, m.To, m.Body, m.State, m.Deliveries)
}

// shows returns how often a request holds the text in mail or in the list of decisions.
func shows(r scripted.Request, text string) int {
	count := 0
	for _, part := range strings.Split(r.Text(), "<bridge-message ")[1:] {
		element, _, _ := strings.Cut(part, "</bridge-message>")
		count += strings.Count(element, text)
	}
	for _, part := range strings.Split(r.Text(), "Decisions pinned in Bridge, newest first.")[1:] {
		for _, line := range strings.Split(part, "\n")[1:] {
			if !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "  ") {
				break
			}
			count += strings.Count(line, text)
		}
	}
	return count
}

// bridge runs one command of the product in the home.
func (w *world) bridge(args ...string) string {
	w.Helper()
	out, err := w.home.Run(soon(w.T), w.home.Dir, "", "bridge", args...)
	must(w.T, err)
	return out
}
