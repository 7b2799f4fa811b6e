//go:build amd64 || arm64

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bridge/backend/core/bridge"
	"bridge/backend/core/mail"
	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// The homes of two paired PCs, in one folder.
const here, there = "here", "there"

// across is how many messages go to the other PC while a disk fails.
const across = 6

// pairedHomes is a folder with the homes of two PCs that were paired and linked, and
// take each other's messages.
func pairedHomes(t *testing.T) string {
	t.Helper()
	dir := scratch(t)
	for _, name := range []string{here, there} {
		home := homeAt(t, filepath.Join(dir, name))
		if err := home.Ensure(); err != nil {
			t.Fatal(err)
		}
		put(t, home.Dir(), "config.json", fmt.Sprintf(
			`{"version": 1, "network": {"enabled": true, "name": %q, "listen": ["127.0.0.1"], "port": %d, "messages": {"allowPeers": [%q, %q]}}}`,
			name, freePort(t), here, there))
	}
	none := func(call) verdict { return verdict{} }
	a, b := serve(t, filepath.Join(dir, here), none), serve(t, filepath.Join(dir, there), none)
	inviting := exec.Command(program, "--home", a.home, "pair", "--json")
	out, err := inviting.StdoutPipe()
	if err == nil {
		err = inviting.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inviting.Process.Kill() }) // it may have ended
	var invited struct{ Address, Code string }
	if err := json.NewDecoder(out).Decode(&invited); err != nil {
		t.Fatal(err)
	}
	linking := exec.Command(program, "--home", b.home, "link", invited.Address, "--code-stdin", "--json")
	linking.Stdin = strings.NewReader(invited.Code + "\n")
	if text, err := linking.CombinedOutput(); err != nil {
		t.Fatalf("bridge link: %v: %s", err, text)
	}
	if err := inviting.Wait(); err != nil {
		t.Fatal(err)
	}
	a.linked()
	b.terminate()
	a.terminate()
	return dir
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// until asks again until it is so.
func (b *broker) until(what string, is func(ctx context.Context) bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Fatalf("never: %s; it printed %s", what, &b.output.text)
		}
	}
}

// linked waits until the broker sees its link.
func (b *broker) linked() {
	b.Helper()
	owner := b.dial(api.RoleOwner)
	b.until("it is linked", func(ctx context.Context) bool {
		network, err := owner.Network(ctx)
		return err == nil && slices.ContainsFunc(network.Peers, func(pc api.PC) bool { return pc.Up })
	})
}

// TestRMT_21_FaultsUnderAMessageAcross lets each write and each sync of either PC fail
// while messages cross. What was acknowledged arrives there once, and its sender hears
// that it was read; what was refused said so and is sent again.
func TestRMT_21_FaultsUnderAMessageAcross(t *testing.T) {
	made := pairedHomes(t)
	every := stride(t, 251)
	for i, p := range plans() {
		for _, failing := range []string{here, there} {
			t.Run(p.name+" "+failing, func(t *testing.T) {
				ran := 0
				for n := 1 + i; acrossUnder(t, p, n, failing, copyOf(t, made)); n += every {
					ran++
				}
				t.Logf("%d times", ran)
				if ran == 0 {
					t.Error("never")
				}
			})
		}
	}
}

// acrossUnder sends messages to the other PC while the n-th call of one of them fails,
// and reports whether one did. A disk that fails for good does again after three.
func acrossUnder(t *testing.T, p *plan, n int, failing, dir string) bool {
	t.Helper()
	failed := []string{}
	p.arm(0)
	brokers := map[string]*broker{}
	for _, name := range []string{here, there} {
		home := filepath.Join(dir, name)
		brokers[name] = serve(t, home, func(c call) verdict {
			if name != failing {
				return verdict{}
			}
			v := p.judge(c)
			if v != (verdict{}) {
				if failed = append(failed, plainName(home, c.path)); len(failed) == 3 {
					p.arm(0) // the disk does again
				}
			}
			return v
		})
	}
	from, to := brokers[here], brokers[there]
	from.linked()
	p.arm(n)
	sent := map[string]int{}
	for k := range across {
		id := fmt.Sprintf("m%02d", k)
		for try := 0; !from.sendAcross(id); try++ {
			if try == few {
				t.Fatalf("%s at %d (%v): %s is refused again and again", p.name, n, failed, id)
			}
		}
		sent[id]++
	}
	read := map[string]bool{}
	to.until("all have arrived and were read", func(ctx context.Context) bool {
		to.readSome(ctx, read)
		return len(read) >= len(sent)
	})
	for id := range sent {
		from.until("the sender hears that "+id+" was read", func(ctx context.Context) bool {
			status, err := from.alice.SendStatus(ctx, api.SentArgs{MessageID: id})
			return err == nil && len(status.Recipients) == 1 && status.Recipients[0].Stage == bridge.StageConsumed
		})
	}
	p.arm(0)
	met := len(failed) > 0
	from.terminate()
	to.terminate()
	for id, times := range stored(t, to.home) {
		if times != 1 || strings.HasPrefix(id, "m") && sent[id] != 1 {
			t.Errorf("%s at %d (%v): %s is there %d times", p.name, n, failed, id, times)
		}
	}
	sound(t, from.home)
	sound(t, to.home)
	return met
}

// readSome reads what waits for bob, and confirms it until his disk does.
func (b *broker) readSome(ctx context.Context, read map[string]bool) {
	box, err := b.bob.Inbox(ctx, api.InboxArgs{Limit: 100, MarkRead: true})
	if err != nil && bridge.CodeOf(err) != bridge.Storage {
		b.Errorf("the inbox of bob: %v", err)
	}
	if err != nil || box.Lease == nil {
		return
	}
	b.until("bob confirms what he read", func(ctx context.Context) bool {
		return b.bob.Ack(ctx, api.Ack{Lease: *box.Lease, Stage: bridge.StageConsumed, Via: mail.ViaTool, Detail: "inbox"}) == nil
	})
	for _, m := range box.Messages {
		read[m.ID] = true
	}
}

// sendAcross is send to the other PC.
func (b *broker) sendAcross(id string) bool {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), prompt)
	defer cancel()
	_, err := b.alice.Send(ctx, api.SendArgs{To: there + "/bob", Body: "body of " + id, MessageID: id})
	if err != nil && bridge.CodeOf(err) != bridge.Storage {
		b.Errorf("send %s: %v", id, err)
	}
	return err == nil
}
