package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"bridge/backend/core/bridge"
	"bridge/backend/core/remote"
	teamhub "bridge/backend/network/hub"
	"bridge/backend/network/hub/subject"
	"bridge/backend/testing/testkit"
)

// smallDisk is a file system of its own for a hub's home.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("NOT TRIED: only root may mount the small disk that this fills")
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("NOT TRIED: this system mounts no small disk to fill: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v %s", dir, err, out)
		}
	})
	return dir
}

// fill writes until the disk is full, and returns what makes room again.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; {
		if _, err := file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// talker sends numbered frames, each again until the hub has it, as a PC's outbox does.
type talker struct {
	mu    sync.Mutex
	acked int
	said  []string      // why it was not stored
	news  chan struct{} // capacity 1
}

func (w *talker) run(ctx context.Context, from *teamhub.Hub, to string) {
	for i := 0; ctx.Err() == nil; {
		err := from.Inbox.Store(ctx, to, remote.Frame{Type: "x", Payload: fmt.Appendf(nil, "%q", strings.Repeat("x", 20_000)+fmt.Sprint(" ", i))})
		w.mu.Lock()
		if err == nil {
			i++
			w.acked = i
		} else {
			w.said = append(w.said, err.Error())
		}
		w.mu.Unlock()
		select {
		case w.news <- struct{}{}:
		default:
		}
		if err != nil {
			time.Sleep(time.Millisecond) //nolint:forbidigo // as fast as nobody does
		}
	}
}

func (w *talker) await(t *testing.T, what string, is func(acked int, said []string) bool) {
	t.Helper()
	late := time.After(testkit.Patience)
	for {
		w.mu.Lock()
		done := is(w.acked, w.said)
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-w.news:
		case <-late:
			w.mu.Lock()
			defer w.mu.Unlock()
			t.Fatalf("%s did not come: %d acknowledged, the last said %q", what, w.acked, w.said[max(len(w.said)-3, 0):])
		}
	}
}

// TestHUB_05_AFullDiskKeepsWhatWasAcknowledged: whether the hub sees in time that the disk
// is getting full, or it is full while the engine writes.
func TestHUB_05_AFullDiskKeepsWhatWasAcknowledged(t *testing.T) {
	for name, every := range map[string]time.Duration{"seen in time": 0, "full while it writes": time.Hour} {
		t.Run(name, func(t *testing.T) {
			dir := smallDisk(t)
			home, err := At(filepath.Join(dir, "hub"))
			if err != nil {
				t.Fatal(err)
			}
			h := reopenHub(t, home, func(opts *Options) { opts.KeepFree, opts.RoomEvery = 12<<20, every })
			anna, bert := h.enrol("anna"), h.enrol("bert")
			client, changed := anna.client(func(opts *teamhub.Options) {
				opts.Timing = teamhub.Timing{Presence: time.Second, TTL: 30 * time.Second, Ping: 15 * time.Second, Retry: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, Answer: time.Second}
			})
			for !client.State().Up || known(client, bert) != nil {
				next(t, "anna's way to bert", changed)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			w := &talker{news: make(chan struct{}, 1)}
			ended := make(chan struct{})
			go func() { w.run(ctx, client, bert.identity.ID); close(ended) }()
			w.await(t, "the first message", func(acked int, _ []string) bool { return acked > 20 })
			free := fill(t, dir)
			if every > 0 { // the engine has found out by itself
				h.log.await(t, "ritical write error")
				h.room.look(t.Context())
			}
			w.await(t, "that the disk is full", func(_ int, said []string) bool {
				return len(said) > 0 && said[len(said)-1] == "the team's hub did not store it: its disk is full"
			})
			status, err := h.dial().Status(t.Context())
			if err != nil || status.Full == 0 {
				t.Errorf("status is %+v, %v", status, err)
			}
			if found := fmt.Sprint(Check(t.Context(), home)); !strings.Contains(found, "the disk is full since ") {
				t.Errorf("check finds %s", found)
			}
			w.mu.Lock()
			before := w.acked
			w.mu.Unlock()
			free()
			h.room.look(t.Context())
			w.await(t, "what goes on", func(acked int, _ []string) bool { return acked > before+20 })
			stop()
			<-ended
			if status, err := h.dial().Status(t.Context()); err != nil || status.Full != 0 {
				t.Errorf("afterwards status is %+v, %v", status, err)
			}
			h.enrol("carl")
			if _, err := h.dial().Remove(t.Context(), "carl"); err != nil {
				t.Errorf("the hub cannot remove: %v", err)
			}
			w.check(t, bert)
		})
	}
}

// check takes what lies there and counts it: all that was acknowledged, in its order. What
// the hub stored and could not say so any more is there once more.
func (w *talker) check(t *testing.T, to *pc) {
	t.Helper()
	if err := to.connect(true); err != nil {
		t.Fatal(err)
	}
	consumer, err := to.js.Consumer(t.Context(), subject.MessageStream("crew"), subject.Consumer(to.identity.ID))
	if err != nil {
		t.Fatal(err)
	}
	upTo := 0 // the first that was not there yet
	for upTo < w.acked {
		msg, err := consumer.Next(jetstream.FetchMaxWait(testkit.Patience))
		if err != nil {
			t.Fatalf("%d of %d came: %v", upTo, w.acked, err)
		}
		if err := msg.DoubleAck(t.Context()); err != nil {
			t.Fatal(err)
		}
		switch body := string(msg.Data()); {
		case strings.Contains(body, fmt.Sprintf(" %d\"", upTo)):
			upTo++
		case upTo == 0 || !strings.Contains(body, fmt.Sprintf(" %d\"", upTo-1)):
			t.Fatalf("after %d came %q", upTo, body[max(len(body)-20, 0):])
		}
	}
	t.Logf("%d acknowledged, none lost; %d attempts were told that they were not stored", w.acked, len(w.said))
}

// TestHUB_05_AHubWithoutRoomStillChangesItsTeam: in what it leaves free for that.
func TestHUB_05_AHubWithoutRoomStillChangesItsTeam(t *testing.T) {
	h := openHub(t, func(opts *Options) { opts.KeepFree, opts.RoomEvery = 1<<60, time.Hour })
	anna, bert := h.enrol("anna"), h.join("bert")
	client, changed := anna.client()
	for !client.State().Up || known(client, bert) != nil {
		next(t, "anna's way to bert", changed)
	}
	if err := bert.send(anna, "hello"); err == nil || !strings.Contains(err.Error(), "resource limits exceeded") {
		t.Errorf("a message without room: %v", err)
	}
	if err := client.Inbox.Store(t.Context(), bert.identity.ID, remote.Frame{Type: "x"}); bridge.CodeOf(err) != bridge.Busy {
		t.Errorf("it says %v", err)
	}
	if _, err := h.dial().Remove(t.Context(), "bert"); err != nil {
		t.Fatal(err)
	}
	for known(client, bert) == nil {
		next(t, "that bert is of the team no more", changed)
	}
	if err := anna.connect(true); err != nil {
		t.Fatal(err)
	}
	if err := anna.send(anna, "hello"); err == nil {
		t.Error("there is room for messages after the hub's own word")
	}
}
