//go:build amd64 || arm64

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/ipc"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/testing/testkit"
)

// broker is a real `bridge serve` under trace, with two sessions.
type broker struct {
	*testing.T
	*traced
	home       string
	output     *ready
	alice, bob *ipc.Client
}

// ready is what the broker prints; the line that says that it serves closes it.
type ready struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	said chan struct{}
}

func (r *ready) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.text.Write(text)
	if strings.Contains(r.text.String(), "bridge: ready ") {
		r.once.Do(func() { close(r.said) })
	}
	return n, err
}

func serve(t *testing.T, home string, judge func(call) verdict) *broker {
	t.Helper()
	b := &broker{T: t, home: home, output: &ready{said: make(chan struct{})}}
	b.traced = start(t, home, judge, b.output, b.output, "serve", "--port", "0", "--home", home)
	select {
	case <-b.output.said:
	case <-b.ended:
		t.Fatalf("serve ended: %s", &b.output.text)
	case <-time.After(testkit.Patience):
		t.Fatal("serve is not ready")
	}
	b.alice, b.bob = b.join("alice"), b.join("bob")
	return b
}

// dial connects to the broker until the test ends.
func (b *broker) dial(role api.Role) *ipc.Client {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	home := homeAt(b.T, b.home)
	token, err := home.ExistingToken()
	if err != nil {
		b.Fatal(err)
	}
	client, err := ipc.Dial(ctx, ipc.Target{Socket: home.Socket(), Token: string(token)}, ipc.Hello{Role: role, PID: os.Getpid(), Version: "test"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() }) // its broker may have ended
	return client
}

// join registers a session.
func (b *broker) join(name string) *ipc.Client {
	b.Helper()
	client := b.dial(api.RoleSession)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if _, err := client.Register(ctx, api.Register{Kind: bridge.Claude, Name: name, SessionID: "host-" + name, Cwd: b.home, AgentPID: os.Getpid()}); err != nil {
		b.Fatal(err)
	}
	return client
}

// prompt is how soon a disk that fails must be told of: a tool asks no longer.
const prompt = 20 * time.Second

// send sends one message and says whether it was acknowledged. A refusal must
// be prompt and name the store and the disk.
func (b *broker) send(id string) bool {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), prompt)
	defer cancel()
	_, err := b.alice.Send(ctx, api.SendArgs{To: "bob", Body: "body of " + id, MessageID: id})
	if err == nil {
		return true
	}
	if text := err.Error(); bridge.CodeOf(err) != bridge.Storage || !strings.Contains(text, "bridge.db") || !strings.Contains(text, "disk") {
		b.Errorf("send %s: %v", id, err)
	}
	return false
}

// inbox takes all that waits for bob.
func (b *broker) inbox() map[string]int {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	seen := map[string]int{}
	for {
		box, err := b.bob.Inbox(ctx, api.InboxArgs{Limit: 100, MarkRead: true})
		if err != nil {
			b.Fatal(err)
		}
		if len(box.Messages) == 0 {
			return seen
		}
		for _, m := range box.Messages {
			seen[m.ID]++
		}
		if err := b.bob.Ack(ctx, api.Ack{Lease: *box.Lease, Stage: bridge.StageConsumed, Via: mail.ViaTool, Detail: "inbox"}); err != nil {
			b.Fatal(err)
		}
	}
}

// servedHome is a home in which a broker served and ended well.
func servedHome(t *testing.T) string {
	t.Helper()
	home := scratch(t) + "/h"
	b := serve(t, home, func(call) verdict { return verdict{} })
	b.send("before")
	b.inbox()
	b.terminate()
	return home
}

func (b *broker) terminate() {
	b.Helper()
	if err := errors.Join(b.alice.Close(), b.bob.Close(), b.cmd.Process.Signal(unix.SIGTERM)); err != nil {
		b.Error(err)
	}
	select {
	case <-b.ended:
	case <-time.After(testkit.Patience):
		b.Error("serve does not end")
	}
}

const sends = 12

// TestMSG_04_FaultsUnderABroker lets writes and syncs fail while messages are
// sent. What was acknowledged is on the disk, even if the power is cut then, and
// arrives once; what was refused said so at once and is sent again.
func TestMSG_04_PRF_05_FaultsUnderABroker(t *testing.T) {
	made := servedHome(t)
	every := stride(t, 31)
	for i, p := range plans() {
		t.Run(p.name, func(t *testing.T) {
			ran := 0
			for n := 1 + i%every; sendUnder(t, p, n, made); n += every {
				ran++
			}
			t.Logf("%d times", ran)
			if ran == 0 {
				t.Error("never")
			}
		})
	}
}

