package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"bridge/backend/network/hub/hubtest"
	"bridge/backend/network/hub/join"
	"bridge/backend/network/hub/subject"
	"bridge/backend/network/link"
	"bridge/backend/testing/testkit"
)

const runsMain = "BRIDGE_HUB_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runsMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// hubCommand is bridge-hub, this very program, with those words.
func hubCommand(ctx context.Context, home string, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], append(words, "--home", home)...)
	cmd.Env = append(os.Environ(), runsMain+"=1")
	return cmd
}

func run(t *testing.T, home string, words ...string) string {
	t.Helper()
	out, err := hubCommand(t.Context(), home, words...).Output()
	if err != nil {
		t.Fatalf("bridge-hub %q: %v\n%s", words, err, out)
	}
	return string(out)
}

// hub is a bridge-hub serve that runs.
type hub struct {
	t       *testing.T
	home    string
	cmd     *exec.Cmd
	address string
	more    []string
	on      *hubtest.Machine // nil is the one where the test is
}

func startHub(t *testing.T, home string, more ...string) *hub {
	t.Helper()
	h := &hub{t: t, home: home, more: more}
	h.start("0", "0")
	t.Cleanup(func() { h.kill() })
	return h
}

func (h *hub) start(port, natsPort string) {
	h.t.Helper()
	h.cmd = hubCommand(context.Background(), h.home, append([]string{"serve", "--team", "crew", "--listen", "127.0.0.1", "--port", port, "--nats-port", natsPort}, h.more...)...)
	var stderr bytes.Buffer
	h.cmd.Stderr = &stderr
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.on.Start(h.cmd)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	late := time.AfterFunc(testkit.Patience, func() { _ = h.cmd.Process.Signal(syscall.SIGQUIT) }) // it says what it is at
	line, err := bufio.NewReader(out).ReadString('\n')
	late.Stop()
	_, h.address, _ = strings.Cut(strings.TrimSpace(line), "PCs join at ")
	if err != nil || h.address == "" {
		_ = h.cmd.Wait()
		log, _ := os.ReadFile(filepath.Join(h.home, "logs", "hub.log"))
		h.t.Fatalf("the hub said %q (%v) %s\n%s", line, err, stderr.String(), log)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

// kill ends it as a power cut would, as far as processes can tell.
func (h *hub) kill() {
	if h.cmd.ProcessState == nil {
		_ = h.cmd.Process.Signal(syscall.SIGKILL)
		_ = h.cmd.Wait()
	}
}

// pc is a PC of the team.
type pc struct {
	identity link.Identity
	member   join.Membership
}

func (h *hub) join(name string) *pc {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	invite := hubCommand(ctx, h.home, "invite", "--json")
	out, err := invite.StdoutPipe()
	if err == nil {
		err = invite.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { cancel(); _ = invite.Wait() })
	var invited struct {
		Code      string
		Addresses []string
	}
	if err := json.NewDecoder(out).Decode(&invited); err != nil || invited.Addresses[0] != h.address {
		h.t.Fatalf("invited %+v: %v", invited, err)
	}
	p := &pc{}
	if p.identity, err = link.OpenIdentity(h.t.TempDir()); err != nil {
		h.t.Fatal(err)
	}
	err = join.Join(h.t.Context(), p.identity, name, h.address, invited.Code, func(m join.Membership) error { p.member = m; return nil })
	if err != nil {
		h.t.Fatal(err)
	}
	if err := invite.Wait(); err != nil {
		h.t.Errorf("invite ends with %v after the PC has joined", err)
	}
	return p
}

func (p *pc) connect(t *testing.T, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	pair, err := nkeys.FromSeed([]byte(p.member.Seed))
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	options = append([]nats.Option{
		nats.Secure(link.Pinned(p.member.Hub)), nats.TLSHandshakeFirst(), nats.Nkey(key, pair.Sign), nats.CustomInboxPrefix(subject.InboxPrefix(p.identity.ID)),
		nats.Timeout(15 * time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.PingInterval(2 * time.Second),
		nats.IgnoreAuthErrorAbort(), // as a PC: a node that was wiped knows nobody at first
	}, options...)
	conn, err := nats.Connect(strings.Join(p.member.URLs, ","), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, js
}

// sender publishes numbered messages until it is told to stop, and remembers which were
// acknowledged.
type sender struct {
	mu    sync.Mutex
	acked map[string]bool
	count chan struct{} // one for each that was acknowledged
}

func (s *sender) run(ctx context.Context, js jetstream.JetStream, to string, worker int) {
	for i := 0; ctx.Err() == nil; i++ {
		body := fmt.Sprintf("%d-%d", worker, i)
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := js.Publish(once, to, []byte(body), jetstream.WithMsgID(body))
		cancel()
		if err != nil {
			continue // whether it arrived is not known, and nobody said that it did
		}
		s.mu.Lock()
		s.acked[body] = true
		s.mu.Unlock()
		select {
		case s.count <- struct{}{}:
		case <-ctx.Done():
		}
	}
}

// readAll takes what waits in a PC's inbox until nothing does, by what each said.
func (p *pc) readAll(t *testing.T, js jetstream.JetStream) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	consumer, err := js.Consumer(ctx, subject.MessageStream("crew"), subject.Consumer(p.identity.ID))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for {
		info, err := consumer.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.NumPending == 0 && info.NumAckPending == 0 {
			return got
		}
		batch, err := consumer.FetchNoWait(200)
		if err != nil {
			t.Fatal(err)
		}
		for msg := range batch.Messages() {
			got[string(msg.Data())]++
			if err := msg.DoubleAck(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestHUB_05_AKilledHubLosesNothingThatItAcknowledged(t *testing.T) {
	h := startHub(t, t.TempDir())
	anna, bert := h.join("anna"), h.join("bert")
	_, port, _ := strings.Cut(strings.TrimPrefix(anna.member.URLs[0], "tls://127.0.0.1"), ":")
	_, joinPort, _ := strings.Cut(h.address, ":")
	_, js := anna.connect(t)
	s := &sender{acked: map[string]bool{}, count: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for worker := range 4 {
		to := subject.Subject{Team: "crew", From: anna.identity.ID, To: bert.identity.ID, Sort: subject.Message}.String()
		workers.Go(func() { s.run(ctx, js, to, worker) })
	}
	for range 3 { // kills, each in the middle of what is being published
		for range 100 {
			select {
			case <-s.count:
			case <-time.After(testkit.Patience):
				t.Fatal("nothing is acknowledged any more")
			}
		}
		h.kill()
		h.start(joinPort, port)
	}
	stop()
	workers.Wait()
	_, bertsJS := bert.connect(t)
	got := bert.readAll(t, bertsJS)
	lost := 0
	for body := range s.acked {
		if got[body] == 0 {
			lost++
		}
	}
	if lost != 0 || len(s.acked) < 300 {
		t.Errorf("%d of %d acknowledged messages are lost", lost, len(s.acked))
	}
	t.Logf("acknowledged %d, lost %d, arrived %d", len(s.acked), lost, len(got))
}

func TestHUB_03_CommandsOfTheTeam(t *testing.T) {
	h := startHub(t, t.TempDir())
	h.join("anna")
	bert := h.join("bert")
	closed := make(chan struct{})
	bert.connect(t, nats.ClosedHandler(func(*nats.Conn) { close(closed) }), nats.MaxReconnects(0))
	if out := run(t, h.home, "pcs"); !strings.Contains(out, "anna") || !strings.Contains(out, "bert") || !strings.Contains(out, link.Fingerprint(bert.identity.ID)) {
		t.Errorf("pcs prints %q", out)
	}
	if out := run(t, h.home, "remove", "bert"); out != "bert does not belong to the team any more.\n" {
		t.Errorf("remove prints %q", out)
	}
	select {
	case <-closed:
	case <-time.After(testkit.Patience):
		t.Error("bert is still connected")
	}
	if out := run(t, h.home, "status"); !strings.Contains(out, "Hub of the team crew, node hub-1") || !strings.Contains(out, "0 of 1 PCs are up") {
		t.Errorf("status prints %q", out)
	}
	if out := run(t, h.home, "check"); strings.Contains(out, "BAD") || !strings.Contains(out, "it runs: 0 of 1 PCs are up") {
		t.Errorf("check prints %q", out)
	}
	if err := os.Chmod(filepath.Join(h.home, "admin.nk"), 0o640); err != nil {
		t.Fatal(err)
	}
	check := hubCommand(t.Context(), h.home, "check")
	if out, _ := check.Output(); check.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "BAD  others may use "+h.home+"/admin.nk") {
		t.Errorf("check of an open key prints %q", out)
	}
	kept := filepath.Join(t.TempDir(), "backup")
	if out := run(t, h.home, "backup", kept); !strings.Contains(out, "were restored once") {
		t.Errorf("backup prints %q", out)
	}
	if out := run(t, filepath.Join(t.TempDir(), "new"), "restore", kept); !strings.Contains(out, "The hub is restored into") {
		t.Errorf("restore prints %q", out)
	}
	if out := run(t, h.home, "permissions", "--team", "crew", bert.identity.ID); !strings.Contains(out, "\"bridge.v1.crew."+bert.identity.ID+".*.msg\"") || !strings.Contains(out, "sync_interval: always") {
		t.Errorf("permissions prints %q", out)
	}
	for words, want := range map[string]int{"remove nobody": 1, "remove": 2, "permissions x": 2, "frob": 2, "serve --cluster x": 2} {
		err := hubCommand(t.Context(), h.home, strings.Fields(words)...).Run()
		exit, ok := err.(*exec.ExitError) //nolint:errorlint // as Run returns it
		if !ok || exit.ExitCode() != want {
			t.Errorf("bridge-hub %s: %v, want exit %d", words, err, want)
		}
	}
	inJob := hubCommand(t.Context(), h.home, "remove", "anna")
	inJob.Env = append(inJob.Env, "BRIDGE_JOB=codex-1")
	if out, _ := inJob.CombinedOutput(); inJob.ProcessState.ExitCode() != 3 {
		t.Errorf("a job removes a PC: %s", out)
	}
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("serve ends with %v", err)
	}
	if err := hubCommand(t.Context(), h.home, "status").Run(); err == nil || err.(*exec.ExitError).ExitCode() != 4 { //nolint:errorlint,forcetypeassert // as Run returns it
		t.Errorf("status of a hub that has ended: %v", err)
	}
}