// sendUnder sends while the plan's n-th call fails and reports whether one did.
func sendUnder(t *testing.T, p *plan, n int, made string) bool {
	t.Helper()
	home := copyOf(t, made)
	disk := follow(t, home)
	p.arm(0)
	b := serve(t, home, func(c call) verdict {
		v := p.judge(c)
		disk.saw(c, v)
		return v
	})
	p.arm(n)
	var refused []string
	acknowledged := map[string]int{}
	for k := range sends {
		id := fmt.Sprintf("m%02d", k)
		if b.send(id) {
			acknowledged[id]++
		} else {
			refused = append(refused, id)
		}
	}
	met := p.met() > 0
	p.arm(0) // the disk does again
	b.keeps(t, disk.cutPower(t, home), acknowledged)
	torn := disk.tear(t, home, rand.New(rand.NewPCG(uint64(n), 5)))
	b.keeps(t, torn, acknowledged)
	sound(t, torn)
	for _, id := range refused {
		if !b.send(id) {
			t.Errorf("%s at %d: %s is refused although the disk does again", p.name, n, id)
		}
		acknowledged[id]++
	}
	for id, times := range b.inbox() {
		if times != 1 || acknowledged[id] != 1 {
			t.Errorf("%s at %d: %s arrived %d times", p.name, n, id, times)
		}
		delete(acknowledged, id)
	}
	if len(acknowledged) > 0 {
		t.Errorf("%s at %d: never arrived: %v", p.name, n, acknowledged)
	}
	b.terminate()
	sound(t, home)
	return met
}

// keeps checks that a home after a power cut has every acknowledged message.
func (b *broker) keeps(t *testing.T, home string, acknowledged map[string]int) {
	t.Helper()
	has := stored(t, home)
	for id := range acknowledged {
		if has[id] != 1 {
			t.Errorf("after a power cut the acknowledged %s is there %d times", id, has[id])
		}
	}
}

// sound checks that the doctor finds no error in a home but the expected ones.
func sound(t *testing.T, home string, expected ...check.Code) {
	t.Helper()
	report, err := maintenance(t, home).Doctor().Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		if finding.Severity == check.Error && !slices.Contains(expected, finding.Code) {
			t.Errorf("the doctor says: %s: %s: %s", finding.Code, finding.Path, finding.Detail)
		}
	}
}

// TestMSG_04_ARefusedMessageIsNotBelievedLater: a commit stands in the log that
// never came to the disk, because its sync failed or its broker died before it.
// The next broker reads it there. Whoever sends it again is told that it is
// stored, and then it must be.
func TestMSG_04_ARefusedMessageIsNotBelievedLater(t *testing.T) {
	made := servedHome(t)
	for _, tt := range []struct {
		name string
		die  bool // at the sync, else it fails
	}{{"the sync failed", false}, {"the broker died before the sync", true}} {
		t.Run(tt.name, func(t *testing.T) {
			home := copyOf(t, made)
			disk := follow(t, home)
			p := &plan{syncs: true, refused: unix.EIO, lasting: true}
			var first *broker
			first = serve(t, home, func(c call) verdict {
				v := p.judge(c)
				if v.refused != 0 && tt.die {
					first.signal(unix.SIGKILL) // it stands before the call
				}
				disk.saw(c, v)
				return v
			})
			p.arm(1)
			ctx, cancel := context.WithTimeout(t.Context(), prompt)
			defer cancel()
			if _, err := first.alice.Send(ctx, api.SendArgs{To: "bob", Body: "body of again", MessageID: "again"}); err == nil {
				t.Fatal("a message was acknowledged without a sync")
			}
			first.kill()
			if has := stored(t, disk.cutPower(t, home)); has["again"] != 0 {
				t.Fatal("the model of the disk is wrong: the message is there")
			}
			second := serve(t, home, func(c call) verdict { disk.saw(c, verdict{}); return verdict{} })
			if !second.send("again") {
				t.Fatal("refused again")
			}
			second.keeps(t, disk.cutPower(t, home), map[string]int{"again": 1})
			if got := second.inbox(); got["again"] != 1 {
				t.Errorf("it arrived %d times", got["again"])
			}
			second.terminate()
		})
	}
}
